//! Reads an object, such as a file of rows, as a stream of bytes.

use crate::objects::Objects;
use kith_engine::Source;
use std::io::{self, Read};

/// The bytes per request. They are many compared to the latency of a store.
const PIECE_BYTES: usize = 8 << 20;

/// Reads an object from its start to its end.
#[derive(Debug)]
pub struct ObjectReader {
    objects: Objects,
    name: String,
    /// The offset of the next piece.
    offset: u64,
    piece: Vec<u8>,
    /// The bytes of the piece that were already returned.
    used: usize,
    is_last: bool,
}

impl ObjectReader {
    pub(super) fn new(objects: Objects, name: String) -> Self {
        Self { objects, name, offset: 0, piece: Vec::new(), used: 0, is_last: false }
    }
}

impl Read for ObjectReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.used == self.piece.len() && !self.is_last {
            self.piece.resize(PIECE_BYTES, 0);
            let count =
                self.objects.read(&self.name, self.offset, &mut self.piece).map_err(io::Error::other)?;
            self.is_last = count < PIECE_BYTES;
            self.piece.truncate(count);
            (self.offset, self.used) = (self.offset + count as u64, 0);
        }
        let left = &self.piece[self.used..];
        let count = left.len().min(into.len());
        into[..count].copy_from_slice(&left[..count]);
        self.used += count;
        Ok(count)
    }
}
