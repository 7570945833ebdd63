//! An object as a stream of bytes: rows.

use crate::Objects;
use kith_engine::Source;
use std::io::{self, Read};

/// So much is asked for at a time: large against the time that a store takes to begin an answer.
const PIECE_BYTES: usize = 8 << 20;

/// Reads an object from its start to its end.
#[derive(Debug)]
pub struct ObjectReader {
    objects: Objects,
    name: String,
    /// Of the next piece.
    offset: u64,
    piece: Vec<u8>,
    /// How much of the piece has been given out.
    used: usize,
    is_last: bool,
}

impl Objects {
    /// A reader of one object; a request that fails is repeated where it broke. Memory: 8 MiB.
    pub fn reader(&self, name: &str) -> ObjectReader {
        let (objects, name) = (self.clone(), name.to_owned());
        ObjectReader { objects, name, offset: 0, piece: Vec::new(), used: 0, is_last: false }
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
