//! The limits of a connection, and the errors of malformed commands.

use thiserror::Error;

/// The limits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most arguments of a command, including its name.
    pub arguments: usize,
    /// The most bytes of an argument.
    pub argument_bytes: usize,
    /// The most bytes of a command.
    pub command_bytes: usize,
    /// Whether the connection must still authenticate, which errors then mention.
    pub is_unauthenticated: bool,
}

impl Limits {
    /// The limits of a connection that may send any command. They allow as many arguments as Redis does, and longer
    /// arguments than any key.
    pub const USUAL: Self = Self {
        arguments: 1 << 20,
        argument_bytes: 1 << 20,
        command_bytes: 64 << 20,
        is_unauthenticated: false,
    };
    /// The limits of a connection that must authenticate first. Those on arguments are the same as in Redis.
    pub const UNAUTHENTICATED: Self =
        Self { arguments: 10, argument_bytes: 16 << 10, command_bytes: 24 << 10, is_unauthenticated: true };
}

/// The reason why bytes are not a command. Nothing after them can be decoded. The messages are worded as in Redis.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MalformedCommand {
    /// The number of arguments is malformed or too large.
    #[error("Protocol error: invalid multibulk length")]
    Count,
    /// The number of arguments is too large for a connection that has not authenticated.
    #[error("Protocol error: too many arguments before AUTH; authenticate first")]
    CountUnauthenticated,
    /// The line with the number of arguments is too long.
    #[error("Protocol error: too big mbulk count string")]
    CountLine,
    /// An argument does not begin with `$`.
    #[error("Protocol error: expected '$', got '{}'", got.escape_ascii())]
    Kind {
        /// The byte that it begins with.
        got: u8,
    },
    /// The length of an argument is malformed or too large.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// The length of an argument is too large for a connection that has not authenticated.
    #[error("Protocol error: too long an argument before AUTH; authenticate first")]
    LengthUnauthenticated,
    /// The line with the length of an argument is too long.
    #[error("Protocol error: too big bulk count string")]
    LengthLine,
    /// No line end follows an argument.
    #[error("Protocol error: expected CRLF after an argument")]
    ArgumentEnd,
    /// An inline command is too long.
    #[error("Protocol error: too big inline request")]
    Inline,
    /// The command as a whole is too long.
    #[error("Protocol error: too big command")]
    Command,
}
