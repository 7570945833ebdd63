//! A round: the commands that a connection has sent together, with their keys by store and their replies in order.

use super::{
    answer::{Answer, refusal},
    keys::{Group, KeySlot, Keys, ShapeOf},
    refused::ErrorReply,
};
use kith_query::QueryError;
use kith_wire::resp::{Command, Replies, Version};
use std::ops::Range;

/// The most keys of one round, unless a single command has more. This many keys outweigh the cost of a fan-out, and their
/// values fit into one answer (64 MiB) even if they are long.
const KEYS_MAX: usize = 512;
/// The most bytes of the commands of one round, unless a single command is longer; and of the replies that need no read.
const BYTES_MAX: usize = 1 << 20;
/// The most commands of one round.
const COMMANDS_MAX: usize = 1_024;
/// Replies are sent as soon as they reach this size.
const SEND_BYTES: usize = 256 << 10;

/// The commands of one round.
#[derive(Debug)]
pub(super) struct Round {
    keys: Keys,
    /// The slots of commands with several keys.
    slots: Vec<KeySlot>,
    entries: Vec<Entry>,
    /// Replies that need no read.
    ready: Replies,
    /// The total length of the commands.
    bytes: usize,
    /// The index of the next entry to encode, and how much of `ready` is encoded.
    next: (usize, usize),
    errors: u64,
}

/// The reply to one command.
#[derive(Debug)]
enum Entry {
    /// The reply is in `ready`, and ends at `until`.
    Ready {
        until: usize,
    },
    Get(KeySlot),
    Strlen(KeySlot),
    MultiGet(Range<usize>),
    Exists(Range<usize>),
}

impl Round {
    /// A round without commands.
    pub fn new(version: Version) -> Self {
        Self {
            keys: Keys::default(),
            slots: Vec::new(),
            entries: Vec::new(),
            ready: Replies::new(version),
            bytes: 0,
            next: (0, 0),
            errors: 0,
        }
    }

    /// Whether it has no commands.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether this command may still join the round.
    pub fn has_room_for(&self, command: &Command<'_>) -> bool {
        self.is_empty()
            || self.entries.len() < COMMANDS_MAX
                && self.keys.count() + command.rest().len() <= KEYS_MAX
                && self.bytes + command.bytes() <= BYTES_MAX
                && self.ready.bytes().len() <= BYTES_MAX
    }

    /// Counts the bytes of a command.
    pub fn note(&mut self, command: &Command<'_>) {
        self.bytes += command.bytes();
    }

    /// Adds a reply that needs no read.
    pub fn reply(&mut self, write: impl FnOnce(&mut Replies)) {
        write(&mut self.ready);
        self.entries.push(Entry::Ready { until: self.ready.bytes().len() });
    }

    /// Adds the reply `OK`.
    pub fn ok(&mut self) {
        self.reply(|replies| replies.simple("OK"));
    }

    /// Adds an error reply; `text` is all of it.
    pub fn refuse(&mut self, text: &str) {
        self.errors += 1;
        self.reply(|replies| replies.error(text));
    }

    /// Adds a reply with the value of one key.
    ///
    /// # Errors
    /// As [`Keys::add`]. No reply is added then.
    pub fn get(&mut self, key: &[u8], shape_of: ShapeOf<'_>) -> Result<(), ErrorReply> {
        let slot = self.keys.add(key, shape_of)?;
        self.entries.push(Entry::Get(slot));
        Ok(())
    }

    /// Adds a reply with the length of one key's value.
    ///
    /// # Errors
    /// As [`Round::get`].
    pub fn strlen(&mut self, key: &[u8], shape_of: ShapeOf<'_>) -> Result<(), ErrorReply> {
        let slot = self.keys.add(key, shape_of)?;
        self.entries.push(Entry::Strlen(slot));
        Ok(())
    }

