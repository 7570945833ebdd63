//! The facts that a client states about itself: the arguments of `HELLO`, and the subcommands of `CLIENT`.

use super::{
    clients::Client,
    commands,
    host::Host,
    refused::{ErrorReply, shown, unknown_subcommand, wrong_number_of},
    round::Round,
    tracking::Tracking,
};
use kith_wire::resp::{Command, Version};

/// The subcommands of `CLIENT` that need a certain number of arguments.
const SUBCOMMANDS: [&str; 12] = [
    "id",
    "getname",
    "setname",
    "setinfo",
    "info",
    "no-evict",
    "no-touch",
    "reply",
    "tracking",
    "caching",
    "getredir",
    "trackinginfo",
];
/// The longest name that a client may give itself.
const NAME_BYTES_MAX: usize = 256;

/// The arguments of `HELLO [version [AUTH user password] [SETNAME name]]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Greeting<'a> {
    /// The protocol version to speak from now on; `None`: the same as before.
    pub version: Option<Version>,
    /// User and token.
    pub credentials: Option<(&'a [u8], &'a [u8])>,
    /// The name of the connection.
    pub name: Option<String>,
}

impl<'a> Greeting<'a> {
    /// Reads the arguments of `command`.
    ///
    /// # Errors
    /// The reply, if an argument is not one of `HELLO`.
    pub fn parse(command: &Command<'a>) -> Result<Self, ErrorReply> {
        let mut greeting = Self { version: version(command.get(1))?, credentials: None, name: None };
        let mut index = 2;
        while let Some(option) = command.get(index) {
            match (option.to_ascii_lowercase().as_slice(), command.get(index + 1), command.get(index + 2)) {
                (b"auth", Some(user), Some(token)) => {
                    greeting.credentials = Some((user, token));
                    index += 3;
                }
                (b"setname", Some(given), _) => {
                    greeting.name = Some(printable("Client names", given)?);
                    index += 2;
                }
                _ => return Err(format!("ERR Syntax error in HELLO option '{}'", shown(option))),
            }
        }
        Ok(greeting)
    }
}

fn version(argument: Option<&[u8]>) -> Result<Option<Version>, ErrorReply> {
    match argument {
        None => Ok(None),
        Some(b"2") => Ok(Some(Version::Two)),
        Some(b"3") => Ok(Some(Version::Three)),
        Some(other) if other.iter().all(u8::is_ascii_digit) => {
            Err("NOPROTO unsupported protocol version".to_owned())
        }
        Some(_) => Err("ERR Protocol version is not an integer or out of range".to_owned()),
    }
}

/// Answers the subcommands of `CLIENT`.
pub(super) fn client(
    client: &Client,
    command: &Command<'_>,
    round: &mut Round,
    host: &dyn Host,
) -> Result<(), ErrorReply> {
    let subcommand = command.get(1).unwrap_or_default();
    match (commands::small(subcommand).as_deref(), command.len()) {
        (Some("id"), 2) => round.reply(|replies| replies.integer(client.id as i64)),
        (Some("getname"), 2) => round.reply(|replies| match client.said().name.as_str() {
            "" => replies.null(),
            name => replies.bulk(name.as_bytes()),
        }),
        (Some("setname"), 3) => {
            client.said().name = printable("Client names", command.get(2).unwrap_or_default())?;
            round.ok();
        }
        (Some("setinfo"), 4) => {
            let (what, given) = (command.get(2).unwrap_or_default(), command.get(3).unwrap_or_default());
            match what.to_ascii_lowercase().as_slice() {
                b"lib-name" => client.said().library = printable("lib-name", given)?,
                b"lib-ver" => client.said().library_version = printable("lib-ver", given)?,
                _ => return Err(format!("ERR Unrecognized option '{}'", shown(what))),
            }
            round.ok();
        }
        (Some("info"), 2) => {
            let line = host.client(client) + "\n";
            round.reply(|replies| replies.bulk(line.as_bytes()));
        }
        (Some("list"), _) => {
            let lines = list(command, host)?;
            round.reply(|replies| replies.bulk(lines.as_bytes()));
        }
        // Nothing is evicted here, no key has a time of use, and replies cannot be switched off.
        (Some("no-evict" | "no-touch"), 3) => flag(command, &[b"on", b"off"], round)?,
        (Some("reply"), 3) => flag(command, &[b"on"], round)?,
        _ => return tracking(client, command, round),
    }
    Ok(())
}

/// Answers the subcommands of `CLIENT` for clients that keep values.
fn tracking(client: &Client, command: &Command<'_>, round: &mut Round) -> Result<(), ErrorReply> {
    let subcommand = command.get(1).unwrap_or_default();
    match (commands::small(subcommand).as_deref(), command.len()) {
        (Some("tracking"), 3..) => {
            client.said().tracking = Tracking::parse(command)?;
            round.ok();
        }
        (Some("caching"), 3) => {
            client.said().tracking.check_caching(command.get(2).unwrap_or_default())?;
            round.ok();
        }
        (Some("getredir"), 2) => round.reply(|replies| replies.integer(client.said().tracking.redirect())),
        (Some("trackinginfo"), 2) => round.reply(|replies| client.said().tracking.describe(replies)),
        (Some(name), _) if SUBCOMMANDS.contains(&name) => {
            return Err(wrong_number_of(&format!("client|{name}")));
        }
        _ => return Err(unknown_subcommand(subcommand)),
    }
    Ok(())
}

/// `CLIENT LIST [TYPE type] [ID id …]`. All clients are of the type `normal`.
fn list(command: &Command<'_>, host: &dyn Host) -> Result<String, ErrorReply> {
    let argument = |index| command.get(index).map(<[u8]>::to_ascii_lowercase);
    match (argument(2).as_deref(), argument(3).as_deref(), command.len()) {
        (None, ..) => Ok(host.clients(None)),
        (Some(b"type"), Some(b"normal"), 4) => Ok(host.clients(None)),
        (Some(b"type"), Some(b"master" | b"replica" | b"slave" | b"pubsub"), 4) => Ok(String::new()),
        (Some(b"type"), Some(other), 4) => Err(format!("ERR Unknown client type '{}'", shown(other))),
        (Some(b"id"), Some(_), _) => {
            let number = |id: &[u8]| std::str::from_utf8(id).ok()?.parse().ok();
            let ids: Option<Vec<u64>> = command.rest().skip(2).map(number).collect();
            Ok(host.clients(Some(&ids.ok_or("ERR Invalid client ID")?)))
        }
        _ => Err("ERR syntax error".to_owned()),
    }
}

/// Accepts a flag that has no effect here.
fn flag(command: &Command<'_>, values: &[&[u8]], round: &mut Round) -> Result<(), ErrorReply> {
    let value = command.get(2).unwrap_or_default().to_ascii_lowercase();
    if !values.contains(&value.as_slice()) {
        return Err("ERR syntax error".to_owned());
    }
    round.ok();
    Ok(())
}

/// A name that can stand as one word in the lines of `CLIENT LIST`.
fn printable(what: &str, given: &[u8]) -> Result<String, ErrorReply> {
    let is_word = given.len() <= NAME_BYTES_MAX && given.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(given) {
        Ok(name) if is_word => Ok(name.to_owned()),
        _ => Err(format!("ERR {what} cannot contain spaces, newlines or special characters.")),
    }
}
