//! The checksums of a file's blocks, read before the blocks, so that a fetch can check the blocks one by one.

use super::trailer::trailer_crc;
use super::{Header, TRAILER_BYTES, Trailer, body_bytes};
use crate::errors::Fault;
use crate::files::FileId;
use crate::manifest::FileEntry;
use std::ops::Range;

/// The checksum table and trailer of a file, checked against the manifest.
pub struct BlockTable {
    id: FileId,
    header_crc: u32,
    block_bytes: usize,
    body_bytes: u64,
    /// The table and then the trailer: the last bytes of the file.
    tail: Vec<u8>,
}

impl BlockTable {
    /// The size of header and body of a file of this kind and size; `None` if no file has this size.
    pub fn body_bytes_of(id: FileId, file_bytes: u64) -> Option<u64> {
        body_bytes(file_bytes, Header::block_bytes(id.kind) as u64)
    }

    /// Takes all bytes after the body, and checks that the manifest describes them.
    pub fn read(id: FileId, entry: &FileEntry, tail: Vec<u8>) -> Result<Self, Fault> {
        let block_bytes = Header::block_bytes(id.kind);
        let impossible = Fault::Content { what: "file size", offset: 0 };
        let body_bytes = Self::body_bytes_of(id, entry.bytes).ok_or(impossible.clone())?;
        let split = tail.len().checked_sub(TRAILER_BYTES).ok_or(impossible.clone())?;
        let (table, sealed) = tail.split_at(split);
        let sealed: &[u8; TRAILER_BYTES] = sealed.try_into().expect("it was split off at its length");
        let offset = entry.bytes - TRAILER_BYTES as u64;
        let trailer = Trailer::decode(sealed).ok_or(Fault::Checksum { what: "trailer", offset })?;
        let expected = Trailer { body_bytes, records: entry.records, ..trailer };
        let is_of_it = Header::with_crc(id, trailer.header_crc).is_some();
        if trailer != expected || !is_of_it || trailer_crc(sealed) != entry.crc32c {
            return Err(Fault::Foreign { what: "trailer" });
        }
        if table.len() as u64 != 4 * body_bytes.div_ceil(block_bytes as u64) {
            return Err(impossible);
        }
        if kith_types::crc32c(table) != trailer.table_crc {
            return Err(Fault::Checksum { what: "checksum table", offset: body_bytes });
        }
        Ok(Self { id, header_crc: trailer.header_crc, block_bytes, body_bytes, tail })
    }

    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// The size of each block except the last.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// The table and trailer.
    pub fn tail(&self) -> &[u8] {
        &self.tail
    }

    /// The part of `bytes` that does not match its checksums, from the first wrong block to the last; `None` if all match.
    /// `bytes` are whole blocks of the body from `start` on.
    pub fn wrong_blocks(&self, start: u64, bytes: &[u8]) -> Option<Range<usize>> {
        let first = start as usize / self.block_bytes;
        let mut wrong: Option<Range<usize>> = None;
        for (index, block) in bytes.chunks(self.block_bytes).enumerate() {
            let stated = self.tail.get(4 * (first + index)..).and_then(|rest| rest.first_chunk::<4>());
            let holds = stated.is_some_and(|stated| kith_types::crc32c(block) == u32::from_le_bytes(*stated))
                && (first + index > 0
                    || Header::read(block, self.id).is_ok_and(|header| header.crc() == self.header_crc));
            if !holds {
                let begin = index * self.block_bytes;
                let end = begin + block.len();
                wrong = Some(wrong.map_or(begin, |wrong| wrong.start)..end);
            }
        }
        wrong
    }
}
