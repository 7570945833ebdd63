//! What a connection may send, and what is no command.

use thiserror::Error;

/// What a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Arguments of a command, its name among them.
    pub arguments: usize,
    /// Bytes of an argument.
    pub argument_bytes: usize,
    /// Bytes of a command.
    pub command_bytes: usize,
    /// Whether the connection has still to say who it is: errors name that.
    pub is_unauthenticated: bool,
}

impl Limits {
    /// Of a connection that may ask. As many arguments as Redis takes; far longer ones than any key.
    pub const USUAL: Self = Self {
        arguments: 1 << 20,
        argument_bytes: 1 << 20,
        command_bytes: 64 << 20,
        is_unauthenticated: false,
    };
    /// Of a connection that has to authenticate first; arguments as in Redis.
    pub const UNAUTHENTICATED: Self =
        Self { arguments: 10, argument_bytes: 16 << 10, command_bytes: 24 << 10, is_unauthenticated: true };
}

/// What came is no command, and nothing after it can be understood. Displayed as Redis says it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// The number of arguments is none, or too large.
    #[error("Protocol error: invalid multibulk length")]
    Count,
    /// As [`Malformed::Count`], of a connection that may send only few.
    #[error("Protocol error: too many arguments before AUTH; authenticate first")]
    CountUnauthenticated,
    /// The line with the number of arguments does not end.
    #[error("Protocol error: too big mbulk count string")]
    CountLine,
    /// An argument does not begin as one.
    #[error("Protocol error: expected '$', got '{}'", got.escape_ascii())]
    Kind {
        /// What it begins with.
        got: u8,
    },
    /// The length of an argument is none, or too large.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// As [`Malformed::Length`], of a connection that may send only short ones.
    #[error("Protocol error: too long an argument before AUTH; authenticate first")]
    LengthUnauthenticated,
    /// The line with the length of an argument does not end.
    #[error("Protocol error: too big bulk count string")]
    LengthLine,
    /// An argument is not followed by the end of a line.
    #[error("Protocol error: expected CRLF after an argument")]
    ArgumentEnd,
    /// A line of words does not end.
    #[error("Protocol error: too big inline request")]
    Inline,
    /// All arguments together are too long.
    #[error("Protocol error: too big command")]
    Command,
}
