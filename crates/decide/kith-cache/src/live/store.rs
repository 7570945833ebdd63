//! The entries of all partitions, with one limit in bytes.

use super::entry::Entry;
use super::key::Key;
use crate::CacheCounters;
use crate::queues::Queues;
use kith_live::{GraphTypes, IndexId};
use kith_types::PartitionId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The most associations of a list that are kept. This is more than a read returns by default (6,000), so that such a
/// read can be answered from memory. Of longer lists, only the newest part is kept.
pub(super) const PREFIX_MAX: usize = 8_192;

/// One entry takes at most this share of the bytes.
const ENTRY_SHARE: u64 = 16;

pub(super) type EntryPlace = (PartitionId, Key);

/// One entry that is kept.
#[derive(Debug)]
pub(super) struct HeldEntry {
    /// The epoch of its partition in which it was filled.
    pub(super) epoch: u64,
    pub(super) entry: Arc<Entry>,
}

/// All entries.
#[derive(Debug)]
pub(super) struct Store {
    entry_bytes_max: u64,
    queues: Queues<EntryPlace, HeldEntry>,
    /// The entries of indexes in which objects are: the partition, the object, the index, and the hash of the key.
    references: BTreeSet<(PartitionId, u64, IndexId, u64)>,
    /// The types of the graph, from which the keys of objects in indexes follow; `None` if they are unknown.
    pub(super) types: Option<Arc<GraphTypes>>,
    epoch: u64,
    pub(super) counters: CacheCounters,
}

impl Store {
    pub(super) fn new(bytes_max: u64) -> Self {
        let entry_bytes_max = bytes_max / ENTRY_SHARE;
        let queues = Queues::handing_out(bytes_max, |(_, key)| matches!(key, Key::Entries(..)));
        let (references, counters) = (BTreeSet::new(), CacheCounters::default());
        Self { entry_bytes_max, queues, references, types: None, epoch: 0, counters }
    }

    /// Returns a new epoch, which no entry has.
    pub(super) fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// Returns the entry, if it is of this epoch.
    pub(super) fn get(&self, entry: EntryPlace, epoch: u64) -> Option<&Arc<Entry>> {
        self.queues.get(&entry).filter(|kept| kept.value.epoch == epoch).map(|kept| &kept.value.entry)
    }

    /// As [`Store::get`], for a query; counts as a hit.
    pub(super) fn read(&mut self, slot: EntryPlace, epoch: u64) -> Option<Arc<Entry>> {
        let entry = Arc::clone(self.get(slot, epoch)?);
        self.queues.touch(&slot);
        Some(entry)
    }

    /// Keeps an entry. If a list is too long, keeps its newest part.
    pub(super) fn keep(&mut self, slot: EntryPlace, mut held: HeldEntry) {
        let weight = fit(&mut held.entry, self.entry_bytes_max);
        let entry = Arc::clone(&held.entry);
        let kept = weight.and_then(|weight| self.queues.insert(slot, held, weight));
        self.counters.note_kept(kept);
        self.forget_references();
        if let (Some(_), Some(ids), (partition, Key::Entries(index, hash))) = (kept, entry.ids(), slot) {
            self.references.extend(ids.iter().map(|id| (partition, *id, index, hash)));
        }
    }

    /// Changes an entry of this epoch. Removes it if `change` returns `false`, which means that its value is unknown.
    pub(super) fn update(&mut self, entry: EntryPlace, epoch: u64, change: impl FnOnce(&mut Entry) -> bool) {
        let Some(held) = self.queues.get_mut(&entry) else { return };
        let known = held.epoch == epoch && change(Arc::make_mut(&mut held.entry));
        let weight = if known { fit(&mut held.entry, self.entry_bytes_max) } else { None };
        match weight {
            Some(weight) => self.counters.evictions += self.queues.reweigh(&entry, weight),
            None => {
                self.queues.remove(&entry);
                self.counters.expired += 1;
            }
        }
        self.forget_references();
    }

    /// Returns the keys of the entries of indexes that an object is in.
    pub(super) fn entries_with(&self, partition: PartitionId, id: u64) -> impl Iterator<Item = Key> {
        let (first, last) = (IndexId(0), IndexId(u32::MAX));
        let of_object = (partition, id, first, 0)..=(partition, id, last, u64::MAX);
        self.references.range(of_object).map(|(_, _, index, hash)| Key::Entries(*index, *hash))
    }

    /// Refers from an object to an entry of an index that has changed, if the object is in it now.
    pub(super) fn refer(&mut self, slot: EntryPlace, epoch: u64, id: u64) {
        let (partition, Key::Entries(index, hash)) = slot else { return };
        let reference = (partition, id, index, hash);
        let ids = self.get(slot, epoch).and_then(|entry| entry.ids());
        match ids.is_some_and(|ids| ids.binary_search(&id).is_ok()) {
            true => self.references.insert(reference),
            false => self.references.remove(&reference),
        };
    }

    #[cfg(test)]
    pub(super) fn reference_count(&self) -> usize {
        self.references.len()
    }

    /// Removes the references to entries that are no longer kept.
    fn forget_references(&mut self) {
        for ((partition, key), held) in self.queues.take_removed() {
            let (Key::Entries(index, hash), Some(ids)) = (key, held.entry.ids()) else { continue };
            for id in ids {
                self.references.remove(&(partition, *id, index, hash));
            }
        }
    }

    pub(super) fn counters(&self) -> CacheCounters {
        CacheCounters { entries: self.queues.len() as u64, bytes: self.queues.total_bytes(), ..self.counters }
    }
}

/// Shortens a list until it has at most `most` bytes. Returns the weight of the entry; `None` if it cannot be shortened
/// enough.
fn fit(entry: &mut Arc<Entry>, most: u64) -> Option<u64> {
    if entry.prefix().is_some_and(|prefix| PREFIX_MAX < prefix.items().len()) {
        Arc::make_mut(entry).truncate(PREFIX_MAX);
    }
    loop {
        let weight = entry.weight();
        if weight <= most {
            return Some(weight);
        }
        let half = entry.prefix()?.items().len() / 2;
        if half == 0 {
            return None;
        }
        Arc::make_mut(entry).truncate(half);
    }
}
