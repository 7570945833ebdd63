//! Kernels over sorted, distinct `u64` ids: union, tally, intersection, difference, and a packed form for storage. Those over
//! many lists are for nodes, and for those who ask nodes (cargo feature `nodes`).
//!
//! The choice of kernel was measured, see `benches/sets.rs`: a bitmap if the ids span at most 4 M, otherwise a radix sort;
//! binary searches if sizes differ.

mod packed;
mod pair;
#[cfg(feature = "nodes")]
mod scratch;

pub use packed::PackedIds;
pub use pair::{difference, intersect, intersect_into, intersects};
#[cfg(feature = "nodes")]
pub use scratch::{Scratch, merge, merge_tallies, sort_distinct, tally, union};

pub(crate) use pair::merge_two;
#[cfg(feature = "nodes")]
pub(crate) use scratch::tally_bytes;
