//! Checks the frame of a file as its bytes pass by, in order.

use super::trailer::trailer_crc;
use super::{HEADER_BYTES, Header, TRAILER_BYTES, Trailer, body_bytes};
use crate::errors::Fault;
use crate::files::FileId;
use crate::manifest::FileEntry;

/// The checksums of a file so far. Memory: the file's own checksum table, twice.
pub struct FileSeal {
    id: FileId,
    block_bytes: usize,
    body_bytes: u64,
    /// The first bytes of the file, up to the size of a header.
    header: Vec<u8>,
    /// The checksums of the complete blocks so far.
    table: Vec<u8>,
    /// The checksum of the current block.
    crc: u32,
    position: u64,
    /// All bytes after the body.
    tail: Vec<u8>,
}

impl FileSeal {
    /// Begins the check of a file; `None` if no file can have this size.
    pub fn new(id: FileId, file_bytes: u64) -> Option<Self> {
        let block_bytes = Header::block_bytes(id.kind);
        let body_bytes = body_bytes(file_bytes, block_bytes as u64)?;
        let (header, table, tail) = (Vec::new(), Vec::new(), Vec::new());
        Some(Self { id, block_bytes, body_bytes, header, table, crc: 0, position: 0, tail })
    }

    pub fn push(&mut self, mut bytes: &[u8]) {
        let missing = HEADER_BYTES - self.header.len();
        self.header.extend_from_slice(&bytes[..missing.min(bytes.len())]);
        while self.position < self.body_bytes && !bytes.is_empty() {
            let in_block = self.position % self.block_bytes as u64;
            let block_left = self.block_bytes as u64 - in_block;
            let count = block_left.min(self.body_bytes - self.position).min(bytes.len() as u64);
            let (now, later) = bytes.split_at(count as usize);
            self.crc = kith_types::crc32c_append(self.crc, now);
            self.position += count;
            bytes = later;
            if count == block_left || self.position == self.body_bytes {
                self.table.extend_from_slice(&self.crc.to_le_bytes());
                self.crc = 0;
            }
        }
        self.tail.extend_from_slice(bytes);
    }

    /// Checks that header, blocks, table and trailer agree with each other and the manifest. Call it after all bytes have
    /// passed.
    pub fn finish(&self, entry: &FileEntry) -> Result<(), Fault> {
        let split = self.tail.len().saturating_sub(TRAILER_BYTES);
        let (table, sealed) = self.tail.split_at(split);
        let trailer = sealed.try_into().ok().and_then(Trailer::decode);
        let trailer = trailer.ok_or(Fault::Checksum { what: "trailer", offset: entry.bytes })?;
        let header = Header::read(&self.header, self.id)?;
        let block = table.chunks(4).zip(self.table.chunks(4)).position(|(stated, found)| stated != found);
        if kith_types::crc32c(table) != trailer.table_crc {
            return Err(Fault::Checksum { what: "checksum table", offset: self.body_bytes });
        }
        if let Some(block) = block {
            let offset = (block * self.block_bytes) as u64;
            return Err(Fault::Checksum { what: "block", offset });
        }
        let expected = Trailer {
            body_bytes: self.body_bytes,
            records: entry.records,
            header_crc: header.crc(),
            ..trailer
        };
        let sealed: &[u8; TRAILER_BYTES] = sealed.try_into().expect("a trailer was decoded from it");
        if trailer != expected || trailer_crc(sealed) != entry.crc32c || table.len() != self.table.len() {
            return Err(Fault::Foreign { what: "trailer" });
        }
        Ok(())
    }
}
