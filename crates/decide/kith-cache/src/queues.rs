//! Eviction by S3-FIFO, weighted by bytes (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023),
//! with an extra queue for superseded entries.
//!
//! New entries wait in a small queue. Those that are requested again there move to the main queue; the others are
//! evicted, and their keys are remembered as ghosts. A ghost that comes back goes directly to the main queue. Thus one
//! pass over rarely requested members never evicts the popular ones. Entries of superseded versions are evicted first.

use crate::lists::{Lists, Slot};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const OVER: usize = 0;
const SMALL: usize = 1;
const MAIN: usize = 2;

/// The small queue gets a tenth of the bytes, as in the paper.
const SMALL_SHARE: u64 = 10;

/// Hits are counted in two bits, as in the paper.
const HITS_MAX: u8 = 3;

#[derive(Debug)]
pub(crate) struct Entry<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
    weight: u64,
    hits: u8,
}

/// All entries.
#[derive(Debug)]
pub(crate) struct Queues<K, V> {
    bytes_max: u64,
    entries: BTreeMap<K, Slot>,
    lists: Lists<Entry<K, V>, 3>,
    /// The bytes in each list.
    bytes: [u64; 3],
    ghosts: Ghosts<K>,
    /// Which entries are handed out when they are removed.
    handed_out: fn(&K) -> bool,
    /// Entries that were removed since they were last taken.
    removed: Vec<(K, V)>,
}

impl<K: Clone + Ord, V> Queues<K, V> {
    /// The memory of an entry in addition to its own heap: slot, key, and the key's place in the map.
    pub(crate) const OVERHEAD: u64 = (size_of::<Entry<K, V>>() + 2 * size_of::<K>() + 32) as u64;

    pub(crate) fn new(bytes_max: u64) -> Self {
        let ghosts = Ghosts { order: VecDeque::new(), keys: BTreeSet::new() };
        let (handed_out, removed) = (|_: &K| false, Vec::new());
        let (entries, lists) = (BTreeMap::new(), Lists::new());
        Self { bytes_max, entries, lists, bytes: [0; 3], ghosts, handed_out, removed }
    }

    /// As [`Queues::new`]. Entries with such keys are kept for [`Queues::take_removed`] when they are removed.
    pub(crate) fn handing_out(bytes_max: u64, handed_out: fn(&K) -> bool) -> Self {
        Self { handed_out, ..Self::new(bytes_max) }
    }

    /// Returns the entries that were removed, evicted or replaced since the last call.
    pub(crate) fn take_removed(&mut self) -> Vec<(K, V)> {
        std::mem::take(&mut self.removed)
    }

    pub(crate) fn get(&self, key: &K) -> Option<&Entry<K, V>> {
        self.entries.get(key).map(|&slot| self.lists.get(slot))
    }

