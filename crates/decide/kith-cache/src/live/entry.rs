//! One entry: a value, and the place in the log at which it was read.

use super::indexed::IndexedIds;
use super::key::Key;
use super::prefix::Prefix;
use kith_live::{Association, Effect, ListPlace, Object, RowAnswer, RowQuery};
use kith_types::LogPoint;

/// A value that holds at the later of two places: the place at which it was read, and the place that the cache has
/// applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    /// The place at which the value was read. It reflects all changes up to this place.
    pub(crate) at: LogPoint,
    pub(crate) value: Value,
}

/// The value of an entry. `None` proves that the row does not exist.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Object(Option<Object>),
    Association(Option<Association>),
    Count(u64),
    /// A prefix of a list, or a page. Pages are never kept.
    List(Prefix),
    Ids(IndexedIds),
}

impl Entry {
    /// Converts the answer of a database. Returns `None` if the answer does not match the query, or
    /// is not cached.
    pub(crate) fn read(at: LogPoint, query: &RowQuery, answer: &RowAnswer) -> Option<Self> {
        let value = match (query, answer) {
            (RowQuery::Object(_), RowAnswer::Object(object)) => Value::Object(object.clone()),
            (RowQuery::Association(_), RowAnswer::Association(item)) => Value::Association(item.clone()),
            (RowQuery::Count(_), RowAnswer::Count(count)) => Value::Count(*count),
            (RowQuery::List { limit, .. }, RowAnswer::List(items)) => {
                Value::List(Prefix::read(items, *limit))
            }
            (RowQuery::Entries { index, key, after: None, limit }, RowAnswer::Ids(ids)) => {
                Value::Ids(IndexedIds::read(*index, key, ids, *limit)?)
            }
            _ => return None,
        };
        Some(Self { at, value })
    }

    /// Applies a change that touches `key`. Returns `false` if the value is unknown from then on.
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
            // A change does not contain a large object. All other combinations do not touch the key.
            _ => return !Key::touched(effect).contains(&key),
        }
        true
    }

    /// Returns the prefix, if the entry is a list.
    pub(crate) fn prefix(&self) -> Option<&Prefix> {
        match &self.value {
            Value::List(prefix) => Some(prefix),
            Value::Object(_) | Value::Association(_) | Value::Count(_) | Value::Ids(_) => None,
        }
    }

    /// Returns the objects, if the entry is of an index.
    pub(crate) fn ids(&self) -> Option<&[u64]> {
        if let Value::Ids(indexed) = &self.value { Some(indexed.ids()) } else { None }
    }

    /// Whether both entries are prefixes of a list, and this one is longer.
    pub(crate) fn knows_more_than(&self, other: &Entry) -> bool {
        let both = self.prefix().zip(other.prefix());
        both.is_some_and(|(this, other)| this.covers_all_of(other) && !other.covers_all_of(this))
    }

    /// Keeps at most `most` associations of a prefix.
    pub(crate) fn truncate(&mut self, most: usize) {
        if let Value::List(prefix) = &mut self.value {
            prefix.truncate(most);
        }
    }

    /// Returns the heap memory in bytes, including that of the `Arc` around the entry.
    pub(crate) fn weight(&self) -> u64 {
        let held = match &self.value {
            Value::Object(object) => object.as_ref().map_or(0, |object| object.data.bytes.len()),
            Value::Association(item) => item.as_ref().map_or(0, |item| item.data.bytes.len()),
            Value::Count(_) => 0,
            Value::List(prefix) => prefix.heap_bytes(),
            Value::Ids(indexed) => indexed.heap_bytes(),
        };
        (held + size_of::<Self>() + 4 * size_of::<usize>()) as u64
    }
}