    /// Adds one reply with the values of several keys.
    ///
    /// # Errors
    /// As [`Round::get`].
    pub fn multi_get<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        shape_of: ShapeOf<'_>,
    ) -> Result<(), ErrorReply> {
        let slots = self.add_all(keys, shape_of)?;
        self.entries.push(Entry::MultiGet(slots));
        Ok(())
    }

    /// Adds a reply with the number of keys that exist.
    ///
    /// # Errors
    /// As [`Round::get`].
    pub fn exists<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        shape_of: ShapeOf<'_>,
    ) -> Result<(), ErrorReply> {
        let slots = self.add_all(keys, shape_of)?;
        self.entries.push(Entry::Exists(slots));
        Ok(())
    }

    fn add_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]>,
        shape_of: ShapeOf<'_>,
    ) -> Result<Range<usize>, ErrorReply> {
        let first = self.slots.len();
        for key in keys {
            self.slots.push(self.keys.add(key, shape_of)?);
        }
        Ok(first..self.slots.len())
    }

    /// The keys to read, once the round is complete.
    pub fn reads(&mut self) -> Vec<Group> {
        // A round of several commands keeps its keys: they may have to be read command by command.
        if 1 < self.entries.len() { self.keys.groups() } else { self.keys.take_groups() }
    }

    /// Whether the answers are too large together, so that the commands have to be read one by one.
    pub fn is_too_large(&self, answers: &[Result<Answer, QueryError>]) -> bool {
        let too_large = |answer: &Result<_, _>| matches!(answer, Err(QueryError::TooLarge { .. }));
        1 < self.entries.len() && answers.iter().any(too_large)
    }

    /// Splits the round into one round for each command.
    pub fn one_by_one(self) -> impl Iterator<Item = Round> {
        let mut written = 0;
        (0..self.entries.len()).map(move |index| {
            let mut alone = Round::new(self.ready.version());
            match &self.entries[index] {
                Entry::Ready { until } => {
                    let bytes = &self.ready.bytes()[std::mem::replace(&mut written, *until)..*until];
                    alone.reply(|replies| replies.append(bytes));
                }
                Entry::Get(slot) => alone.entries.push(Entry::Get(alone.keys.add_from(&self.keys, *slot))),
                Entry::Strlen(slot) => {
                    alone.entries.push(Entry::Strlen(alone.keys.add_from(&self.keys, *slot)));
                }
                Entry::MultiGet(slots) => {
                    let slots = alone.slots_from(&self, slots.clone());
                    alone.entries.push(Entry::MultiGet(slots));
                }
                Entry::Exists(slots) => {
                    let slots = alone.slots_from(&self, slots.clone());
                    alone.entries.push(Entry::Exists(slots));
                }
            }
            alone
        })
    }

    fn slots_from(&mut self, whole: &Round, slots: Range<usize>) -> Range<usize> {
        for slot in &whole.slots[slots] {
            self.slots.push(self.keys.add_from(&whole.keys, *slot));
        }
        0..self.slots.len()
    }

    /// Encodes as many replies as are sent together, and says whether those were the last. `answers` has one answer for
    /// each group.
    pub fn encode(&mut self, answers: &[Result<Answer, QueryError>], out: &mut Replies) -> bool {
        let (entry, mut written) = self.next;
        for (index, entry) in self.entries.iter().enumerate().skip(entry) {
            if SEND_BYTES <= out.bytes().len() {
                self.next = (index, written);
                return false;
            }
            let start = out.bytes().len();
            let replied = match entry {
                Entry::Ready { until } => {
                    out.append(&self.ready.bytes()[written..*until]);
                    written = *until;
                    Ok(())
                }
                Entry::Get(slot) => put(*slot, answers, out),
                Entry::Strlen(slot) => value(*slot, answers)
                    .map(|value| out.integer(value.map_or(0, |value| value.len() as i64))),
                Entry::MultiGet(slots) => {
                    out.array(slots.len());
                    self.slots[slots.clone()].iter().try_for_each(|slot| put(*slot, answers, out))
                }
                Entry::Exists(slots) => {
                    let there = self.slots[slots.clone()].iter().try_fold(0, |count, slot| {
                        value(*slot, answers).map(|value| count + i64::from(value.is_some()))
                    });
                    there.map(|count| out.integer(count))
                }
            };
            if let Err(text) = replied {
                // Part of a reply is never sent: clients could not tell it from the whole.
                out.truncate(start);
                out.error(&text);
                self.errors += 1;
            }
        }
        true
    }

    /// The number of commands that were answered with an error.
    pub fn errors(&self) -> u64 {
        self.errors
    }
}

fn value(
    slot: KeySlot,
    answers: &[Result<Answer, QueryError>],
) -> Result<Option<std::borrow::Cow<'_, [u8]>>, String> {
    match answers.get(slot.group as usize) {
        Some(Ok(answer)) => answer.value(slot.key as usize),
        Some(Err(error)) => Err(refusal(error)),
        None => Err(refusal(&QueryError::Internal { detail: "a read was not answered".to_owned() })),
    }
}

fn put(slot: KeySlot, answers: &[Result<Answer, QueryError>], out: &mut Replies) -> Result<(), String> {
    match value(slot, answers)? {
        Some(value) => out.bulk(&value),
        None => out.null(),
    }
    Ok(())
}
