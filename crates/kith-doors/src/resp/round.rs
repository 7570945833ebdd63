//! The commands that a connection has sent together: their keys by store, and their replies in order.

use super::answer::{Answer, refusal};
use kith_api::{BatchKeys, QueryError, StoreShape};
use kith_schema::{KEY_BYTES_MAX, KeyType, ValueType};
use kith_types::ByteKeys;
use kith_wire::resp::{Command, Replies, Version};
use std::ops::Range;

/// Keys of one round, unless one command has more: enough for a fan-out to cost nothing beside them, and few enough for their values to
/// fit into one answer (64 MiB) though they are long.
const KEYS_MAX: usize = 512;
/// Bytes of the commands of one round, unless one is longer; and of the replies that need no reading.
const BYTES_MAX: usize = 1 << 20;
/// Commands of one round.
const COMMANDS_MAX: usize = 1_024;
/// Once so many bytes of replies are written, they are sent before the next.
const SEND_BYTES: usize = 256 << 10;

/// The commands of one round.
#[derive(Debug)]
pub(super) struct Round {
    groups: Vec<Group>,
    places: Vec<KeySlot>,
    entries: Vec<Entry>,
    /// Replies that need no reading.
    ready: Replies,
    /// Keys that are to be read.
    keys: usize,
    /// Bytes of the commands.
    bytes: usize,
    /// The entry that is to be written next, and what of `ready` is written.
    next: (usize, usize),
    errors: u64,
}

/// Keys of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The store.
    pub store: String,
    /// The keys.
    pub keys: BatchKeys,
    /// What its values are.
    pub value: ValueType,
}

/// Where the value of a key will be: its group, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeySlot {
    group: u32,
    key: u32,
}

/// The reply to one command.
#[derive(Debug)]
enum Entry {
    /// Written: in `ready`, until there.
    Ready {
        until: usize,
    },
    Get(KeySlot),
    Strlen(KeySlot),
    MultiGet(Range<usize>),
    Exists(Range<usize>),
}

/// What is done with the values of several keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Many {
    Values,
    Count,
}

