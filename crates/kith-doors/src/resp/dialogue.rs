//! What commands mean, and what a connection remembers from one to the next.

use super::{
    answer::refusal,
    clients::{Client, Said},
    commands::{self, Spec, Verb},
    describe,
    round::{Many, Round, shown},
    visitor::{Visitor, auth_reply},
};
use crate::{AuthError, DEFAULT_USER};
use kith_api::{QueryError, StoreShape};
use kith_net::server::security::Need;
use kith_wire::resp::{Command, Limits, Replies, Version};
use std::sync::Arc;

/// What commands are answered from, besides what is stored.
pub(super) trait Host {
    /// What the keys and values of a store are.
    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError>;
    /// The sections of `INFO`: name, and lines of `field:value`.
    fn sections(&self) -> Vec<(&'static str, String)>;
    /// The settings of `CONFIG GET`, by name.
    fn settings(&self) -> Vec<(&'static str, String)>;
    /// A line for every connection.
    fn clients(&self) -> String;
    /// The line of one.
    fn client(&self, client: &Client) -> String;
    /// A command came: its index in [`commands::ALL`], or nothing if it is unknown.
    fn note(&self, command: Option<usize>);
    /// A client showed a token that makes nobody known; whether it is the first of that connection.
    fn note_unproven(&self, client: &Client, is_first: bool);
}

/// What comes after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next one.
    Next,
    /// The next one, in another round: replies are written in another way, or another asks.
    Round,
    /// The end of the connection.
    Close,
}

/// One connection's side of the conversation.
#[derive(Debug)]
pub(super) struct Dialogue {
    client: Arc<Client>,
    visitor: Visitor,
    version: Version,
    /// Whether a token was shown that makes nobody known.
    has_failed: bool,
}

/// The reply to a command that failed.
type Refused = String;

/// What HELLO says to those whom nobody knows.
const NOAUTH_HELLO: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time";

impl Dialogue {
    /// The beginning of one.
    pub fn new(client: Arc<Client>, visitor: Visitor) -> Self {
        client.is(visitor.clone());
        Self { client, visitor, version: Version::Two, has_failed: false }
    }

    /// What may come: little from those who have still to say who they are.
    pub fn limits(&self) -> Limits {
        if self.visitor.is_known() { Limits::USUAL } else { Limits::UNAUTHENTICATED }
    }

    /// How replies are written.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Answers a command in `round`, or has its keys read there.
    pub fn interpret(&mut self, command: &Command<'_>, round: &mut Round, host: &dyn Host) -> Flow {
        if command.is_empty() {
            return Flow::Next;
        }
        round.note(command);
        let index = commands::index_of(command.name());
        host.note(index);
        let Some(index) = index else { return unknown(command, round) };
        let spec = &commands::ALL[index];
        let done = match wrong_number(spec, command) {
            true => Err(wrong_number_of(spec.name)),
            false => self.admit(spec).and_then(|()| self.answer(spec.verb, command, round, host)),
        };
        done.unwrap_or_else(|refused| {
            round.refuse(&refused);
            Flow::Next
        })
    }

    /// Lets them ask, whatever for: which stores they may read is looked at with the keys.
    fn admit(&self, spec: &Spec) -> Result<(), Refused> {
        if spec.is_greeting() { Ok(()) } else { self.visitor.check(&Need::Known) }
    }

