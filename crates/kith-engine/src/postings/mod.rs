//! Postings: the inverted index over one list of one partition, neighbour →
//! keys whose list contains it (Moolle §II-C). Drawn in `docs/formats/postings.md`.
//!
//! Pairs are sorted and prefix-coded in small blocks under a sparse index. Keys are
//! written as ordinals into a sorted table, so that a pair costs as little in a
//! partition of a hundred keys as in one of a million.

mod block;
mod reader;
mod writer;

pub use reader::PostingsReader;
pub use writer::{PostingsKeys, PostingsWriter};

/// Bytes of a block. A look-up decodes half of one on average, a hundred small numbers; the sparse index costs
/// 3 % of space. With 1 KiB, a look-up took twice as long for 2 % less.
const BLOCK_BYTES: usize = 256;

#[cfg(test)]
mod tests;
