//! Client-side caching: what a client has asked for with `CLIENT TRACKING`, and when it must forget what it keeps.
//!
//! Values change when another version of a store is swapped in. So a message asks the client to forget all keys then; which of
//! them it has read is not kept.

use super::refused::{ErrorReply, shown};
use kith_wire::resp::{Command, Replies, Version};
use std::time::Duration;

/// How often the versions of stores are looked at for a client that keeps values.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// How many times a message asks the client to forget after a change. Replicas swap one after another, so values of the old version
/// may still be read for a moment.
const TELLS: u32 = 5;
/// The most prefixes that one command may name.
const PREFIXES_MAX: usize = 64;

/// The notices that a client has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tracking {
    is_on: bool,
    is_broadcast: bool,
    is_opt_in: bool,
    is_opt_out: bool,
    is_no_loop: bool,
    prefixes: Vec<Vec<u8>>,
}

impl Tracking {
    /// `CLIENT TRACKING ON|OFF [BCAST] [PREFIX prefix …] [OPTIN] [OPTOUT] [NOLOOP]`.
    ///
    /// # Errors
    /// The error reply, as of Redis; `REDIRECT` is refused.
    pub fn parse(command: &Command<'_>) -> Result<Self, ErrorReply> {
        let syntax = || "ERR syntax error".to_owned();
        let mut new = Self::default();
        match command.get(2).unwrap_or_default().to_ascii_lowercase().as_slice() {
            b"on" => new.is_on = true,
            b"off" => {}
            _ => return Err(syntax()),
        }
        let mut options = command.rest().skip(2);
        while let Some(option) = options.next() {
            match option.to_ascii_lowercase().as_slice() {
                b"bcast" => new.is_broadcast = true,
                b"optin" => new.is_opt_in = true,
                b"optout" => new.is_opt_out = true,
                b"noloop" => new.is_no_loop = true,
                b"prefix" if new.prefixes.len() < PREFIXES_MAX => {
                    new.prefixes.push(options.next().ok_or_else(syntax)?.to_vec());
                }
                b"redirect" => {
                    return Err(
                        "ERR CLIENT TRACKING cannot redirect to another connection here (use RESP3: HELLO 3)"
                            .to_owned(),
                    );
                }
                _ => return Err(syntax()),
            }
        }
        let wrong = match () {
            () if !new.prefixes.is_empty() && !new.is_broadcast => {
                "PREFIX option requires BCAST mode to be enabled"
            }
            () if new.is_broadcast && (new.is_opt_in || new.is_opt_out) => {
                "OPTIN and OPTOUT are not compatible with BCAST"
            }
            () if new.is_opt_in && new.is_opt_out => "You can't specify both OPTIN mode and OPTOUT mode",
            () if new.is_on => return Ok(new),
            () => return Ok(Self::default()),
        };
        Err(format!("ERR {wrong}"))
    }

    /// Checks `CLIENT CACHING YES|NO`. It needs to change nothing, because all clients that keep values hear of each change.
    ///
    /// # Errors
    /// The error reply of Redis, if the client has not asked for the mode that this command belongs to.
    pub fn check_caching(&self, answer: &[u8]) -> Result<(), ErrorReply> {
        if !self.is_opt_in && !self.is_opt_out {
            return Err("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled".to_owned());
        }
        match answer.to_ascii_lowercase().as_slice() {
            b"yes" if !self.is_opt_in => {
                Err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.".to_owned())
            }
            b"no" if !self.is_opt_out => {
                Err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.".to_owned())
            }
            b"yes" | b"no" => Ok(()),
            other => Err(format!("ERR syntax error: '{}'", shown(other))),
        }
    }

    /// The reply to `CLIENT GETREDIR`: -1 if tracking is off, 0 if it redirects nowhere.
    pub fn redirect(&self) -> i64 {
        if self.is_on { 0 } else { -1 }
    }

    /// The reply to `CLIENT TRACKINGINFO`.
    pub fn describe(&self, replies: &mut Replies) {
        let flags = [
            ("off", !self.is_on),
            ("on", self.is_on),
            ("bcast", self.is_broadcast),
            ("optin", self.is_opt_in),
            ("optout", self.is_opt_out),
            ("noloop", self.is_no_loop),
        ];
        let flags: Vec<&str> =
            flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect();
        replies.map(3);
        replies.bulk(b"flags");
        replies.array(flags.len());
        flags.iter().for_each(|flag| replies.bulk(flag.as_bytes()));
        replies.bulk(b"redirect");
        replies.integer(self.redirect());
        replies.bulk(b"prefixes");
        replies.array(self.prefixes.len());
        self.prefixes.iter().for_each(|prefix| replies.bulk(prefix));
    }

    /// Whether the client must hear of changes. RESP 2 has no message for that, and Redis tells such a client nothing either.
    pub fn tells(&self, version: Version) -> bool {
        self.is_on && version == Version::Three
    }
}

/// The versions of the stores, as a client that keeps values knows them.
#[derive(Debug, Default)]
pub(super) struct KnownVersions {
    versions: Option<Vec<(String, u64)>>,
    tells: u32,
}

impl KnownVersions {
    /// Takes the versions of now, and returns whether the client must be asked to forget. The first call only remembers.
    pub fn look(&mut self, now: Vec<(String, u64)>) -> bool {
        match &mut self.versions {
            Some(known) if *known == now => {}
            Some(known) => {
                *known = now;
                self.tells = TELLS;
            }
            None => self.versions = Some(now),
        }
        let must = 0 < self.tells;
        self.tells = self.tells.saturating_sub(1);
        must
    }
}

/// Tells the client to forget all keys that it keeps, in RESP 3.
pub(super) fn forget_all(replies: &mut Replies) {
    replies.push(2);
    replies.bulk(b"invalidate");
    replies.null();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_announced_several_times_and_then_no_more() {
        let mut known = KnownVersions::default();
        let of = |version| vec![("ids".to_owned(), version)];
        let changes: Vec<bool> =
            [1, 1, 2, 2, 2, 2, 2, 2, 2, 3].into_iter().map(|version| known.look(of(version))).collect();
        assert_eq!(changes, [false, false, true, true, true, true, true, false, false, true]);
    }
}
