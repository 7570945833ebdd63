//! Requests that must not be carried out twice: what an error says about whether they were carried out.

use kith_types::ErrorCode;
use std::time::Duration;
use tonic::Status;

/// Why a request that is sent at most once, such as a write, has no reply.
#[derive(Clone, Debug)]
pub enum SendFailure {
    /// The request was never sent, so nothing was written.
    Unsent(Status),
    /// The peer answered that nothing was written, or that it does not know whether anything was
    /// ([`ErrorCode::OutcomeUnknown`]).
    Refused(Status),
    /// The request was sent, but no reply came. It is unknown whether it was carried out.
    Lost(Status),
}

impl SendFailure {
    /// The error.
    pub fn status(&self) -> &Status {
        match self {
            SendFailure::Unsent(status) | SendFailure::Refused(status) | SendFailure::Lost(status) => status,
        }
    }

    /// Classifies the error status of a request that was sent. A deadline may pass while the request is being carried out,
    /// and an internal error may follow a request that was carried out, so neither proves anything.
    pub fn after_sending(status: Status) -> Self {
        let is_over = !matches!(
            kith_wire::code_of(&status),
            ErrorCode::DeadlineExceeded | ErrorCode::Cancelled | ErrorCode::Internal
        );
        match is_over && kith_wire::is_answer(&status) {
            true => SendFailure::Refused(status),
            false => SendFailure::Lost(status),
        }
    }
}

/// The error of a caller that has waited for as long as its `timeout`.
pub(crate) fn silence(timeout: Duration) -> Status {
    Status::deadline_exceeded(format!("no answer within {} ms", timeout.as_millis()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_that_says_why_proves_that_a_write_was_not_carried_out() {
        let answered = |code| kith_wire::status(code, "no", "");
        let is_lost = |status| matches!(SendFailure::after_sending(status), SendFailure::Lost(_));
        for status in [
            Status::unavailable("connection reset"),
            Status::internal("the reply cannot be decoded"),
            answered(ErrorCode::DeadlineExceeded),
            answered(ErrorCode::Cancelled),
            answered(ErrorCode::Internal),
        ] {
            assert!(is_lost(status.clone()), "{status}");
        }
        for code in
            [ErrorCode::NotLeader, ErrorCode::ConditionFailed, ErrorCode::Leaving, ErrorCode::Overloaded]
        {
            assert!(!is_lost(answered(code)), "{code}");
        }
    }
}
