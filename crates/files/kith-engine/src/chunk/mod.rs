//! The chunk set: a data file of records with checksums, and an index over it (Voldemort §5.1). Its index consists of
//! directly addressed 64-byte lines (`docs/formats/chunk-set.md`) instead of Voldemort's sorted table.
//!
//! Keys and values are byte strings. FOUND is proven by the checksum of the record, ABSENT by the checksums of the index
//! blocks that were read. Both are checked at every lookup.

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
pub use found::FoundRecord;
pub use reader::ChunkSetReader;
pub use writer::{ChunkSetSummary, ChunkSetWriter};

/// The longest key.
pub const KEY_BYTES_MAX: usize = 64 * 1024;

/// The longest value. A record is checksummed as a whole when it is read.
pub const RECORD_VALUE_BYTES_MAX: usize = 1 << 30;

/// The size of data beyond which a list of a partition gets another chunk set, so that files stay easy to copy, verify and
/// evict. Size alone decides: Voldemort's users chose `num.chunks` badly until that setting was removed.
const DATA_BYTES_MAX: u64 = 1 << 30;

/// The most records of one chunk set.
const RECORDS_MAX: u64 = u32::MAX as u64;

/// Computes the sort position of a key. Tests use another function to make keys collide.
type Position = fn(&[u8]) -> u64;

#[cfg(test)]
mod tests;