    /// Returns the value for a change in place. Call [`Queues::reweigh`] afterwards.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get(key).map(|&slot| &mut self.lists.get_mut(slot).value)
    }

    /// Sets the weight of an entry whose value has changed. Returns how many entries were evicted, possibly including
    /// this one.
    pub(crate) fn reweigh(&mut self, key: &K, weight: u64) -> u64 {
        let Some(&slot) = self.entries.get(key) else { return 0 };
        let weight = weight.saturating_add(Self::OVERHEAD);
        if self.bytes_max < weight {
            return u64::from(self.remove(key));
        }
        let was = std::mem::replace(&mut self.lists.get_mut(slot).weight, weight);
        let bytes = &mut self.bytes[self.lists.list(slot)];
        *bytes = *bytes - was + weight;
        let mut evicted = 0;
        while self.bytes_max < self.total_bytes() {
            evicted += u64::from(self.evict());
        }
        evicted
    }

    /// Records a hit of the entry.
    pub(crate) fn touch(&mut self, key: &K) {
        if let Some(&slot) = self.entries.get(key) {
            let entry = self.lists.get_mut(slot);
            entry.hits = HITS_MAX.min(entry.hits + 1);
        }
    }

    /// Inserts a value, or replaces the key's previous one. Returns how many entries were evicted. Returns `None` and
    /// changes nothing if the value alone is too heavy.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: u64) -> Option<u64> {
        let weight = weight.saturating_add(Self::OVERHEAD);
        if self.bytes_max < weight {
            return None;
        }
        let known = self.remove(&key) | self.ghosts.remove(&key);
        let mut evicted = 0;
        while self.bytes_max - weight < self.total_bytes() {
            evicted += u64::from(self.evict());
        }
        let list = if known { MAIN } else { SMALL };
        self.bytes[list] += weight;
        let slot = self.lists.push(list, Entry { key: key.clone(), value, weight, hits: 0 });
        self.entries.insert(key, slot);
        Some(evicted)
    }

    /// Removes the entry. Returns whether there was one.
    pub(crate) fn remove(&mut self, key: &K) -> bool {
        match self.entries.remove(key) {
            Some(slot) => {
                self.bytes[self.lists.list(slot)] -= self.lists.get(slot).weight;
                let entry = self.lists.remove(slot);
                if (self.handed_out)(key) {
                    self.removed.push((entry.key, entry.value));
                }
                true
            }
            None => false,
        }
    }

    /// Whether there is an entry and it is in the queue of superseded entries.
    pub(crate) fn is_over(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|slot| self.lists.list(*slot) == OVER)
    }

    /// Moves entries to the queue of superseded entries. `O(entries)`, once per new version.
    pub(crate) fn set_over(&mut self, mut which: impl FnMut(&K, &V) -> bool) {
        for slot in self.lists.slots() {
            let entry = self.lists.get(slot);
            if self.lists.list(slot) != OVER && which(&entry.key, &entry.value) {
                self.shift(slot, OVER);
            }
        }
    }

    /// Removes entries. Returns how many. `O(entries)`.
    pub(crate) fn remove_all(&mut self, mut which: impl FnMut(&K) -> bool) -> u64 {
        let doomed: Vec<K> = self.entries.keys().filter(|key| which(key)).cloned().collect();
        doomed.iter().filter(|key| self.remove(key)).count() as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Returns the bytes of entries that are not superseded.
    pub(crate) fn bytes_of_use(&self) -> u64 {
        self.total_bytes() - self.bytes[OVER]
    }

    /// Takes one step towards freeing memory. Returns whether an entry was evicted. Amortized `O(log entries)`, because
    /// a step that evicts nothing uses up a hit.
    fn evict(&mut self) -> bool {
        if let Some(slot) = self.lists.oldest(OVER) {
            self.drop_slot(slot);
            return true;
        }
        let small = self.bytes_max / SMALL_SHARE <= self.bytes[SMALL] || self.bytes[MAIN] == 0;
        let list = if small { SMALL } else { MAIN };
        let slot = self.lists.oldest(list).expect("a list with weight has an entry");
        let entry = self.lists.get_mut(slot);
        if entry.hits == 0 {
            if small {
                self.ghosts.add(entry.key.clone(), self.entries.len());
            }
            self.drop_slot(slot);
            return true;
        }
        entry.hits = if small { 0 } else { entry.hits - 1 };
        self.shift(slot, MAIN);
        false
    }

    fn drop_slot(&mut self, slot: Slot) {
        let key = self.lists.get(slot).key.clone();
        self.remove(&key);
    }

    fn shift(&mut self, slot: Slot, list: usize) {
        let weight = self.lists.get(slot).weight;
        self.bytes[self.lists.list(slot)] -= weight;
        self.bytes[list] += weight;
        self.lists.shift(slot, list);
    }
}

/// Keys that left the small queue recently.
#[derive(Debug)]
struct Ghosts<K> {
    order: VecDeque<K>,
    keys: BTreeSet<K>,
}

impl<K: Clone + Ord> Ghosts<K> {
    /// Adds a key, and keeps only the last `most` keys: as many as there are entries.
    fn add(&mut self, key: K, most: usize) {
        if self.keys.insert(key.clone()) {
            self.order.push_back(key);
        }
        while most < self.order.len() {
            if let Some(key) = self.order.pop_front() {
                self.keys.remove(&key);
            }
        }
    }

    /// Removes a key. Returns whether it was known. Its place in the order expires over time.
    fn remove(&mut self, key: &K) -> bool {
        self.keys.remove(key)
    }
}