    fn answer(
        &mut self,
        verb: Verb,
        command: &Command<'_>,
        round: &mut Round,
        host: &dyn Host,
    ) -> Result<Flow, Refused> {
        let first = command.get(1).unwrap_or_default();
        // All commands of a round are of one caller and of one moment: each store is asked about once.
        let shape_of = |store: &str| {
            self.visitor.check_read(store)?;
            host.shape_of(store).map_err(|error| refusal(&error))
        };
        let place = |round: &mut Round, key: &[u8]| round.place(key, shape_of);
        match verb {
            Verb::Get => {
                let place = place(round, first)?;
                round.get(place);
            }
            Verb::Strlen => {
                let place = place(round, first)?;
                round.strlen(place);
            }
            Verb::MultiGet => round.many(Many::Values, command.rest(), place)?,
            Verb::Exists => round.many(Many::Count, command.rest(), place)?,
            Verb::Ping if command.len() == 1 => round.reply(|replies| replies.simple("PONG")),
            Verb::Ping if 2 < command.len() => return Err(wrong_number_of("ping")),
            Verb::Ping | Verb::Echo => round.reply(|replies| replies.bulk(first)),
            Verb::Hello => return self.hello(command, round, host),
            Verb::Auth => return self.auth(command, round, host),
            Verb::Select => select(first, round)?,
            Verb::Client => self.client(command, round, host)?,
            Verb::Cluster => return Err("ERR This instance has cluster support disabled".to_owned()),
            Verb::Command => describe::command(command, round)?,
            Verb::Config => describe::config(command, round, host)?,
            Verb::Info => describe::info(command, round, host),
            Verb::Reset => {
                self.speak(Version::Two);
                self.visitor.reset();
                self.client.is(self.visitor.clone());
                *self.client.said() = Said { protocol: 2, ..Said::default() };
                round.reply(|replies| replies.simple("RESET"));
                return Ok(Flow::Round);
            }
            Verb::Quit => {
                round.reply(|replies| replies.simple("OK"));
                return Ok(Flow::Close);
            }
        }
        Ok(Flow::Next)
    }

    fn speak(&mut self, version: Version) {
        self.version = version;
        self.client.said().protocol = version.number();
    }

    /// `AUTH token`, `AUTH user token`.
    fn auth(&mut self, command: &Command<'_>, round: &mut Round, host: &dyn Host) -> Result<Flow, Refused> {
        let (user, token) = match (command.get(1), command.get(2), command.len()) {
            (Some(token), None, _) => (DEFAULT_USER, token),
            (Some(user), Some(token), 3) => (user, token),
            _ => return Err("ERR syntax error".to_owned()),
        };
        self.authenticate(user, token, host)?;
        round.reply(ok);
        Ok(Flow::Round)
    }

