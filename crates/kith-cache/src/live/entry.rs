//! One entry: a value, and the place in the log at which it was read.

use super::key::Key;
use super::prefix::Prefix;
use kith_live::{Association, Effect, ListPlace, Object, RowAnswer, RowQuery};
use kith_types::LogPoint;

/// A value as of the later of two places: the one at which it was read, and the one that the cache has applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// Where it was read. It contains all changes up to there.
    pub(crate) at: LogPoint,
    pub(crate) value: Value,
}

/// `None` is the proof that there is nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Object(Option<Object>),
    Association(Option<Association>),
    Count(u64),
    /// Also pages, which are never kept.
    List(Prefix),
}

impl Entry {
    /// What a database answered. `None` if the answer is not one to the query, or is not cached.
    pub(crate) fn read(at: LogPoint, query: &RowQuery, answer: &RowAnswer) -> Option<Self> {
        let value = match (query, answer) {
            (RowQuery::Object(_), RowAnswer::Object(object)) => Value::Object(object.clone()),
            (RowQuery::Association(_), RowAnswer::Association(item)) => Value::Association(item.clone()),
            (RowQuery::Count(_), RowAnswer::Count(count)) => Value::Count(*count),
            (RowQuery::List { limit, .. }, RowAnswer::List(items)) => {
                Value::List(Prefix::read(items, *limit))
            }
            _ => return None,
        };
        Some(Self { at, value })
    }

    /// Applies a change that touches `key`. `false` if the value is unknown from then on.
    pub(crate) fn apply(&mut self, key: Key, effect: &Effect) -> bool {
        match (&mut self.value, effect) {
            (Value::Object(object), Effect::Object(now)) => *object = Some(now.clone()),
            (Value::Object(object), Effect::NoObject(_)) => *object = None,
            (Value::Association(item), Effect::Association { now, .. }) => *item = Some(now.clone()),
            (Value::Association(item), Effect::NoAssociation { .. }) => *item = None,
            (
                Value::Count(length),
                Effect::Association { count, .. } | Effect::NoAssociation { count, .. },
            ) => *length = *count,
            (Value::List(prefix), Effect::Association { now, was, count, .. }) => {
                return prefix.put(now, *was, *count);
            }
            (Value::List(prefix), Effect::NoAssociation { id2, was, count, .. }) => {
                return prefix.remove(ListPlace { time: *was, id2: *id2 }, *count);
            }
            // A large object is not part of the change. Other combinations do not touch the key.
            _ => return !Key::touched(effect).contains(&key),
        }
        true
    }

    /// The prefix, if the entry is one.
    pub(crate) fn prefix(&self) -> Option<&Prefix> {
        match &self.value {
            Value::List(prefix) => Some(prefix),
            Value::Object(_) | Value::Association(_) | Value::Count(_) => None,
        }
    }

    /// Keeps at most this many associations of a prefix.
    pub(crate) fn truncate(&mut self, most: usize) {
        if let Value::List(prefix) = &mut self.value {
            prefix.truncate(most);
        }
    }

    /// Bytes on the heap, those of the `Arc` that shares the entry included.
    pub(crate) fn weight(&self) -> u64 {
        let held = match &self.value {
            Value::Object(object) => object.as_ref().map_or(0, |object| object.data.bytes.len()),
            Value::Association(item) => item.as_ref().map_or(0, |item| item.data.bytes.len()),
            Value::Count(_) => 0,
            Value::List(prefix) => prefix.heap_bytes(),
        };
        (held + size_of::<Self>() + 4 * size_of::<usize>()) as u64
    }
}
