//! Interprets commands, and keeps the state of a connection from one command to the next.

use super::{
    answer::refusal,
    clients::{Client, ClientFacts},
    commands::{self, Spec, Verb},
    describe,
    host::Host,
    introduction::{self, Greeting},
    refused::{ErrorReply, NO_PASSWORD, NOAUTH_HELLO, WRONG_PASS, unknown_command, wrong_number_of},
    resp_rights::RespRights,
    round::Round,
};
use crate::{AuthError, DEFAULT_USER};
use kith_net::server::security::Need;
use kith_wire::resp::{Command, Limits, Version};
use std::sync::Arc;

/// The action that follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next command, in the same round.
    Next,
    /// The next command, in a new round: the protocol version or the client's identity may have changed.
    Round,
    /// The end of the connection.
    Close,
}

/// The server's side of one connection.
#[derive(Debug)]
pub(super) struct Dialogue {
    client: Arc<Client>,
    rights: RespRights,
    version: Version,
    /// Whether the client has presented a token that identifies nobody.
    has_failed: bool,
}

impl Dialogue {
    /// A connection that has sent no command yet.
    pub fn new(client: Arc<Client>, rights: RespRights) -> Self {
        client.is(rights.clone());
        Self { client, rights, version: Version::Two, has_failed: false }
    }

    /// The limits on the next command. They are low until the client has authenticated.
    pub fn limits(&self) -> Limits {
        if self.rights.is_known() { Limits::USUAL } else { Limits::UNAUTHENTICATED }
    }

    /// Whether the client keeps values, and must receive a message when they change.
    pub fn keeps_values(&self) -> bool {
        self.client.said().tracking.tells(self.version)
    }

    /// The protocol version of the replies.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Adds a command to `round`: either its reply, or the keys that have to be read for it.
    pub fn interpret(&mut self, command: &Command<'_>, round: &mut Round, host: &dyn Host) -> Flow {
        if command.is_empty() {
            return Flow::Next;
        }
        round.note(command);
        let index = commands::index_of(command.name());
        host.note(index);
        let done = match index.map(|index| &commands::ALL[index]) {
            None if is_http(command.name()) => return Flow::Close,
            None => Err(unknown_command(command)),
            Some(spec) if !spec.takes(command.len()) => Err(wrong_number_of(spec.name)),
            Some(spec) => self.admit(spec).and_then(|()| self.answer(spec.verb, command, round, host)),
        };
        done.unwrap_or_else(|refused| {
            round.refuse(&refused);
            Flow::Next
        })
    }

    /// Refuses a client that has not authenticated. The right to read a store is checked with the keys.
    fn admit(&self, spec: &Spec) -> Result<(), ErrorReply> {
        if spec.is_greeting() { Ok(()) } else { self.rights.check(&Need::Known) }
    }

    fn answer(
        &mut self,
        verb: Verb,
        command: &Command<'_>,
        round: &mut Round,
        host: &dyn Host,
    ) -> Result<Flow, ErrorReply> {
        let first = command.get(1).unwrap_or_default();
        match verb {
            Verb::Get | Verb::Strlen | Verb::MultiGet | Verb::Exists => {
                self.read(verb, command, round, host)?;
            }
            Verb::Ping if command.len() == 1 => round.reply(|replies| replies.simple("PONG")),
            Verb::Ping if 2 < command.len() => return Err(wrong_number_of("ping")),
            Verb::Ping | Verb::Echo => round.reply(|replies| replies.bulk(first)),
            Verb::Hello => return self.hello(command, round, host),
            Verb::Auth => return self.auth(command, round, host),
            Verb::Select => select(first, round)?,
            Verb::Client => {
                let kept = self.keeps_values();
                introduction::client(&self.client, command, round, host)?;
                // What is read from now on is kept, so the versions must be looked at before.
                return Ok(if kept == self.keeps_values() { Flow::Next } else { Flow::Round });
            }
            Verb::Cluster => return Err("ERR This instance has cluster support disabled".to_owned()),
            Verb::Command => describe::command(command, round)?,
            Verb::Config => describe::config(command, round, host)?,
            Verb::Info => describe::info(command, round, host),
            Verb::Reset => {
                self.reset();
                round.reply(|replies| replies.simple("RESET"));
                return Ok(Flow::Round);
            }
            Verb::Quit => {
                round.ok();
                return Ok(Flow::Close);
            }
        }
        Ok(Flow::Next)
    }

