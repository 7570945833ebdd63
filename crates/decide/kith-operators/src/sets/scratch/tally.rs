//! Union with counts: the number of lists that contain each id. For a member's second degree these are the numbers of
//! common connections.

use super::Scratch;
use super::bitmap::Bitmap;
use super::sort::sort;

/// The span of ids up to which counts are kept in an array: 1 Mi counts are 4 MiB.
const DENSE_SPAN: u64 = 1 << 20;

/// The most array slots that are read per added id.
const SLOTS_PER_ID: u64 = 16;

/// The number of ids that are collected before they are counted, unless more ids are counted already.
const COUNT_AT: usize = 1 << 20;

/// Every id of any of the sorted, distinct `lists`, ascending, with the number of lists that contain it.
pub fn tally<'a>(lists: impl IntoIterator<Item = &'a [u64]>, scratch: &mut Scratch) -> (Vec<u64>, Vec<u32>) {
    for list in lists {
        scratch.tally.add(list);
    }
    scratch.tally.drain()
}

/// Adds tallies of disjoint sets of lists. Each is `(ids, counts)` with sorted and distinct ids.
pub fn merge_tallies(parts: &[(&[u64], &[u32])]) -> (Vec<u64>, Vec<u32>) {
    let pairs = |&(ids, counts): &(&[u64], &[u32])| -> Vec<(u64, u32)> {
        ids.iter().copied().zip(counts.iter().copied()).collect()
    };
    let mut all: Vec<(u64, u32)> = parts.iter().flat_map(pairs).collect();
    // A stable sort detects the sorted runs of the parts and merges them.
    all.sort_by_key(|&(id, _)| id);
    let (mut ids, mut counts) = (Vec::with_capacity(all.len()), Vec::<u32>::with_capacity(all.len()));
    for (id, count) in all {
        match counts.last_mut() {
            Some(last) if ids.last() == Some(&id) => *last = last.saturating_add(count),
            _ => {
                ids.push(id);
                counts.push(count);
            }
        }
    }
    (ids, counts)
}

/// Adds two tallies.
fn added(a: &(Vec<u64>, Vec<u32>), b: &(Vec<u64>, Vec<u32>)) -> (Vec<u64>, Vec<u32>) {
    let room = a.0.len().max(b.0.len());
    let (mut ids, mut counts) = (Vec::with_capacity(room), Vec::with_capacity(room));
    let (mut i, mut j) = (0, 0);
    loop {
        let (id, count) = match (a.0.get(i), b.0.get(j)) {
            (None, None) => return (ids, counts),
            (Some(x), Some(y)) if x == y => (*x, a.1[i].saturating_add(b.1[j])),
            (Some(x), Some(y)) if y < x => (*y, b.1[j]),
            (Some(x), _) => (*x, a.1[i]),
            (None, Some(y)) => (*y, b.1[j]),
        };
        i += usize::from(a.0.get(i) == Some(&id));
        j += usize::from(b.0.get(j) == Some(&id));
        ids.push(id);
        counts.push(count);
    }
}

/// The size of a tally of this many ids in bytes.
pub(crate) fn tally_bytes(ids: usize) -> usize {
    ids * (size_of::<u64>() + size_of::<u32>())
}

/// A tally under way. Draining empties it and keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct TallyBuilder {
    /// The ids and counts so far. They bound the memory by the result and not by the number of lists.
    counted: (Vec<u64>, Vec<u32>),
    /// Ids that are not counted yet, including duplicates.
    ids: Vec<u64>,
    spare: Vec<u64>,
    /// Counts of a dense range of ids. Invariant: all zero between calls.
    slots: Vec<u32>,
    /// The slots with a count.
    bitmap: Bitmap,
}

impl TallyBuilder {
    /// Adds a sorted, distinct list.
    pub(crate) fn add(&mut self, list: &[u64]) {
        self.ids.extend_from_slice(list);
        if COUNT_AT.max(self.counted.0.len()) <= self.ids.len() {
            self.counted = self.drain();
        }
    }

    /// The size of the counted ids in bytes. The size of those not yet counted is at most as large, or else a few MiB.
    pub(crate) fn bytes(&self) -> usize {
        tally_bytes(self.counted.0.len())
    }

    /// Empties it, and frees memory beyond this many ids.
    pub(crate) fn shrink(&mut self, ids: usize) {
        self.counted = Default::default();
        self.ids.clear();
        self.ids.shrink_to(ids);
        self.spare.clear();
        self.spare.shrink_to(ids);
    }

    /// Returns the ids, ascending and distinct, with their counts.
    pub(crate) fn drain(&mut self) -> (Vec<u64>, Vec<u32>) {
        let counted = std::mem::take(&mut self.counted);
        let rest = self.drain_uncounted();
        if counted.0.is_empty() { rest } else { added(&counted, &rest) }
    }

    fn drain_uncounted(&mut self) -> (Vec<u64>, Vec<u32>) {
        let (Some(&least), Some(&greatest)) = (self.ids.iter().min(), self.ids.iter().max()) else {
            return (Vec::new(), Vec::new());
        };
        let span = greatest - least;
        let dense = span < DENSE_SPAN && span <= SLOTS_PER_ID * self.ids.len() as u64;
        let tallies = if dense { self.count_in_slots(least, greatest) } else { self.count_runs() };
        self.ids.clear();
        tallies
    }

    fn count_in_slots(&mut self, least: u64, greatest: u64) -> (Vec<u64>, Vec<u32>) {
        let slots = (greatest - least) as usize + 1;
        if self.slots.len() < slots {
            self.slots.resize(slots, 0);
        }
        for &id in &self.ids {
            self.slots[(id - least) as usize] += 1;
        }
        self.bitmap.insert_within(least, least, greatest, &self.ids);
        let mut ids = Vec::new();
        self.bitmap.drain_into(least, &mut ids);
        let counts = ids.iter().map(|&id| std::mem::take(&mut self.slots[(id - least) as usize])).collect();
        (ids, counts)
    }

    fn count_runs(&mut self) -> (Vec<u64>, Vec<u32>) {
        sort(&mut self.ids, &mut self.spare);
        self.ids.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).unzip()
    }
}
