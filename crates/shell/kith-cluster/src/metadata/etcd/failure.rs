//! Decides from the status of a failed call to etcd what the failure means, and whether to repeat the call.

use crate::metadata::MetadataError;
use std::error::Error;
use tonic::{Code, ConnectError, Status};

/// Whether a call that may have been carried out can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The call changes nothing, or repeating it does no harm.
    Safe,
    /// A repeated call would conflict with its own writes.
    Never,
}

/// The error of a call that is not repeated any more.
#[derive(Debug)]
pub(super) enum CallError {
    /// No member answered.
    Unavailable(String),
    /// etcd refused the call.
    Refused(Status),
}

/// The outcome of one failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// There was no connection, so the call was not sent.
    NotSent,
    /// The call was sent, but it is unknown whether it was carried out.
    Unknown,
    /// The call was refused because of its token, before anything was done.
    TokenRefused,
    /// etcd refused the call.
    Refused,
}

/// The action that follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAttempt {
    /// Ask the next member.
    OtherMember,
    /// Ask the same member with a new token.
    NewToken,
    /// Give up.
    End,
}

impl Fate {
    pub(super) fn of(status: &Status) -> Self {
        if is_connect_error(status) {
            return Fate::NotSent;
        }
        let message = status.message();
        match status.code() {
            Code::Unauthenticated => Fate::TokenRefused,
            // etcd 3.4 and later returns this after any change of users and roles.
            Code::InvalidArgument if message.contains("revision of auth store is old") => Fate::TokenRefused,
            Code::Ok
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Internal
            | Code::Unavailable
            | Code::DataLoss => Fate::Unknown,
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented => Fate::Refused,
        }
    }

    /// Decides what to do after an attempt. `has_other`: there is a member that was not asked yet. `may_renew`: there is a
    /// user, whose token has not been renewed during this call.
    pub(super) fn next(self, repeat: Repeat, has_other: bool, may_renew: bool) -> NextAttempt {
        match (self, repeat) {
            (Fate::NotSent, _) | (Fate::Unknown, Repeat::Safe) if has_other => NextAttempt::OtherMember,
            (Fate::TokenRefused, _) if may_renew => NextAttempt::NewToken,
            _ => NextAttempt::End,
        }
    }
}

/// Whether connecting failed. tonic reports this only in the causes of its error.
fn is_connect_error(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

impl From<CallError> for MetadataError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Unavailable(reason) => MetadataError::Unavailable { reason },
            CallError::Refused(status) => MetadataError::Refused { reason: status.message().to_owned() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(code: Code, message: &str) -> Fate {
        Fate::of(&Status::new(code, message))
    }

    #[test]
    fn a_commit_that_may_have_happened_is_not_sent_again() {
        assert_eq!(fate(Code::Unavailable, "etcdserver: leader changed"), Fate::Unknown);
        assert_eq!(Fate::Unknown.next(Repeat::Never, true, true), NextAttempt::End);
        assert_eq!(Fate::Unknown.next(Repeat::Safe, true, true), NextAttempt::OtherMember);
        assert_eq!(Fate::NotSent.next(Repeat::Never, true, true), NextAttempt::OtherMember);
        assert_eq!(Fate::NotSent.next(Repeat::Safe, false, true), NextAttempt::End);
    }

    #[test]
    fn a_refused_token_is_renewed_once() {
        for fate in [
            fate(Code::Unauthenticated, "etcdserver: invalid auth token"),
            fate(Code::InvalidArgument, "etcdserver: revision of auth store is old"),
        ] {
            assert_eq!(fate, Fate::TokenRefused);
            assert_eq!(fate.next(Repeat::Never, true, true), NextAttempt::NewToken);
            assert_eq!(fate.next(Repeat::Never, true, false), NextAttempt::End);
        }
    }

    #[test]
    fn a_no_is_a_no_at_every_member() {
        for (code, message) in [
            (Code::PermissionDenied, "etcdserver: permission denied"),
            (Code::InvalidArgument, "etcdserver: request is too large"),
            (Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
        ] {
            assert_eq!(fate(code, message).next(Repeat::Safe, true, true), NextAttempt::End, "{message}");
        }
    }
}