impl Round {
    /// No command yet.
    pub fn new(version: Version) -> Self {
        Self {
            groups: Vec::new(),
            places: Vec::new(),
            entries: Vec::new(),
            ready: Replies::new(version),
            keys: 0,
            bytes: 0,
            next: (0, 0),
            errors: 0,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a command may still join.
    pub fn has_room_for(&self, command: &Command<'_>) -> bool {
        self.is_empty()
            || self.entries.len() < COMMANDS_MAX
                && self.keys + command.rest().len() <= KEYS_MAX
                && self.bytes + command.bytes() <= BYTES_MAX
                && self.ready.bytes().len() <= BYTES_MAX
    }

    /// Counts a command's bytes.
    pub fn note(&mut self, command: &Command<'_>) {
        self.bytes += command.bytes();
    }

    /// A reply that is there already.
    pub fn reply(&mut self, write: impl FnOnce(&mut Replies)) {
        write(&mut self.ready);
        self.entries.push(Entry::Ready { until: self.ready.bytes().len() });
    }

    /// An error, in full.
    pub fn refuse(&mut self, text: &str) {
        self.errors += 1;
        self.reply(|replies| replies.error(text));
    }

    /// The value of one key.
    pub fn get(&mut self, place: KeySlot) {
        self.entries.push(Entry::Get(place));
    }

    /// The length of the value of one key.
    pub fn strlen(&mut self, place: KeySlot) {
        self.entries.push(Entry::Strlen(place));
    }

    /// Several keys: `place` finds the place of each.
    ///
    /// # Errors
    /// The first of `place`; there is no reply then.
    pub fn many<'k>(
        &mut self,
        what: Many,
        keys: impl Iterator<Item = &'k [u8]>,
        mut place: impl FnMut(&mut Self, &'k [u8]) -> Result<KeySlot, String>,
    ) -> Result<(), String> {
        let first = self.places.len();
        for key in keys {
            let place = place(self, key)?;
            self.places.push(place);
        }
        let places = first..self.places.len();
        self.entries.push(match what {
            Many::Values => Entry::MultiGet(places),
            Many::Count => Entry::Exists(places),
        });
        Ok(())
    }

    /// Has a key read, `store:key`; `shape_of` knows what a store is that may be read. It is asked once per store.
    ///
    /// # Errors
    /// The reply, if there can be no such key.
    pub fn place(
        &mut self,
        key: &[u8],
        shape_of: impl FnOnce(&str) -> Result<StoreShape, String>,
    ) -> Result<KeySlot, String> {
        let (store, key) = split(key)?;
        let known = self.groups.iter().position(|group| group.store.as_bytes() == store);
        let group = match known {
            Some(group) => group,
            None => {
                let store = String::from_utf8_lossy(store).into_owned();
                let StoreShape { key, value } = shape_of(&store)?;
                let keys = match key {
                    KeyType::Id => BatchKeys::Ids(Vec::new()),
                    KeyType::String | KeyType::Bytes => BatchKeys::Bytes(ByteKeys::default()),
                };
                self.groups.push(Group { store, keys, value });
                self.groups.len() - 1
            }
        };
        let Group { store, keys, .. } = &mut self.groups[group];
        let index = keys.len();
        match keys {
            BatchKeys::Ids(ids) => ids.push(id(store, key)?),
            BatchKeys::Bytes(keys) if key.len() <= KEY_BYTES_MAX => keys.push(key),
            BatchKeys::Bytes(_) => {
                let (what, got, max) =
                    ("the length of a key in bytes", key.len() as u64, KEY_BYTES_MAX as u64);
                return Err(refusal(&QueryError::BatchTooLarge { what, got, max }));
            }
        }
        self.keys += 1;
        Ok(KeySlot { group: group as u32, key: index as u32 })
    }

    /// What is to be read, once all commands are there.
    pub fn reads(&mut self) -> Vec<Group> {
        // Of several commands it is kept: they may have to be read one by one.
        if 1 < self.entries.len() { self.groups.clone() } else { std::mem::take(&mut self.groups) }
    }

    /// Whether these answers are errors that the commands have only together.
    pub fn is_too_large(&self, answers: &[Result<Answer, QueryError>]) -> bool {
        let too_large = |answer: &Result<_, _>| matches!(answer, Err(QueryError::TooLarge { .. }));
        1 < self.entries.len() && answers.iter().any(too_large)
    }

    /// The same commands, a round each.
    pub fn one_by_one(self) -> impl Iterator<Item = Round> {
        let mut written = 0;
        (0..self.entries.len()).map(move |index| {
            let mut alone = Round::new(self.ready.version());
            match &self.entries[index] {
                Entry::Ready { until } => {
                    let bytes = &self.ready.bytes()[std::mem::replace(&mut written, *until)..*until];
                    alone.reply(|replies| replies.append(bytes));
                }
                Entry::Get(place) => {
                    let place = alone.place_of(&self, *place);
                    alone.get(place);
                }
                Entry::Strlen(place) => {
                    let place = alone.place_of(&self, *place);
                    alone.strlen(place);
                }
                Entry::MultiGet(places) => {
                    let places = alone.places_of(&self, places.clone());
                    alone.entries.push(Entry::MultiGet(places));
                }
                Entry::Exists(places) => {
                    let places = alone.places_of(&self, places.clone());
                    alone.entries.push(Entry::Exists(places));
                }
            }
            alone
        })
    }

    fn places_of(&mut self, whole: &Round, places: Range<usize>) -> Range<usize> {
        for place in &whole.places[places] {
            let place = self.place_of(whole, *place);
            self.places.push(place);
        }
        0..self.places.len()
    }

    /// Has a key of another round read in this one.
    fn place_of(&mut self, whole: &Round, place: KeySlot) -> KeySlot {
        let Group { store, keys, value } = &whole.groups[place.group as usize];
        let known = self.groups.iter().position(|group| group.store == *store);
        let group = known.unwrap_or_else(|| {
            self.groups.push(Group { store: store.clone(), keys: keys.select([]), value: *value });
            self.groups.len() - 1
        });
        let index = self.groups[group].keys.len();
        match (&mut self.groups[group].keys, keys) {
            (BatchKeys::Ids(into), BatchKeys::Ids(from)) => into.push(from[place.key as usize]),
            (BatchKeys::Bytes(into), BatchKeys::Bytes(from)) => into.push(from.get(place.key as usize)),
            _ => unreachable!("the keys of a store are of one type in a round"),
        }
        KeySlot { group: group as u32, key: index as u32 }
    }

    /// Writes replies, as many as are sent together; whether those were all. `answers` are to the groups, in their order.
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
                Entry::Get(place) => put(*place, answers, out),
                Entry::Strlen(place) => value(*place, answers)
                    .map(|value| out.integer(value.map_or(0, |value| value.len() as i64))),
                Entry::MultiGet(places) => {
                    out.array(places.len());
                    self.places[places.clone()].iter().try_for_each(|place| put(*place, answers, out))
                }
                Entry::Exists(places) => {
                    let there = self.places[places.clone()].iter().try_fold(0, |count, place| {
                        value(*place, answers).map(|value| count + i64::from(value.is_some()))
                    });
                    there.map(|count| out.integer(count))
                }
            };
            if let Err(text) = replied {
                // Never a part of a reply: clients could not tell it from the whole.
                out.truncate(start);
                out.error(&text);
                self.errors += 1;
            }
        }
        true
    }

    /// How many commands were answered with an error.
    pub fn errors(&self) -> u64 {
        self.errors
    }
}

fn value(
    place: KeySlot,
    answers: &[Result<Answer, QueryError>],
) -> Result<Option<std::borrow::Cow<'_, [u8]>>, String> {
    match answers.get(place.group as usize) {
        Some(Ok(answer)) => answer.value(place.key as usize),
        Some(Err(error)) => Err(refusal(error)),
        None => Err(refusal(&QueryError::Internal { detail: "a read was not answered".to_owned() })),
    }
}

fn put(place: KeySlot, answers: &[Result<Answer, QueryError>], out: &mut Replies) -> Result<(), String> {
    match value(place, answers)? {
        Some(value) => out.bulk(&value),
        None => out.null(),
    }
    Ok(())
}

/// The store and the key; keys may have further colons.
fn split(key: &[u8]) -> Result<(&[u8], &[u8]), String> {
    match key.iter().position(|byte| *byte == b':') {
        Some(colon) => Ok((&key[..colon], &key[colon + 1..])),
        None => Err(format!(
            "ERR bad_request: the key '{}' names no store (write STORE:KEY, as profiles:42)",
            shown(key)
        )),
    }
}

fn id(store: &str, key: &[u8]) -> Result<u64, String> {
    let digits = std::str::from_utf8(key).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        format!(
            "ERR wrong_key_type: the keys of store {store:?} are numbers from 0 to {}, not '{}' (write STORE:NUMBER)",
            u64::MAX,
            shown(key)
        )
    })
}

/// What came, in an error: no more of it than one can look at.
pub(super) fn shown(bytes: &[u8]) -> String {
    const SHOWN_BYTES: usize = 128;
    let shown = bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii().to_string();
    if SHOWN_BYTES < bytes.len() { shown + "…" } else { shown }
}