    /// Adds the keys of a command to the round.
    fn read(
        &self,
        verb: Verb,
        command: &Command<'_>,
        round: &mut Round,
        host: &dyn Host,
    ) -> Result<(), ErrorReply> {
        let first = command.get(1).unwrap_or_default();
        // All commands of a round are from one client at one moment, so each store is checked once.
        let shape_of = |store: &str| {
            self.rights.check_read(store)?;
            host.shape_of(store).map_err(|error| refusal(&error))
        };
        match verb {
            Verb::Strlen => round.strlen(first, &shape_of),
            Verb::MultiGet => round.multi_get(command.rest(), &shape_of),
            Verb::Exists => round.exists(command.rest(), &shape_of),
            _ => round.get(first, &shape_of),
        }
    }

    /// Puts the connection back into the state in which it was opened.
    fn reset(&mut self) {
        self.version = Version::Two;
        self.rights.reset();
        self.client.is(self.rights.clone());
        *self.client.said() = ClientFacts { protocol: Version::Two.number(), ..ClientFacts::default() };
    }

    /// `AUTH token`, `AUTH user token`.
    fn auth(
        &mut self,
        command: &Command<'_>,
        round: &mut Round,
        host: &dyn Host,
    ) -> Result<Flow, ErrorReply> {
        let (user, token) = match (command.get(1), command.get(2), command.len()) {
            (Some(_), None, _) if !self.rights.must_prove() => return Err(NO_PASSWORD.to_owned()),
            (Some(token), None, _) => (DEFAULT_USER, token),
            (Some(user), Some(token), 3) => (user, token),
            _ => return Err("ERR syntax error".to_owned()),
        };
        self.authenticate(user, token, host)?;
        round.ok();
        Ok(Flow::Round)
    }

    /// Authenticates the client. Where nobody has to authenticate, Redis accepts any password of its default user, which many
    /// clients send by habit.
    fn authenticate(&mut self, user: &[u8], token: &[u8], host: &dyn Host) -> Result<(), ErrorReply> {
        self.rights.authenticate(user, token).or_else(|error| {
            if error == AuthError::NothingToProve && user == DEFAULT_USER {
                return self.rights.check(&Need::Known);
            }
            if error == AuthError::Wrong {
                host.note_unproven(&self.client, !std::mem::replace(&mut self.has_failed, true));
            }
            Err(WRONG_PASS.to_owned())
        })?;
        self.client.is(self.rights.clone());
        Ok(())
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`.
    fn hello(
        &mut self,
        command: &Command<'_>,
        round: &mut Round,
        host: &dyn Host,
    ) -> Result<Flow, ErrorReply> {
        let greeting = Greeting::parse(command)?;
        match greeting.credentials {
            Some((user, token)) => self.authenticate(user, token, host)?,
            None => {
                self.rights.check(&Need::Known).map_err(|refused| match refused.starts_with("NOAUTH") {
                    true => NOAUTH_HELLO.to_owned(),
                    false => refused,
                })?
            }
        }
        let (version, id) = (greeting.version.unwrap_or(self.version), self.client.id);
        self.version = version;
        let mut said = self.client.said();
        said.protocol = version.number();
        if let Some(name) = greeting.name {
            said.name = name;
        }
        drop(said);
        round.reply(|replies| {
            replies.speak(version);
            describe::hello(version, id, replies);
        });
        Ok(Flow::Round)
    }
}

fn select(database: &[u8], round: &mut Round) -> Result<(), ErrorReply> {
    let is_number = !database.is_empty() && database.iter().all(u8::is_ascii_digit);
    match database {
        b"0" => round.ok(),
        _ if is_number => return Err("ERR DB index is out of range".to_owned()),
        _ => return Err("ERR value is not an integer or out of range".to_owned()),
    }
    Ok(())
}

/// Whether this is the beginning of an HTTP request, as a web page can make a browser send it. Like Redis, the server
/// closes the connection without an answer that the page could read.
fn is_http(name: &[u8]) -> bool {
    matches!(name.to_ascii_lowercase().as_slice(), b"post" | b"host:")
}
