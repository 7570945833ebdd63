//! The keys of a round, grouped by store.

use super::{
    answer::refusal,
    refused::{ErrorReply, shown},
};
use kith_query::{BatchKeys, QueryError, StoreShape};
use kith_schema::{KEY_BYTES_MAX, KeyType, ValueType};
use kith_types::ByteKeys;

/// The keys to read for the commands of one round.
#[derive(Debug, Default)]
pub(super) struct Keys {
    groups: Vec<Group>,
    count: usize,
}

/// Keys of one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub store: String,
    pub keys: BatchKeys,
    /// The type of the store's values.
    pub value: ValueType,
}

/// Where the value of a key will be found: the index of its group, and of the key in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeySlot {
    pub group: u32,
    pub key: u32,
}

/// Says which types the keys and values of a store have.
///
/// # Errors
/// The error reply, if there is no such store or the client may not read it.
pub(super) type ShapeOf<'a> = &'a dyn Fn(&str) -> Result<StoreShape, ErrorReply>;

impl Keys {
    /// The number of keys.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a key, which is written `store:key`. `shape_of` is called once per store.
    ///
    /// # Errors
    /// The error reply, if the key is not valid, or that of `shape_of`.
    pub fn add(&mut self, key: &[u8], shape_of: ShapeOf<'_>) -> Result<KeySlot, ErrorReply> {
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
        self.count += 1;
        Ok(KeySlot { group: group as u32, key: index as u32 })
    }

    /// Adds a key of another round.
    pub fn add_from(&mut self, whole: &Keys, slot: KeySlot) -> KeySlot {
        let Group { store, keys, value } = &whole.groups[slot.group as usize];
        let known = self.groups.iter().position(|group| group.store == *store);
        let group = known.unwrap_or_else(|| {
            self.groups.push(Group { store: store.clone(), keys: keys.select([]), value: *value });
            self.groups.len() - 1
        });
        let index = self.groups[group].keys.len();
        match (&mut self.groups[group].keys, keys) {
            (BatchKeys::Ids(into), BatchKeys::Ids(from)) => into.push(from[slot.key as usize]),
            (BatchKeys::Bytes(into), BatchKeys::Bytes(from)) => into.push(from.get(slot.key as usize)),
            _ => unreachable!("the keys of a store are of one type in a round"),
        }
        self.count += 1;
        KeySlot { group: group as u32, key: index as u32 }
    }

    /// A copy of the groups, for keys that may have to be read again.
    pub fn groups(&self) -> Vec<Group> {
        self.groups.clone()
    }

    /// Takes the groups out.
    pub fn take_groups(&mut self) -> Vec<Group> {
        std::mem::take(&mut self.groups)
    }
}

/// Splits `store:key` at the first colon.
fn split(key: &[u8]) -> Result<(&[u8], &[u8]), ErrorReply> {
    match key.iter().position(|byte| *byte == b':') {
        Some(colon) => Ok((&key[..colon], &key[colon + 1..])),
        None => Err(format!(
            "ERR bad_request: the key '{}' names no store (write STORE:KEY, as profiles:42)",
            shown(key)
        )),
    }
}

fn id(store: &str, key: &[u8]) -> Result<u64, ErrorReply> {
    let digits = std::str::from_utf8(key).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| {
        format!(
            "ERR wrong_key_type: the keys of store {store:?} are numbers from 0 to {}, not '{}' (write STORE:NUMBER)",
            u64::MAX,
            shown(key)
        )
    })
}
