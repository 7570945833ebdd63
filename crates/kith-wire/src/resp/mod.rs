//! RESP, the protocol of Redis clients, as a server speaks it: commands in, replies out (`docs/design/0011-resp.md`).
//!
//! Pure: bytes in, arguments out. What commands mean is in `kith-doors`. Errors are worded as Redis 7.0 words them.

mod decode;
mod limits;
mod replies;
#[cfg(test)]
mod tests;

pub use decode::{Command, Decoder};
pub use limits::{Limits, Malformed};
pub use replies::{Replies, Version};

use kith_types::ErrorCode;

/// The first word of an error reply with this code, by which Redis clients tell kinds of errors apart.
pub fn error_prefix(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthenticated => "NOAUTH",
        ErrorCode::PermissionDenied => "NOPERM",
        _ => "ERR",
    }
}
