//! Writes a sealed file in one forward pass, and computes every checksum on the way.

use super::{HEADER_BYTES, Header, Trailer};
use crate::errors::WriteError;
use crate::files::FileId;
use crate::manifest::FileEntry;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The bytes that are gathered before they are checksummed and written: a multiple of every block size.
const BUFFER_BYTES: usize = 64 * 1024;

/// Writes a sealed file. Memory: one buffer and four bytes per block.
pub struct SealedWriter {
    id: FileId,
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    block_bytes: usize,
    /// The number of bytes so far, including the header.
    position: u64,
    table: Vec<u8>,
    header: Header,
    hasher: blake3::Hasher,
}

impl SealedWriter {
    /// Creates the file, which must not exist, and writes its header.
    pub fn create(dir: &Path, id: FileId) -> Result<Self, WriteError> {
        Self::create_with(dir, Header::new(id))
    }

    /// Creates a file with the given header, like [`Self::create`].
    pub fn create_with(dir: &Path, header: Header) -> Result<Self, WriteError> {
        let id = header.id();
        let path = dir.join(id.to_string());
        let file = File::create_new(&path).map_err(|source| WriteError::Io { path: path.clone(), source })?;
        let bytes = header.encode();
        let mut writer = Self {
            id,
            path,
            file,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            block_bytes: Header::block_bytes(id.kind),
            position: 0,
            table: Vec::new(),
            header,
            hasher: blake3::Hasher::new(),
        };
        writer.put(&bytes)?;
        Ok(writer)
    }

    /// The offset of the next byte.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The file's name.
    pub fn name(&self) -> String {
        self.id.to_string()
    }

    /// Appends bytes to the body.
    pub fn put(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        self.position += bytes.len() as u64;
        while self.buffer.len() + bytes.len() >= BUFFER_BYTES {
            let (now, later) = bytes.split_at(BUFFER_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(now);
            bytes = later;
            self.flush_body()?;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends zeros up to `position`.
    pub fn pad_to(&mut self, position: u64) -> Result<(), WriteError> {
        const ZEROS: [u8; 256] = [0; 256];
        while self.position < position {
            let count = (position - self.position).min(ZEROS.len() as u64) as usize;
            self.put(&ZEROS[..count])?;
        }
        Ok(())
    }

    /// Ends the file with its checksum table and trailer. Does not sync it.
    pub fn finish(mut self, records: u64, fields: [u64; 4]) -> Result<FileEntry, WriteError> {
        self.flush_body()?;
        let trailer = Trailer {
            body_bytes: self.position,
            records,
            fields,
            table_crc: kith_types::crc32c(&self.table),
            header_crc: self.header.crc(),
        }
        .encode();
        let table = std::mem::take(&mut self.table);
        for bytes in [table.as_slice(), &trailer] {
            self.hasher.update(bytes);
            self.write(bytes)?;
        }
        Ok(FileEntry {
            name: self.name(),
            // Its place in a pack is determined when the sizes of all files are known.
            pack: 0,
            offset: 0,
            bytes: self.position + table.len() as u64 + trailer.len() as u64,
            records,
            blake3: self.hasher.finalize().to_hex().to_string(),
            crc32c: super::trailer::trailer_crc(&trailer),
            first_position: None,
        })
    }

    fn flush_body(&mut self) -> Result<(), WriteError> {
        let buffer = std::mem::take(&mut self.buffer);
        for block in buffer.chunks(self.block_bytes) {
            self.table.extend_from_slice(&kith_types::crc32c(block).to_le_bytes());
        }
        self.hasher.update(&buffer);
        self.write(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.file.write_all(bytes).map_err(|source| WriteError::Io { path: self.path.clone(), source })
    }
}

const _: () = assert!(HEADER_BYTES < BUFFER_BYTES);
