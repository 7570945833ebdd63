//! Union of many lists that arrive one by one (the union of neighbours in Moolle §IV-A).
//!
//! A few ids are collected and sorted. From a few thousand on, they go into a bitmap window. Ids outside of the window are
//! collected, and sorted at the end. They come before or after all ids of the window.

use super::Scratch;
use super::bitmap::{Bitmap, SPAN};
use super::sort::sort_distinct;

/// The number of ids that are collected before a window is opened. Up to here, sorting costs less than clearing and reading
/// a wide window.
const COLLECT_MAX: usize = 4_096;

/// Duplicates are removed from the collected ids when there are this many, or twice as many as after the last time. So
/// memory is bounded by the result, and not by the number of lists.
const COMPACT_AT: usize = 1 << 20;

/// The most words of a window that are read per added id. A word costs about a tenth of an id's share in a sort.
const WORDS_PER_ID: u64 = 4;

/// Appends to `out` every id of any of the sorted, distinct `lists`, ascending and distinct.
pub fn union<'a>(lists: impl IntoIterator<Item = &'a [u64]>, scratch: &mut Scratch, out: &mut Vec<u64>) {
    for list in lists {
        scratch.union.add(list);
    }
    scratch.union.drain_into(out);
}

/// A union under way. Draining empties it and keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct UnionBuilder {
    bitmap: Bitmap,
    /// The first id of the window, once it is open.
    window: Option<u64>,
    /// Ids that are not in the bitmap, in any order, including duplicates.
    loose: Vec<u64>,
    /// The least and greatest id of `loose`, as long as there is no window.
    range: Option<(u64, u64)>,
    /// The length of `loose` after its duplicates were last removed.
    compacted: usize,
    spare: Vec<u64>,
}

impl UnionBuilder {
    /// Adds a sorted, distinct list.
    pub(crate) fn add(&mut self, list: &[u64]) {
        let (Some(&first), Some(&last)) = (list.first(), list.last()) else { return };
        if self.window.is_none() {
            let (least, greatest) = self.range.unwrap_or((first, last));
            self.range = Some((least.min(first), greatest.max(last)));
            if COLLECT_MAX < self.loose.len() + list.len() {
                self.open_window();
            }
        }
        match self.window {
            Some(base) => self.add_around(base, list),
            None => self.add_loose(list),
        }
    }

    /// Appends the union, ascending and distinct.
    pub(crate) fn drain_into(&mut self, out: &mut Vec<u64>) {
        self.settle();
        let base = self.window.unwrap_or(0);
        let below = self.loose.partition_point(|&id| id < base);
        out.extend_from_slice(&self.loose[..below]);
        self.bitmap.drain_into(base, out);
        out.extend_from_slice(&self.loose[below..]);
        self.clear();
    }

    /// Returns the number of ids in the union without listing them, and empties it.
    pub(crate) fn drain_count(&mut self) -> u64 {
        self.settle();
        let count = self.bitmap.count() + self.loose.len() as u64;
        self.clear();
        count
    }

    /// Removes duplicates if the loose ids take more than `bytes_max`, and returns whether they fit afterwards. They may
    /// take a quarter more before that, so that this is not done for each list.
    pub(crate) fn compact_to(&mut self, bytes_max: usize) -> bool {
        let ids_max = bytes_max / size_of::<u64>();
        if self.loose.len() <= ids_max + ids_max / 4 {
            return true;
        }
        sort_distinct(&mut self.loose, &mut self.spare);
        self.compacted = self.loose.len();
        self.compacted <= ids_max
    }

    /// The number of ids in the union.
    pub(crate) fn settled_len(&mut self) -> usize {
        self.settle();
        self.bitmap.count() as usize + self.loose.len()
    }

    /// Empties it, and frees memory beyond this many ids.
    pub(crate) fn shrink(&mut self, ids: usize) {
        self.clear();
        self.loose.shrink_to(ids);
        self.spare.clear();
        self.spare.shrink_to(ids);
    }

    /// The bitmap, for kernels that need only that. They must leave it empty.
    pub(super) fn bitmap(&mut self) -> &mut Bitmap {
        &mut self.bitmap
    }

    /// Drops everything, after an error.
    pub(crate) fn clear(&mut self) {
        self.bitmap.clear();
        self.loose.clear();
        (self.window, self.range, self.compacted) = (None, None, 0);
    }

    /// Opens a window if the ids so far fit into one.
    fn open_window(&mut self) {
        let Some((least, greatest)) = self.range else { return };
        if SPAN <= greatest - least {
            return;
        }
        // The window begins at 0 in the usual case. Otherwise there is as much room below the ids as above.
        let centre = least + (greatest - least) / 2;
        let base = if greatest < SPAN { 0 } else { centre.saturating_sub(SPAN / 2 - 1) };
        // Near the top of the id space the window would wrap around.
        let base = base.min(u64::MAX - SPAN + 1);
        self.loose.sort_unstable();
        self.bitmap.insert(base, &self.loose);
        self.loose.clear();
        self.window = Some(base);
    }

    fn add_around(&mut self, base: u64, list: &[u64]) {
        let end = base + (SPAN - 1);
        if base <= list[0] && list[list.len() - 1] <= end {
            self.bitmap.insert(base, list);
            return;
        }
        let (below, rest) = list.split_at(list.partition_point(|&id| id < base));
        let (within, above) = rest.split_at(rest.partition_point(|&id| id <= end));
        self.bitmap.insert(base, within);
        self.add_loose(below);
        self.add_loose(above);
    }

    fn add_loose(&mut self, list: &[u64]) {
        self.loose.extend_from_slice(list);
        if COMPACT_AT.max(2 * self.compacted) <= self.loose.len() {
            sort_distinct(&mut self.loose, &mut self.spare);
            self.compacted = self.loose.len();
        }
    }

    /// Sorts the loose ids and removes duplicates, with the bitmap if their span is small enough.
    fn settle(&mut self) {
        if let (None, Some((least, greatest))) = (self.window, self.range) {
            let words = (greatest - least) / 64;
            if greatest - least < SPAN && words <= WORDS_PER_ID * self.loose.len() as u64 {
                self.open_window();
                return;
            }
        }
        sort_distinct(&mut self.loose, &mut self.spare);
    }
}
