//! Errors on the wire: a gRPC status whose details carry Kith's stable code.

use crate::v1::ErrorDetail;
use prost::Message;
use tonic::{Code, Status};

/// A status with a stable code, a message that says what happened and why, and a help text that says what to do.
pub fn status(code: Code, kith_code: &str, message: impl Into<String>, help: impl Into<String>) -> Status {
    with_detail(
        code,
        message,
        ErrorDetail { code: kith_code.to_owned(), help: help.into(), ..ErrorDetail::default() },
    )
}

/// A status with the details given.
pub fn with_detail(code: Code, message: impl Into<String>, detail: ErrorDetail) -> Status {
    Status::with_details(code, message.into(), detail.encode_to_vec().into())
}

/// The details of a status; a status from elsewhere (a proxy, a lost connection) gets a code from its gRPC code.
pub fn detail_of(status: &Status) -> ErrorDetail {
    if !status.details().is_empty()
        && let Ok(detail) = ErrorDetail::decode(status.details())
    {
        return detail;
    }
    let code = match status.code() {
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::Cancelled => "cancelled",
        Code::Unavailable => "unavailable",
        Code::Unimplemented => "unsupported_operation",
        Code::ResourceExhausted => "overloaded",
        _ => "internal",
    };
    ErrorDetail { code: code.to_owned(), ..ErrorDetail::default() }
}
