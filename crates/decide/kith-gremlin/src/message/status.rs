//! The status of an answer.

use kith_types::{ErrorClass, ErrorCode};

/// How a request, or a part of it, ended. The codes are those of Gremlin Server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    /// The last results.
    Success = 200,
    /// The end; there are no results.
    NoContent = 204,
    /// Results; more will follow.
    PartialContent = 206,
    /// The credentials are wrong.
    Unauthorized = 401,
    /// The caller lacks a right.
    Forbidden = 403,
    /// The server asks for credentials.
    Authenticate = 407,
    /// The request is no message of the protocol.
    MalformedRequest = 498,
    /// The request asks for what cannot be done.
    InvalidArguments = 499,
    /// A failure of the server.
    ServerError = 500,
    /// The traversal ended with the step `fail()`.
    FailStep = 595,
    /// A failure that may pass: the request can be sent again.
    Temporary = 596,
    /// The traversal is valid, but the evaluation failed: it exceeded a bound, the graph does not allow the change, or it failed
    /// after some changes were made.
    Evaluation = 597,
    /// The time for the evaluation is over.
    Timeout = 598,
    /// The results cannot be coded.
    Serialization = 599,
}

impl Status {
    /// Its number.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The status of an answer that reports an error with this code.
    pub fn of_error(code: ErrorCode) -> Self {
        match code {
            ErrorCode::TraversalFailed => return Self::FailStep,
            // Other callers changed the same edge before each attempt; a later attempt may succeed.
            ErrorCode::ConditionFailed => return Self::Temporary,
            _ => {}
        }
        match code.class() {
            ErrorClass::InvalidArgument | ErrorClass::NotFound | ErrorClass::Unimplemented => {
                Self::InvalidArguments
            }
            ErrorClass::OutOfRange | ErrorClass::AlreadyExists | ErrorClass::FailedPrecondition => {
                Self::Evaluation
            }
            ErrorClass::Unauthenticated => Self::Unauthorized,
            ErrorClass::PermissionDenied => Self::Forbidden,
            ErrorClass::DeadlineExceeded => Self::Timeout,
            ErrorClass::ResourceExhausted | ErrorClass::Unavailable | ErrorClass::Aborted => Self::Temporary,
            ErrorClass::Cancelled | ErrorClass::Unknown | ErrorClass::Internal | ErrorClass::DataLoss => {
                Self::ServerError
            }
        }
    }
}
