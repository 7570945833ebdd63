//! The member table: the members that a partition of a component holds, with or without edges. Drawn in
//! `docs/formats/member-table.md`.
//!
//! It tells a member without a list from an id that is not in the graph, and gives each member the ordinal that postings
//! use.

mod reader;
mod sorted_ids;
mod writer;

pub use reader::MemberTableReader;
pub(crate) use sorted_ids::SortedIds;
pub use writer::MemberTableWriter;

/// The most ids in one table, because ordinals are `u32`.
pub const IDS_MAX: u64 = u32::MAX as u64;
