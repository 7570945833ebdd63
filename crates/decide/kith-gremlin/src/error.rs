//! Why a traversal cannot be evaluated.

use kith_types::ErrorCode;
use thiserror::Error;

/// The result of reading or evaluating a traversal.
pub type Result<T, E = GremlinError> = std::result::Result<T, E>;

/// An error with the code and the message that the caller of a traversal sees.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct GremlinError {
    /// The stable code of the error.
    pub code: ErrorCode,
    /// The event, and the advice for the caller.
    pub message: String,
}

impl GremlinError {
    /// An error with any code, such as that of a graph that cannot be reached.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The request is wrong: an unknown step, a wrong argument, or a value of a type that a step cannot take.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    /// TinkerPop has it, but Kith does not. `what` names it, such as "the step match()".
    pub fn unsupported(what: impl AsRef<str>) -> Self {
        Self::new(ErrorCode::UnsupportedOperation, format!("{} is not supported", what.as_ref()))
    }
}
