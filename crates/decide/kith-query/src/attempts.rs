//! Whether a write is sent again. Unlike a read, it may be carried out by an attempt that fails.

use kith_types::ErrorCode;

/// The reason why an attempt to write has not succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedAttempt {
    /// The write was not sent.
    Unsent(ErrorCode),
    /// The node that was asked refused it.
    Refused(ErrorCode),
    /// The write was sent, and no answer came.
    Lost,
}

/// The consequence of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAttempt {
    /// The write is sent again, to the node that leads then, while there is time.
    SendAgain,
    /// The error of this attempt is the outcome: nothing was written.
    NothingWritten,
    /// The write may have been carried out, and must not be sent again.
    Unknown,
}

/// The attempts to carry out one write, until one succeeds.
///
/// A leader that has carried out a write with a name answers a repeat as it answered the first time. A write without a name
/// would be carried out twice, so it is not sent again after an attempt whose outcome is unknown.
#[derive(Clone, Copy, Debug)]
pub struct WriteAttempts {
    is_named: bool,
    may_be_written: bool,
}

impl WriteAttempts {
    /// No attempt yet. `is_named` says whether leaders recognize a repeat of this write.
    pub fn new(is_named: bool) -> Self {
        Self { is_named, may_be_written: false }
    }

    /// Decides what follows from an attempt that failed.
    pub fn fail(&mut self, attempt: FailedAttempt) -> AfterAttempt {
        if attempt.is_unknown() {
            self.may_be_written = true;
            return if self.is_named { AfterAttempt::SendAgain } else { AfterAttempt::Unknown };
        }
        let is_over = match self.may_be_written {
            true => attempt.decides_those_before(),
            false => !attempt.awaits_leader(),
        };
        if is_over { AfterAttempt::NothingWritten } else { AfterAttempt::SendAgain }
    }
}

impl FailedAttempt {
    /// Whether the write may have been carried out by this attempt.
    pub fn is_unknown(self) -> bool {
        matches!(self, FailedAttempt::Lost | FailedAttempt::Refused(ErrorCode::OutcomeUnknown))
    }

    /// Whether the leader has looked for the outcome of earlier attempts, and found none. All other refusals of a repeat say
    /// nothing about the attempts before it.
    fn decides_those_before(self) -> bool {
        matches!(
            self,
            FailedAttempt::Refused(
                ErrorCode::ConditionFailed
                    | ErrorCode::ObjectExists
                    | ErrorCode::UniqueTaken
                    | ErrorCode::WriteIdTaken
            )
        )
    }

    /// Whether the write may succeed later or once another node leads.
    fn awaits_leader(self) -> bool {
        let is_led_elsewhere = |code| matches!(code, ErrorCode::NotLeader | ErrorCode::Leaving);
        let is_unreachable = |code| {
            matches!(code, ErrorCode::Unavailable | ErrorCode::NodeUnreachable | ErrorCode::Unreachable)
        };
        match self {
            FailedAttempt::Unsent(code) => is_led_elsewhere(code) || is_unreachable(code),
            FailedAttempt::Refused(code) => is_led_elsewhere(code),
            FailedAttempt::Lost => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AfterAttempt, FailedAttempt, WriteAttempts};
    use kith_types::ErrorCode;

    const ATTEMPTS: [FailedAttempt; 9] = [
        FailedAttempt::Unsent(ErrorCode::NotLeader),
        FailedAttempt::Unsent(ErrorCode::NodeUnreachable),
        FailedAttempt::Unsent(ErrorCode::UnknownGraph),
        FailedAttempt::Refused(ErrorCode::NotLeader),
        FailedAttempt::Refused(ErrorCode::Overloaded),
        FailedAttempt::Refused(ErrorCode::ConditionFailed),
        FailedAttempt::Refused(ErrorCode::DatabaseUnavailable),
        FailedAttempt::Refused(ErrorCode::OutcomeUnknown),
        FailedAttempt::Lost,
    ];

    /// Returns the consequence of these attempts of one write, up to the one that ends it.
    fn after(is_named: bool, attempts: &[FailedAttempt]) -> Vec<AfterAttempt> {
        let mut write = WriteAttempts::new(is_named);
        let mut consequences = Vec::new();
        for attempt in attempts {
            consequences.push(write.fail(*attempt));
            if consequences.last() != Some(&AfterAttempt::SendAgain) {
                break;
            }
        }
        consequences
    }

    #[test]
    fn a_write_follows_its_leader() {
        use AfterAttempt::{NothingWritten, SendAgain};
        let moved = FailedAttempt::Refused(ErrorCode::NotLeader);
        let unreachable = FailedAttempt::Unsent(ErrorCode::NodeUnreachable);
        for is_named in [false, true] {
            assert_eq!(after(is_named, &[moved, unreachable, moved]), [SendAgain; 3]);
            let full = FailedAttempt::Refused(ErrorCode::Overloaded);
            assert_eq!(after(is_named, &[moved, full]), [SendAgain, NothingWritten]);
        }
    }

    #[test]
    fn only_a_named_write_is_repeated_after_a_lost_answer() {
        use AfterAttempt::{NothingWritten, SendAgain, Unknown};
        assert_eq!(after(false, &[FailedAttempt::Lost]), [Unknown]);
        // The new leader is not ready: that says nothing about the first attempt. The condition was checked after it.
        let busy = FailedAttempt::Refused(ErrorCode::Overloaded);
        let failed = FailedAttempt::Refused(ErrorCode::ConditionFailed);
        assert_eq!(after(true, &[FailedAttempt::Lost, busy, failed]), [SendAgain, SendAgain, NothingWritten]);
    }

    #[test]
    fn nothing_written_is_said_only_if_it_is_true() {
        for is_named in [false, true] {
            for (first, second) in ATTEMPTS.iter().flat_map(|a| ATTEMPTS.map(|b| (*a, b))) {
                let outcome = after(is_named, &[first, second]);
                let lost = |attempt| {
                    matches!(attempt, FailedAttempt::Lost | FailedAttempt::Refused(ErrorCode::OutcomeUnknown))
                };
                let is_decided = matches!(second, FailedAttempt::Refused(ErrorCode::ConditionFailed));
                match outcome[..] {
                    [AfterAttempt::NothingWritten] => assert!(!lost(first)),
                    [_, AfterAttempt::NothingWritten] => {
                        assert!(!lost(second) && (!lost(first) || is_decided))
                    }
                    [AfterAttempt::Unknown] => assert!(lost(first) && !is_named),
                    [_, AfterAttempt::Unknown] => assert!(lost(second) && !is_named),
                    _ => assert!(is_named || (!lost(first) && !lost(second))),
                }
            }
        }
    }
}
