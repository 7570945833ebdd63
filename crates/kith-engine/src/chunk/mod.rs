//! The chunk set: a data file of self-proving records and an index over it
//! (Voldemort §5.1, with the index of directly addressed 64-byte lines that `docs/formats/chunk-set.md`
//! draws in place of its sorted table).
//!
//! Keys and values are any bytes. FOUND is proven by the record itself, ABSENT by
//! the checksums of the index blocks it rests on, each time anew.

mod batch;
mod entries;
mod found;
mod index;
mod one_set;
mod probe;
mod reader;
mod record;
mod writer;

pub use batch::{find_each, find_many};
pub use found::Found;
pub use reader::ChunkSetReader;
pub use writer::{ChunkSetSummary, ChunkSetWriter};

/// The longest key.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// The longest value: a record is checksummed as a whole when it is read.
pub const RECORD_VALUE_BYTES_MAX: usize = 1 << 30;

/// Data beyond which a list of a partition gets another chunk set, so that files stay easy to copy, verify and evict.
/// Chosen by size alone: Voldemort's users set its `num.chunks` wrong until it was removed.
const DATA_BYTES_MAX: u64 = 1 << 30;

/// The most records of one chunk set.
const RECORDS_MAX: u64 = u32::MAX as u64;

/// Where a record sorts; tests give another one to make keys collide.
type Position = fn(&[u8]) -> u64;

#[cfg(test)]
mod tests;
