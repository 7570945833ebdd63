//! The entries of all partitions, bounded in bytes together.

use super::entry::Entry;
use super::key::Key;
use crate::CacheCounters;
use crate::queues::Queues;
use kith_types::PartitionId;
use std::sync::Arc;

/// The most associations of a list that are kept: more than a read returns by default (6,000), so that such a read can be
/// answered. Longer lists are not kept whole.
pub(super) const PREFIX_MAX: usize = 8_192;

/// No entry takes more than this share of the bytes.
const ENTRY_SHARE: u64 = 16;

/// Of which partition an entry is, and what it holds.
pub(super) type Place = (PartitionId, Key);

/// One entry that is kept.
#[derive(Debug)]
pub(super) struct Held {
    /// The epoch of its partition in which it was filled.
    pub(super) epoch: u64,
    pub(super) entry: Arc<Entry>,
}

/// All entries.
#[derive(Debug)]
pub(super) struct Store {
    entry_bytes_max: u64,
    queues: Queues<Place, Held>,
    epoch: u64,
    pub(super) counters: CacheCounters,
}

impl Store {
    pub(super) fn new(bytes_max: u64) -> Self {
        let entry_bytes_max = bytes_max / ENTRY_SHARE;
        Self { entry_bytes_max, queues: Queues::new(bytes_max), epoch: 0, counters: CacheCounters::default() }
    }

    /// An epoch that no entry has.
    pub(super) fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// The entry, if it is of this epoch.
    pub(super) fn get(&self, place: Place, epoch: u64) -> Option<&Arc<Entry>> {
        self.queues.get(&place).filter(|kept| kept.value.epoch == epoch).map(|kept| &kept.value.entry)
    }

    /// As [`Store::get`], for somebody who asks for it.
    pub(super) fn read(&mut self, place: Place, epoch: u64) -> Option<Arc<Entry>> {
        let entry = Arc::clone(self.get(place, epoch)?);
        self.queues.touch(&place);
        Some(entry)
    }

    /// Keeps an entry, or the newest part of a list that is too long.
    pub(super) fn keep(&mut self, place: Place, mut held: Held) {
        let kept = match fit(&mut held.entry, self.entry_bytes_max) {
            Some(weight) => self.queues.insert(place, held, weight),
            None => None,
        };
        self.counters.note_kept(kept);
    }

    /// Changes an entry of this epoch. It is dropped if `change` says that its value is unknown.
    pub(super) fn update(&mut self, place: Place, epoch: u64, change: impl FnOnce(&mut Entry) -> bool) {
        let Some(held) = self.queues.get_mut(&place) else { return };
        let known = held.epoch == epoch && change(Arc::make_mut(&mut held.entry));
        let weight = if known { fit(&mut held.entry, self.entry_bytes_max) } else { None };
        match weight {
            Some(weight) => self.counters.evictions += self.queues.reweigh(&place, weight),
            None => {
                self.queues.remove(&place);
                self.counters.expired += 1;
            }
        }
    }

    pub(super) fn counters(&self) -> CacheCounters {
        CacheCounters { entries: self.queues.len() as u64, bytes: self.queues.total_bytes(), ..self.counters }
    }
}

/// Shortens a list until it has at most `most` bytes. Returns what the entry weighs; `None` if it cannot be shortened.
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
