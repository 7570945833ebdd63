//! How much of an open version is in memory, and what readers do where it is not all of it.
//!
//! Data may be larger than memory. The system then keeps what is read most; whatever else a reader touches, its thread
//! waits for the disk. So whoever serves asks now and then ([`Mapped::residency`]), tells the files
//! ([`Mapped::set_cold`]), and answers from cold ones on threads that may wait.

use crate::map::Mapping;
use kith_types::fmix64;
use std::ops::Add;
use std::sync::Arc;

/// Pages of mapped files that were looked at, and how many of them were in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// Pages looked at.
    pub pages: u32,
    /// Pages among them that were in memory.
    pub resident: u32,
}

impl Residency {
    /// Whether every page looked at was in memory.
    pub fn is_whole(self) -> bool {
        self.resident == self.pages
    }

    /// The share that was in memory, 0 to 1; 1 of nothing.
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

/// The mapped packs of an open version. Cheap to clone; they stay mapped as long as it lives.
#[derive(Clone, Debug)]
pub struct Mapped {
    packs: Arc<[Arc<Mapping>]>,
}

impl Mapped {
    pub(crate) fn new(packs: Vec<Arc<Mapping>>) -> Self {
        Self { packs: packs.into() }
    }

    /// Looks at `pages` pages, drawn evenly from all bytes; with one that is not among every thousand it meets one in all
    /// but five of a hundred thousand draws of ten thousand pages. One system call a page, which reads nothing. A system
    /// that does not tell has all in memory.
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

    /// Whether readers take it that pages have to come from the disk.
    pub fn is_cold(&self) -> bool {
        self.packs.iter().any(|pack| pack.is_cold())
    }

    /// Has readers load ahead pages instead of cache lines, those of a batch at once, and the system read nothing beside
    /// them: at most two reads of the disk for a key whose record is on few pages, one of its index and one of its data.
    pub fn set_cold(&self, is_cold: bool) {
        self.packs.iter().for_each(|pack| pack.set_cold(is_cold));
    }
}
