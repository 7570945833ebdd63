//! The entries of all partitions, with one limit in bytes.

use super::entry::Entry;
use super::key::Key;
use crate::CacheCounters;
use crate::queues::Queues;
use kith_types::PartitionId;
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
    epoch: u64,
    pub(super) counters: CacheCounters,
}

impl Store {
    pub(super) fn new(bytes_max: u64) -> Self {
        let entry_bytes_max = bytes_max / ENTRY_SHARE;
        Self { entry_bytes_max, queues: Queues::new(bytes_max), epoch: 0, counters: CacheCounters::default() }
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
    pub(super) fn keep(&mut self, entry: EntryPlace, mut held: HeldEntry) {
        let kept = match fit(&mut held.entry, self.entry_bytes_max) {
            Some(weight) => self.queues.insert(entry, held, weight),
            None => None,
        };
        self.counters.note_kept(kept);
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