    fn authenticate(&mut self, user: &[u8], token: &[u8], host: &dyn Host) -> Result<(), Refused> {
        self.visitor.authenticate(user, token).map_err(|error| {
            if error == AuthError::Wrong {
                host.note_unproven(&self.client, !std::mem::replace(&mut self.has_failed, true));
            }
            auth_reply(error)
        })?;
        self.client.is(self.visitor.clone());
        Ok(())
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`.
    fn hello(&mut self, command: &Command<'_>, round: &mut Round, host: &dyn Host) -> Result<Flow, Refused> {
        let version = match command.get(1) {
            None => self.version,
            Some(b"2") => Version::Two,
            Some(b"3") => Version::Three,
            Some(other) if other.iter().all(u8::is_ascii_digit) => {
                return Err("NOPROTO unsupported protocol version".to_owned());
            }
            Some(_) => return Err("ERR Protocol version is not an integer or out of range".to_owned()),
        };
        let (mut name, mut shown_token) = (None, None);
        let mut index = 2;
        while let Some(option) = command.get(index) {
            match (option.to_ascii_lowercase().as_slice(), command.get(index + 1), command.get(index + 2)) {
                (b"auth", Some(user), Some(token)) => {
                    shown_token = Some((user, token));
                    index += 3;
                }
                (b"setname", Some(given), _) => {
                    name = Some(printable("Client names", given)?);
                    index += 2;
                }
                _ => return Err(format!("ERR Syntax error in HELLO option '{}'", shown(option))),
            }
        }
        match shown_token {
            Some((user, token)) => self.authenticate(user, token, host)?,
            None => {
                self.visitor.check(&Need::Known).map_err(|refused| match refused.starts_with("NOAUTH") {
                    true => NOAUTH_HELLO.to_owned(),
                    false => refused,
                })?
            }
        }
        self.speak(version);
        if let Some(name) = name {
            self.client.said().name = name;
        }
        let id = self.client.id;
        round.reply(|replies| {
            replies.speak(version);
            describe::hello(version, id, replies);
        });
        Ok(Flow::Round)
    }

    fn client(&self, command: &Command<'_>, round: &mut Round, host: &dyn Host) -> Result<(), Refused> {
        let asked = command.get(1).unwrap_or_default();
        let client = &*self.client;
        match (commands::small(asked).as_deref(), command.len()) {
            (Some("id"), 2) => round.reply(|replies| replies.integer(client.id as i64)),
            (Some("getname"), 2) => round.reply(|replies| match client.said().name.as_str() {
                "" => replies.null(),
                name => replies.bulk(name.as_bytes()),
            }),
            (Some("setname"), 3) => {
                client.said().name = printable("Client names", command.get(2).unwrap_or_default())?;
                round.reply(ok);
            }
            (Some("setinfo"), 4) => {
                let (what, given) = (command.get(2).unwrap_or_default(), command.get(3).unwrap_or_default());
                match what.to_ascii_lowercase().as_slice() {
                    b"lib-name" => client.said().library = printable("lib-name", given)?,
                    b"lib-ver" => client.said().library_version = printable("lib-ver", given)?,
                    _ => return Err(format!("ERR Unrecognized option '{}'", shown(what))),
                }
                round.reply(ok);
            }
            (Some("info"), 2) => {
                let line = host.client(client) + "\n";
                round.reply(|replies| replies.bulk(line.as_bytes()));
            }
            (Some("list"), 2) => {
                let lines = host.clients();
                round.reply(|replies| replies.bulk(lines.as_bytes()));
            }
            (Some("list"), _) => return Err("ERR syntax error".to_owned()),
            (Some(name @ ("id" | "getname" | "setname" | "setinfo" | "info")), _) => {
                return Err(wrong_number_of(&format!("client|{name}")));
            }
            _ => return Err(unknown_subcommand(asked)),
        }
        Ok(())
    }
}

fn ok(replies: &mut Replies) {
    replies.simple("OK");
}

fn select(database: &[u8], round: &mut Round) -> Result<(), Refused> {
    let is_number = !database.is_empty() && database.iter().all(u8::is_ascii_digit);
    match database {
        b"0" => round.reply(ok),
        _ if is_number => return Err("ERR DB index is out of range".to_owned()),
        _ => return Err("ERR value is not an integer or out of range".to_owned()),
    }
    Ok(())
}

/// A name that can stand in a list of names.
fn printable(what: &str, given: &[u8]) -> Result<String, Refused> {
    const NAME_BYTES_MAX: usize = 256;
    let is_one = given.len() <= NAME_BYTES_MAX && given.iter().all(u8::is_ascii_graphic);
    match std::str::from_utf8(given) {
        Ok(name) if is_one => Ok(name.to_owned()),
        _ => Err(format!("ERR {what} cannot contain spaces, newlines or special characters.")),
    }
}

fn wrong_number(spec: &Spec, command: &Command<'_>) -> bool {
    let got = command.len() as i64;
    if spec.arity < 0 { got < -spec.arity } else { got != spec.arity }
}

pub(super) fn wrong_number_of(name: &str) -> Refused {
    format!("ERR wrong number of arguments for '{name}' command")
}

pub(super) fn unknown_subcommand(asked: &[u8]) -> Refused {
    format!("ERR unknown subcommand '{}'.", shown(asked))
}

fn unknown(command: &Command<'_>, round: &mut Round) -> Flow {
    let name = command.name();
    if commands::writes(name) {
        let told = format!(
            "ERR stores are read-only: '{}' is not possible here (push a new version: kith store push STORE FILE)",
            shown(name)
        );
        round.refuse(&told);
        return Flow::Next;
    }
    if matches!(name.to_ascii_lowercase().as_slice(), b"post" | b"host:") {
        // A browser that was talked into sending HTTP here. As Redis: no answer that a page could read.
        return Flow::Close;
    }
    const ARGUMENTS_BYTES: usize = 128;
    let mut arguments = String::new();
    for argument in command.rest() {
        if ARGUMENTS_BYTES <= arguments.len() {
            break;
        }
        arguments += &format!("'{}' ", shown(argument));
    }
    round.refuse(&format!("ERR unknown command '{}', with args beginning with: {arguments}", shown(name)));
    Flow::Next
}
