//! The server side of RESP, the protocol of Redis clients: commands in, replies out (`docs/design/0011-resp.md`).
//!
//! This module is pure: bytes in, arguments out. `kith-doors` interprets the commands. Errors are worded as in Redis
//! 7.0.

mod decode;
mod limits;
mod replies;
#[cfg(test)]
mod tests;

pub use decode::{Command, Decoder};
pub use limits::{Limits, MalformedCommand};
pub use replies::{Replies, Version};

use kith_types::ErrorCode;

/// Returns the first word of an error reply with this code. Redis clients distinguish kinds of errors by it.
pub fn error_prefix(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthenticated => "NOAUTH",
        ErrorCode::PermissionDenied => "NOPERM",
        _ => "ERR",
    }
}
