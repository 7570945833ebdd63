//! Postings: the inverted index of one list of one partition, from a neighbour to the keys whose list contains it (Moolle
//! §II-C). Drawn in `docs/formats/postings.md`.
//!
//! Pairs are sorted and prefix-coded in small blocks under a sparse index. Keys are written as ordinals in a sorted table,
//! so that a pair takes few bytes in large and small partitions alike.

mod block;
mod reader;
mod writer;

pub use reader::PostingsReader;
pub use writer::{PostingsKeys, PostingsWriter};

/// The size of a block in bytes. A look-up decodes half a block on average, about a hundred small numbers, and the sparse
/// index takes 3 % of the space. With 1 KiB, a look-up took twice as long and saved 2 % of the space.
const BLOCK_BYTES: usize = 256;

#[cfg(test)]
mod tests;
