//! Entries of indexes: the ids of all objects of the partition that have one value in a field with an index.
//!
//! A change of the log has an object as it is now, from which its keys follow, but not the keys that it had before. An
//! object is therefore added to the kept entries of its keys, and removed from all others that it is in.

use super::ask::{AskResult, Reader};
use super::entry::Value;
use super::guards::Guard;
use super::key::{FillKey, Key};
use super::partition::PartitionCache;
use super::query::{DatedAnswer, RowsAnswer};
use kith_live::{Effect, IndexEntry, IndexId, RowQuery};
use kith_types::{LogPoint, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most ids of an entry that is kept.
pub(super) const IDS_MAX: usize = 4_096;

/// The fewest ids that a look-up of one value reads from a database. Most values have fewer objects in a partition, so the answer
/// is known to be whole, and can be kept.
pub const IDS_MIN: u32 = 64;

/// The memory of one id in bytes, with the reference from the object to the entry.
const ID_BYTES: usize = 96;

/// All objects of the partition that an index has under one key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexedIds {
    index: IndexId,
    key: Arc<[u8]>,
    /// The ids of the objects, in ascending order.
    ids: Vec<u64>,
}

impl IndexedIds {
    /// Returns the entry that a database answers if it is asked for at most `limit` ids. Returns `None` if there may be
    /// more ids, or if there are too many to be kept.
    pub(crate) fn read(index: IndexId, key: &Arc<[u8]>, ids: &[u64], limit: u32) -> Option<Self> {
        let is_whole = (ids.len() as u64) < u64::from(limit);
        debug_assert!(ids.is_sorted(), "databases answer in ascending order");
        let key = Arc::clone(key);
        (is_whole && ids.len() <= IDS_MAX).then(|| Self { index, key, ids: ids.to_vec() })
    }

    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Whether these are the objects under this key. Another key may have the same hash.
    fn is_of(&self, index: IndexId, key: &[u8]) -> bool {
        self.index == index && *self.key == *key
    }

    /// Adds or removes an object, which has the entries `now`. Returns `false` if there are too many.
    fn change(&mut self, id: u64, now: &[IndexEntry]) -> bool {
        let belongs = now.iter().any(|entry| self.is_of(entry.index, &entry.key));
        match (self.ids.binary_search(&id), belongs) {
            (Ok(at), false) => {
                self.ids.remove(at);
            }
            (Err(at), true) => self.ids.insert(at, id),
            (Ok(_), true) | (Err(_), false) => {}
        }
        self.ids.len() <= IDS_MAX
    }

    /// Returns the heap memory in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.key.len() + self.ids.len() * ID_BYTES
    }
}

impl<W> Reader<'_, W> {
    /// At most `limit` ids after `after` under a key of an index.
    pub(super) fn entries(
        &mut self,
        index: IndexId,
        key: &Arc<[u8]>,
        after: Option<u64>,
        limit: u32,
    ) -> AskResult {
        if let Some((entry, at)) = self.look(FillKey::Entry(Key::of_entries(index, key)))
            && let Value::Ids(known) = &entry.value
            && known.is_of(index, key)
        {
            let first = after.map_or(0, |after| known.ids.partition_point(|id| *id <= after));
            let page = known.ids[first..].iter().take(limit as usize).copied().collect();
            return Ok(DatedAnswer { answer: RowsAnswer::Ids(page), from: at, until: at });
        }
        let limit = if after.is_none() { limit.max(IDS_MIN) } else { limit };
        Err(vec![RowQuery::Entries { index, key: Arc::clone(key), after, limit }])
    }
}

/// Applies to the entries of indexes a change of an object.
pub(super) fn touch_indexes<W>(
    cache: &mut PartitionCache<'_, W>,
    point: LogPoint,
    effect: &Effect,
    now: Timestamp,
) {
    let guards = cache.partition.guards;
    let (id, entries) = match effect {
        Effect::Object(object) => {
            let types = cache.store.types.as_ref();
            let entries = types.and_then(|it| it.entries(object.kind, object.id, &object.data).ok());
            (object.id, entries)
        }
        Effect::LargeObject(id) => (*id, None),
        Effect::NoObject(id) => (*id, Some(Vec::new())),
        Effect::Association { .. } | Effect::NoAssociation { .. } => return,
    };
    let Some(entries) = entries else {
        // The object may be in any entry now.
        if guards.hold(Guard::ForgetIndexes) {
            cache.partition.recent.note(Key::Indexes, point, now);
            cache.partition.indexes_epoch = cache.store.next_epoch();
        }
        return;
    };
    let mut keys: BTreeSet<Key> =
        entries.iter().map(|entry| Key::of_entries(entry.index, &entry.key)).collect();
    for key in &keys {
        cache.partition.recent.note(*key, point, now);
    }
    if guards.hold(Guard::LeaveOldKeys) {
        keys.extend(cache.store.entries_with(cache.id, id));
    }
    for key in keys {
        let epoch = cache.partition.epoch_of(key);
        cache.store.update((cache.id, key), epoch, |entry| {
            if guards.hold(Guard::IgnoreOlderChanges) && point <= entry.at {
                return true;
            }
            match &mut entry.value {
                Value::Ids(ids) => ids.change(id, &entries),
                _ => false,
            }
        });
        cache.store.refer((cache.id, key), epoch, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> Arc<[u8]> {
        vec![byte].into()
    }

    #[test]
    fn an_answer_as_long_as_its_limit_or_too_long_is_no_entry() {
        let read = |ids: &[u64], limit| IndexedIds::read(IndexId(1), &key(1), ids, limit);
        assert!(read(&[3, 4], 3).is_some() && read(&[3, 4], 2).is_none() && read(&[], 1).is_some());
        let many: Vec<u64> = (0..=IDS_MAX as u64).collect();
        assert!(read(&many, u32::MAX).is_none() && read(&many[1..], u32::MAX).is_some());
    }

    #[test]
    fn an_entry_has_the_objects_with_its_key_in_order() {
        let mut entry = IndexedIds::read(IndexId(1), &key(1), &[3, 7], 5).unwrap();
        let under = |index, byte| IndexEntry { index: IndexId(index), key: key(byte), id: 5, unique: false };
        assert!(entry.change(5, &[under(1, 1)]));
        assert!(entry.change(5, &[under(1, 2), under(1, 1)]), "it stays");
        assert_eq!(entry.ids(), [3, 5, 7]);
        assert!(entry.change(5, &[under(1, 2), under(2, 1)]), "another key, and another index");
        assert_eq!(entry.ids(), [3, 7]);
        let many: Vec<u64> = (10..10 + IDS_MAX as u64).collect();
        let mut entry = IndexedIds::read(IndexId(1), &key(1), &many, u32::MAX).unwrap();
        assert!(entry.change(10, &[under(1, 1)]) && !entry.change(5, &[under(1, 1)]), "one too many");
    }
}
