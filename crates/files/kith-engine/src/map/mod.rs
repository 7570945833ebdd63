//! Memory-mapped files that survive truncation. This is the only module with `unsafe`.
//!
//! Reading a page of a mapping that its file no longer has (because it was truncated, or because of a bad sector) raises
//! SIGBUS. [`sigbus`] then maps a page of zeros there, so that the read goes on. Readers call [`Slice::is_lost`] *after*
//! reading and before they trust what they read; the zeros themselves never match a checksum.
//!
//! A mapping covers a whole pack. A [`Slice`] is one logical file in it, and only slices on a lost page are lost.
//!
//! A mapping whose pages are not all in memory may be marked as cold ([`Mapping::set_cold`]). Readers then prefetch many
//! pages from the disk at a time instead of cache lines.

#![allow(unsafe_code)]

mod sigbus;
#[cfg(test)]
mod tests;

use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// A read-only mapping of a whole file.
pub(crate) struct Mapping {
    map: Mmap,
    slot: usize,
    /// Whether pages of it must be read from the disk.
    is_cold: AtomicBool,
}

impl Mapping {
    /// Maps the first `bytes` of a file.
    ///
    /// # Errors
    /// If the system refuses, or if too many files are mapped.
    pub(crate) fn new(file: &File, bytes: usize) -> io::Result<Self> {
        sigbus::install_handler()?;
        // SAFETY: component files are never written once they have their final name. If one is written all the same,
        // readers may see other bytes, which do not match the checksums. Truncation is what the handler is for.
        let map = unsafe { MmapOptions::new().len(bytes).map(file)? };
        let slot = sigbus::register(map.as_ptr() as usize, bytes)?;
        Ok(Self { map, slot, is_cold: AtomicBool::new(false) })
    }

    /// The size of the file in bytes.
    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether some of it is not in memory, as far as is known.
    #[inline]
    pub(crate) fn is_cold(&self) -> bool {
        self.is_cold.load(Ordering::Relaxed)
    }

    /// Tells readers whether to prefetch pages, and the system whether to read the surroundings of a missing page. If
    /// memory is short, reading them would evict a hundred kibibytes for each record.
    pub(crate) fn set_cold(&self, is_cold: bool) {
        if self.is_cold.swap(is_cold, Ordering::Relaxed) != is_cold {
            let advice = if is_cold { memmap2::Advice::Random } else { memmap2::Advice::Normal };
            // A failure affects only speed.
            let _ = self.map.advise(advice);
        }
    }

    /// Whether the page of a byte is in memory; `true` if the system cannot tell.
    pub(crate) fn is_resident(&self, offset: usize) -> bool {
        let page_bytes = sigbus::page_bytes();
        let page = (self.map.as_ptr() as usize + offset) / page_bytes * page_bytes;
        let mut resident = 1u8;
        // SAFETY: the page belongs to a live mapping of this process; the call writes one byte, for which there is room.
        let status = unsafe { libc::mincore(page as *mut libc::c_void, 1, (&raw mut resident).cast()) };
        status != 0 || resident & 1 == 1
    }

    /// A slice of the whole file.
    #[cfg(test)]
    fn all(self) -> Slice {
        let bytes = self.map.len();
        Slice::new(Arc::new(self), 0, bytes)
    }
}

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping").field("bytes", &self.map.len()).finish_non_exhaustive()
    }
}

/// A part of a mapping: the bytes of one logical file.
pub(crate) struct Slice {
    map: Arc<Mapping>,
    /// Points into `map`, followed by `bytes` bytes.
    start: *const u8,
    bytes: usize,
}

// SAFETY: `start` points into the mapping that `map` keeps alive, which is only read.
unsafe impl Send for Slice {}
// SAFETY: as above.
unsafe impl Sync for Slice {}

impl Slice {
    /// # Panics
    /// If the part does not lie within the mapping.
    pub(crate) fn new(map: Arc<Mapping>, offset: usize, bytes: usize) -> Self {
        let start = map.map[offset..][..bytes].as_ptr();
        Self { map, start, bytes }
    }

    /// The bytes of the file. They are trustworthy only if their checksum matches and [`Slice::is_lost`] is false
    /// afterwards.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: checked against the mapping's length in `new`; the mapping lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }

    /// Whether a page of the file was missing at any read before this call.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        // Orders the reads of mapped bytes before the read of the flag, which the handler sets before it maps zeros.
        fence(Ordering::Acquire);
        sigbus::is_lost(self.map.slot)
            && sigbus::has_lost_page(self.map.slot, self.start as usize, self.bytes)
    }

    /// Asks the processor to load the cache line at `offset`. This is a hint without effect on results.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize) {
        #[cfg(target_arch = "x86_64")]
        if offset < self.bytes {
            // SAFETY: the address lies within the mapping, and a prefetch never faults.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(self.start.add(offset).cast());
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    /// Whether to prefetch pages instead of cache lines.
    #[inline]
    pub(crate) fn is_cold(&self) -> bool {
        self.map.is_cold()
    }

    /// Makes the system begin to read the pages of some bytes of the file, all at once. Does not wait for them.
    #[cold]
    pub(crate) fn fetch_ahead(&self, offset: usize, bytes: usize) {
        if offset < self.bytes {
            let start = self.start as usize - self.map.map.as_ptr() as usize + offset;
            let bytes = bytes.min(self.bytes - offset);
            // A failure affects only speed.
            let _ = self.map.map.advise_range(memmap2::Advice::WillNeed, start, bytes);
        }
    }

    /// Loads the first `bytes` of the file into memory and the page table, as far as the system can.
    pub(crate) fn populate(&self, bytes: usize) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let offset = self.start as usize - self.map.map.as_ptr() as usize;
            self.map.map.advise_range(memmap2::Advice::PopulateRead, offset, bytes.min(self.bytes))?;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = bytes;
        Ok(())
    }

    /// The addresses of the pages of the first `bytes` of the file.
    pub(crate) fn pages(&self, bytes: usize) -> Range<usize> {
        let (start, page_bytes) = (self.start as usize, self.page_bytes());
        start / page_bytes * page_bytes..(start + bytes.min(self.bytes)).next_multiple_of(page_bytes)
    }

    /// The size of a page in bytes.
    pub(crate) fn page_bytes(&self) -> usize {
        sigbus::page_bytes()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Before the memory is unmapped: the handler must not cover what others map there.
        sigbus::release(self.slot, self.map.as_ptr() as usize, self.map.len());
    }
}
