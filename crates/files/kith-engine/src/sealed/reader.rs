//! Reads a sealed file: opens it in constant time, and verifies parts of it on demand.

use super::trailer::trailer_crc;
use super::{Header, TRAILER_BYTES, Trailer, body_bytes};
use crate::errors::{Damage, Fault, OpenError};
use crate::files::FileId;
use crate::map::Slice;
use crate::pack::VersionFolder;
use std::collections::HashSet;
use std::ops::Range;

/// The bytes that are prefetched for a record of unknown length whose pages may be on the disk. Most records are shorter.
const RECORD_BYTES_AHEAD: usize = 4 << 10;
/// If the average record is at most this long, records are prefetched as a whole before their lengths are known.
pub const RECORD_BYTES_SHORT: usize = 192;
/// The most bytes that are prefetched for a record of known length in memory.
const LINES_BYTES_AHEAD: usize = 2 << 10;
const CACHE_LINE_BYTES: usize = 64;
/// The bytes that are prefetched for a long record in memory before its length is known. Lengths and key mostly fit.
const LONG_BYTES_AHEAD: usize = 2 * CACHE_LINE_BYTES;
/// The window of pages that is prefetched when a file is read from front to back.
const WINDOW_BYTES: usize = 1 << 20;

/// Loads files one after another within a budget. Returns the number of loaded bytes.
pub(crate) fn populate_within<'a>(files: impl Iterator<Item = &'a SealedFile>, budget_bytes: u64) -> u64 {
    let mut ends = HashSet::new();
    files.fold(0, |spent, file| spent + file.populate(budget_bytes - spent, &mut ends))
}

/// A mapped file whose identity is proven, but whose content is not yet.
pub struct SealedFile {
    id: FileId,
    map: Slice,
    trailer: Trailer,
    block_bytes: usize,
    body_bytes: usize,
    header: Header,
}

