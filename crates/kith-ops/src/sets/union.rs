//! Union of many lists that arrive one by one (the neighbour union of Moolle §IV-A).
//!
//! Few ids are collected and sorted. From a few thousand on they go into a bitmap
//! window; ids outside of it are collected, and sorted at the end. As they lie
//! outside, they come before or after all of the window's ids.

use super::Scratch;
use super::bitmap::{Bitmap, SPAN};
use super::sort::sort_distinct;

/// Ids collected before a window is opened: up to here sorting costs less than
/// clearing and reading a wide window.
const COLLECT_MAX: usize = 4_096;

/// Collected ids are made distinct when they reach this many, or twice what was left the last
/// time: memory is bound by the result, not by the number of lists.
const COMPACT_AT: usize = 1 << 20;

/// Words of window that may be read per id added. One word costs about a tenth of an id's share in a sort.
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
    /// First id of the window, once it is open.
    window: Option<u64>,
    /// Ids that are not in the bitmap, in any order, repeats included.
    loose: Vec<u64>,
    /// Least and greatest id of `loose`, as long as there is no window.
    range: Option<(u64, u64)>,
    /// Length of `loose` after it was last made distinct.
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

    /// How many ids the union has, without writing it down.
    pub(crate) fn drain_count(&mut self) -> u64 {
        self.settle();
        let count = self.bitmap.count() + self.loose.len() as u64;
        self.clear();
        count
    }

    /// Makes what was added distinct when its loose ids take more than `bytes_max`, and says whether they fit then. They may take a
    /// quarter more until then, so that it is not done for each list.
    pub(crate) fn compact_to(&mut self, bytes_max: usize) -> bool {
        let ids_max = bytes_max / size_of::<u64>();
        if self.loose.len() <= ids_max + ids_max / 4 {
            return true;
        }
        sort_distinct(&mut self.loose, &mut self.spare);
        self.compacted = self.loose.len();
        self.compacted <= ids_max
    }

    /// How many ids the union has.
    pub(crate) fn settled_len(&mut self) -> usize {
        self.settle();
        self.bitmap.count() as usize + self.loose.len()
    }

    /// Empties it, and gives back memory beyond so many ids.
    pub(crate) fn shrink(&mut self, ids: usize) {
        self.clear();
        self.loose.shrink_to(ids);
        self.spare.clear();
        self.spare.shrink_to(ids);
    }

    /// The bitmap, for kernels that need no more of a builder. Must be left empty.
    pub(super) fn bitmap(&mut self) -> &mut Bitmap {
        &mut self.bitmap
    }

    /// Forgets everything: after an error half-way.
    pub(crate) fn clear(&mut self) {
        self.bitmap.clear();
        self.loose.clear();
        (self.window, self.range, self.compacted) = (None, None, 0);
    }

    /// Opens a window if what was seen so far fits into one.
    fn open_window(&mut self) {
        let Some((least, greatest)) = self.range else { return };
        if SPAN <= greatest - least {
            return;
        }
        // Ids from 0 on are the usual case; otherwise leave as much room below as above.
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

    /// Makes the loose ids sorted and distinct, by the bitmap if they lie close enough.
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
