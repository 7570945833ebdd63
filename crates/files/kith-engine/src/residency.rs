//! Measures how much of an open version is in memory, and tells readers what to do if not all of it is.
//!
//! Data may be larger than memory. The system then keeps what is read most. A thread that reads any other page waits for
//! the disk. A serving process therefore measures from time to time ([`MappedPacks::residency`]), marks the files
//! ([`MappedPacks::set_cold`]), and answers from cold files on threads that may block.

use crate::map::Mapping;
use kith_types::fmix64;
use std::ops::Add;
use std::sync::Arc;

/// A sample of pages of mapped files, and how many of them were in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// The number of pages in the sample.
    pub pages: u32,
    /// The number of these pages that were in memory.
    pub resident: u32,
}

impl Residency {
    /// Whether every page of the sample was in memory.
    pub fn is_whole(self) -> bool {
        self.resident == self.pages
    }

    /// The share that was in memory, from 0 to 1. An empty sample gives 1.
    pub fn ratio(self) -> f64 {
        if self.pages == 0 { 1.0 } else { f64::from(self.resident) / f64::from(self.pages) }
    }
}

impl Add for Residency {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { pages: self.pages + other.pages, resident: self.resident + other.resident }
    }
}

/// The mapped packs of an open version. Cheap to clone; the packs stay mapped as long as a clone lives.
#[derive(Clone, Debug)]
pub struct MappedPacks {
    packs: Arc<[Arc<Mapping>]>,
}

impl MappedPacks {
    pub(crate) fn new(packs: Vec<Arc<Mapping>>) -> Self {
        Self { packs: packs.into() }
    }

    /// Samples `pages` pages, drawn uniformly from all bytes. If one page in a thousand is not in memory, a sample of ten
    /// thousand pages misses all such pages in only five of a hundred thousand cases. Costs one system call per page, and
    /// reads nothing. If the system cannot tell, all pages count as in memory.
    pub fn residency(&self, pages: u32, seed: u64) -> Residency {
        let bytes: u64 = self.packs.iter().map(|pack| pack.len() as u64).sum();
        if bytes == 0 {
            return Residency::default();
        }
        let drawn = (0..u64::from(pages)).map(|draw| fmix64(seed ^ fmix64(draw)) % bytes);
        let resident = drawn.filter(|&at| self.is_resident(at)).count() as u32;
        Residency { pages, resident }
    }

    fn is_resident(&self, mut at: u64) -> bool {
        for pack in self.packs.iter() {
            match at.checked_sub(pack.len() as u64) {
                Some(rest) => at = rest,
                None => return pack.is_resident(at as usize),
            }
        }
        true
    }

    /// Whether any pack is marked as cold.
    pub fn is_cold(&self) -> bool {
        self.packs.iter().any(|pack| pack.is_cold())
    }

    /// Marks the packs as cold or not. With cold packs, readers prefetch the pages of a whole batch at once instead of
    /// cache lines, and the system reads no surrounding pages. A key whose record lies on few pages then costs at most two
    /// disk reads, one for its index and one for its data.
    pub fn set_cold(&self, is_cold: bool) {
        self.packs.iter().for_each(|pack| pack.set_cold(is_cold));
    }
}
