//! The types of a store's keys and values, as in its definition.

use crate::nearest;
use kith_types::{PartitionCount, PartitionId, partition_of_id, partition_of_key};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use strum::IntoStaticStr;
use thiserror::Error;

/// The longest key in bytes. The chunk set format has the same limit.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// The longest value in bytes: a record, a text or a JSON document.
pub const VALUE_BYTES_MAX: usize = 64 << 20;

/// The type of a store's keys. It is fixed when the store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum KeyType {
    /// Any `u64`. Its key bytes are the eight bytes in little-endian order.
    Id,
    /// UTF-8 text. Its key bytes are the text itself.
    String,
    /// Any bytes. Text formats have them as base64 (CSV, JSON).
    Bytes,
}

/// The type of a store's values. It is fixed when the store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// UTF-8 text.
    Text,
    /// Any bytes. Text formats have them as base64 (CSV, JSON).
    Bytes,
    /// One JSON document, stored as compact text that keeps the spelling of numbers.
    Json,
    /// A record under the store version's [`Schema`](crate::Schema).
    Record,
}

/// The name is not that of a key or value type.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{what} type {text:?} is unknown (one of {}){}", names.join(", "), near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
pub struct UnknownKind {
    /// `key` or `value`.
    pub what: &'static str,
    /// The name as written.
    pub text: String,
    /// All known names.
    pub names: Vec<&'static str>,
    /// The nearest known name, if one is near.
    pub near: Option<String>,
}

impl KeyType {
    /// All types, in the order in which help lists them.
    pub const ALL: [KeyType; 3] = [KeyType::Id, KeyType::String, KeyType::Bytes];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The partition of a key (`docs/formats/partition-function.md`); `None` if an id does not have eight bytes.
    #[inline]
    pub fn partition(self, key: &[u8], count: PartitionCount) -> Option<PartitionId> {
        match self {
            KeyType::Id => key.try_into().ok().map(|id| partition_of_id(u64::from_le_bytes(id), count)),
            KeyType::String | KeyType::Bytes => Some(partition_of_key(key, count)),
        }
    }
}

impl ValueType {
    /// All types, in the order in which help lists them.
    pub const ALL: [ValueType; 4] = [ValueType::Text, ValueType::Bytes, ValueType::Json, ValueType::Record];

    /// The name that users type.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

fn find<T: Copy>(
    what: &'static str,
    all: &[T],
    name: fn(T) -> &'static str,
    text: &str,
) -> Result<T, UnknownKind> {
    all.iter().copied().find(|&kind| name(kind) == text).ok_or_else(|| {
        let names: Vec<&'static str> = all.iter().map(|&kind| name(kind)).collect();
        UnknownKind { what, text: text.to_owned(), near: nearest(text, names.iter().copied()), names }
    })
}

impl FromStr for KeyType {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        find("key", &KeyType::ALL, KeyType::name, text)
    }
}

impl FromStr for ValueType {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        find("value", &ValueType::ALL, ValueType::name, text)
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_and_the_text_of_its_bytes_are_different_keys() {
        let count = PartitionCount::new(1_536).unwrap();
        let key = 7_u64.to_le_bytes();
        assert_eq!(KeyType::Id.partition(&key, count), Some(partition_of_id(7, count)));
        assert_eq!(KeyType::Bytes.partition(&key, count), Some(partition_of_key(&key, count)));
        assert_eq!(KeyType::Id.partition(&key[1..], count), None);
    }

    #[test]
    fn documents_spell_them_as_users_do() {
        for kind in ValueType::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        for kind in KeyType::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn names_are_read_back_and_others_get_a_hint() {
        for kind in KeyType::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        for kind in ValueType::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        let error = "recrod".parse::<ValueType>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "value type \"recrod\" is unknown (one of text, bytes, json, record); did you mean \"record\"?"
        );
    }
}
