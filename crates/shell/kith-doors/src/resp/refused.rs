//! Error replies to commands that cannot be carried out, in the words that Redis uses.

use super::commands;
use kith_wire::resp::Command;

/// An error reply, without the leading `-`.
pub(super) type ErrorReply = String;

/// The reply of Redis to `HELLO` before the client has authenticated.
pub(super) const NOAUTH_HELLO: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";

/// The reply of Redis to `AUTH password` where no password is configured. With a user, it compares nothing.
pub(super) const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?";

/// The reply of Redis to credentials that are nobody's.
pub(super) const WRONG_PASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// The command has too few or too many arguments.
pub(super) fn wrong_number_of(name: &str) -> ErrorReply {
    format!("ERR wrong number of arguments for '{name}' command")
}

/// The command has no subcommand of this name.
pub(super) fn unknown_subcommand(name: &[u8]) -> ErrorReply {
    format!("ERR unknown subcommand '{}'.", shown(name))
}

/// No command has this name, or only one of Redis that writes.
pub(super) fn unknown_command(command: &Command<'_>) -> ErrorReply {
    const ARGUMENTS_BYTES: usize = 128;
    let name = command.name();
    if commands::writes(name) {
        return format!(
            "ERR stores are read-only: '{}' is not possible here (push a new version: kith store push STORE FILE)",
            shown(name)
        );
    }
    let mut arguments = String::new();
    for argument in command.rest() {
        if ARGUMENTS_BYTES <= arguments.len() {
            break;
        }
        arguments += &format!("'{}' ", shown(argument));
    }
    format!("ERR unknown command '{}', with args beginning with: {arguments}", shown(name))
}

/// The bytes that a client sent, as an error shows it: escaped, and cut after 128 bytes.
pub(super) fn shown(bytes: &[u8]) -> String {
    const SHOWN_BYTES: usize = 128;
    let shown = bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii().to_string();
    if SHOWN_BYTES < bytes.len() { shown + "…" } else { shown }
}