impl SealedFile {
    /// Finds the file in its pack, and checks its size, header and trailer against each other and the manifest. Constant
    /// time.
    pub fn open(folder: &VersionFolder, id: FileId) -> Result<Self, OpenError> {
        let entry = folder.manifest().entry(id)?;
        let damage = |fault| OpenError::of_file(id.to_string(), fault);
        let block_bytes = Header::block_bytes(id.kind);
        let body = body_bytes(entry.bytes, block_bytes as u64)
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| damage(Fault::Content { what: "file size", offset: 0 }))?;
        let map = folder.slice(id, entry.bytes)?;
        let bytes = map.bytes();
        let header = Header::read(bytes, id).map_err(damage)?;
        let sealed: [u8; TRAILER_BYTES] =
            bytes[bytes.len() - TRAILER_BYTES..].try_into().expect("the size leaves room for a trailer");
        let offset = entry.bytes - TRAILER_BYTES as u64;
        let trailer =
            Trailer::decode(&sealed).ok_or_else(|| damage(Fault::Checksum { what: "trailer", offset }))?;
        for (what, agrees) in [
            ("trailer", trailer_crc(&sealed) == entry.crc32c),
            ("record count", trailer.records == entry.records),
            ("body size", trailer.body_bytes == body as u64),
            ("header", trailer.header_crc == header.crc()),
        ] {
            if !agrees {
                return Err(damage(Fault::Foreign { what }));
            }
        }
        let file = Self { id, map, trailer, block_bytes, body_bytes: body, header };
        file.check()?;
        Ok(file)
    }

    /// The identity of the file.
    pub fn id(&self) -> FileId {
        self.id
    }

    /// The trailer of the file.
    pub fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    /// The header of the file.
    pub fn header(&self) -> Header {
        self.header
    }

    /// The header and body. Offsets count from the start of the file.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.map.bytes()[..self.body_bytes]
    }

    /// Reads a u64 of the body.
    #[inline]
    pub fn u64_at(&self, offset: usize) -> Result<u64, Damage> {
        let bytes = self.body().get(offset..).and_then(|bytes| bytes.first_chunk());
        bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(|| self.impossible("offset", offset))
    }

    /// Checks every block that overlaps the range of the body, at every call. Call it *after* the bytes were used, so that
    /// damage in between is detected.
    pub fn verify(&self, range: Range<usize>) -> Result<(), Damage> {
        if !range.is_empty() {
            for block in range.start / self.block_bytes..=(range.end - 1) / self.block_bytes {
                self.verify_block(block)?;
            }
        }
        self.check()
    }

    /// Checks one block of the body.
    pub fn verify_block(&self, block: usize) -> Result<(), Damage> {
        let start = block * self.block_bytes;
        let body = self.body();
        let (Some(bytes), Some(crc)) = (
            body.get(start..body.len().min(start + self.block_bytes)),
            self.map.bytes()[self.body_bytes..].get(4 * block..).and_then(|rest| rest.first_chunk::<4>()),
        ) else {
            return Err(self.impossible("block", start));
        };
        if kith_types::crc32c(bytes) != u32::from_le_bytes(*crc) {
            self.check()?;
            return Err(self.damage(Fault::Checksum { what: "block", offset: start as u64 }));
        }
        Ok(())
    }

    /// The bytes that one checksum covers.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Fails if a page of the file was missing at any read so far.
    #[inline]
    pub fn check(&self) -> Result<(), Damage> {
        if self.map.is_lost() { Err(self.damage(Fault::Lost)) } else { Ok(()) }
    }

    /// Prefetches a cache line, or its page if the file is cold.
    #[inline]
    pub fn prefetch(&self, offset: usize) {
        if self.map.is_cold() {
            self.map.fetch_ahead(offset, 1);
        } else {
            self.map.prefetch(offset);
        }
    }

    /// Prefetches what [`SealedFile::verify`] reads for the range, in the same way as [`SealedFile::prefetch`].
    pub fn prefetch_proof(&self, range: Range<usize>) {
        let blocks = range.start / self.block_bytes..range.end.div_ceil(self.block_bytes);
        let (start, bytes) = (blocks.start * self.block_bytes, blocks.len() * self.block_bytes);
        let table = self.body_bytes + 4 * blocks.start;
        if self.map.is_cold() {
            self.map.fetch_ahead(start, bytes);
            self.map.fetch_ahead(table, 4 * blocks.len());
        } else {
            (start..start + bytes).step_by(CACHE_LINE_BYTES).for_each(|at| self.map.prefetch(at));
            self.map.prefetch(table);
        }
    }

    /// Prefetches a record with this expected size: its cache lines, only the first two of them if it is long, or as many
    /// pages as small records lie on if the file is cold.
    #[inline]
    pub fn prefetch_record(&self, offset: usize, expected_bytes: usize) {
        if self.map.is_cold() {
            self.map.fetch_ahead(offset, RECORD_BYTES_AHEAD);
        } else {
            let is_long = RECORD_BYTES_SHORT < expected_bytes;
            // For a long record the number of lines is the same wherever it begins.
            let bytes = if is_long { LONG_BYTES_AHEAD - CACHE_LINE_BYTES } else { expected_bytes.max(1) - 1 };
            let last = offset + bytes;
            (offset..last).step_by(CACHE_LINE_BYTES).for_each(|at| self.map.prefetch(at));
            self.map.prefetch(last);
        }
    }

    /// Prefetches further cache lines of a long record, now that its length is known. [`SealedFile::prefetch_record`] has
    /// prefetched its first lines, and the processor itself prefetches the lines after these.
    #[inline]
    pub fn prefetch_lines(&self, offset: usize, bytes: usize) {
        if !self.map.is_cold() {
            let end = offset + bytes.min(LINES_BYTES_AHEAD);
            (offset + LONG_BYTES_AHEAD..end).step_by(CACHE_LINE_BYTES).for_each(|at| self.map.prefetch(at));
        }
    }

    /// Prefetches the rest of a record in a cold file, now that its length is known. Its pages would otherwise be read one
    /// by one.
    #[inline]
    pub fn prefetch_rest(&self, offset: usize, bytes: usize) {
        if RECORD_BYTES_AHEAD < bytes && self.map.is_cold() {
            self.map.fetch_ahead(offset, bytes);
        }
    }

    /// Prefetches for reading from front to back: asks for a window of pages once `offset` reaches the end of the last
    /// window, which `asked` holds.
    #[inline]
    pub fn prefetch_window(&self, offset: usize, asked: &mut usize) {
        if *asked <= offset && self.map.is_cold() {
            self.map.fetch_ahead(offset, 2 * WINDOW_BYTES);
            *asked = offset + WINDOW_BYTES;
        }
    }

    /// Loads the file into memory, or as much of its beginning as `budget_bytes` allows. Returns the bytes of the loaded
    /// pages, which are never more than the budget. Pages at the ends of a file may be shared with other files and are
    /// counted once: `ends` holds those that were counted.
    pub fn populate(&self, budget_bytes: u64, ends: &mut HashSet<usize>) -> u64 {
        let pages = self.map.pages(self.map.bytes().len());
        let shared = |page: usize| if ends.contains(&page) { self.map.page_bytes() } else { 0 };
        let last = pages.end - self.map.page_bytes();
        let saved = shared(pages.start) + if last == pages.start { 0 } else { shared(last) };
        let (wanted, saved) = (pages.len() as u64, saved as u64);
        let bytes = match wanted.checked_sub(saved).filter(|cost| *cost <= budget_bytes) {
            Some(_) => self.map.bytes().len(),
            // Shorter by a page at either end, which rounding may add.
            None => (budget_bytes as usize).saturating_sub(2 * self.map.page_bytes()),
        };
        if bytes == 0 || self.map.populate(bytes).is_err() {
            return 0;
        }
        let pages = self.map.pages(bytes);
        let last = pages.end - self.map.page_bytes();
        let counted = [pages.start, last].into_iter().filter(|&page| !ends.insert(page)).count();
        let again = if last == pages.start { counted - 1 } else { counted };
        (pages.len() - again * self.map.page_bytes()) as u64
    }

    /// A damage of this file. Missing pages take precedence, because they explain other faults.
    #[cold]
    pub fn damage(&self, fault: Fault) -> Damage {
        let fault = if self.map.is_lost() { Fault::Lost } else { fault };
        Damage { file: self.id.to_string(), fault }
    }

    /// The damage for a value that no writer writes.
    #[cold]
    pub fn impossible(&self, what: &'static str, offset: usize) -> Damage {
        self.damage(Fault::Content { what, offset: offset as u64 })
    }
}

impl std::fmt::Debug for SealedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SealedFile")
            .field("id", &self.id)
            .field("trailer", &self.trailer)
            .finish_non_exhaustive()
    }
}
