//! Builds one component: edges in any order, within a memory budget, out come the files of every partition
//! (Voldemort §5.2 has reducers do this; architecture D6).
//!
//! Each edge becomes one record per list it belongs to; an external sort brings the records into the order
//! of the files; then each partition is written in one pass: adjacency as the records come, member table and
//! postings behind it. The files depend only on the *set* of edges: line order, memory budget and
//! threads do not show in a single byte.
//!
//! What counts as one edge: in an undirected component the order of the ends does not matter. Of equal edges the one
//! with the greatest columns (compared as a tuple, in stored form) is kept. An edge from a member to itself is
//! dropped and does not make its member exist; an entity may have its member's number, that is no such edge.
//!
//! Memory beyond the budget: sixteen bytes per key of one partition, and the longest single list.

mod edges;
mod error;
mod lists;
mod postings;
mod record;
mod staging;
#[cfg(test)]
mod tests;

use crate::{ExternalSorter, SortOptions};
use edges::EdgeSink;
use kith_engine::writing::{Piece, write_packs};
use kith_engine::{Content, Counts, FileEntry, GraphContent, Manifest};
use kith_ops::KindRole;
use kith_schema::Column;
use kith_types::{PartitionCount, StoreVersion, check_component_name, partition_of_id};
use lists::Written;
pub(super) use staging::Staging;
use std::path::PathBuf;

pub use error::BuildError;
use error::ID_COLUMN;
pub use staging::version_dir;

/// Memory of a build unless told otherwise: a graph of a million edges sorts without touching the disk,
/// and larger ones spill runs long enough to be merged in one pass up to hundreds of millions.
pub const MEMORY_BYTES_DEFAULT: usize = 256 << 20;

/// The most columns that one edge type or entity kind keeps: each costs eight bytes an edge while it is sorted.
pub const COLUMNS_MAX: usize = 8;

/// What to build and how.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The graph that it is a part of.
    pub graph: String,
    /// Name of the edge type or entity kind: 1 to 64 letters, digits, `_` or `-`.
    pub name: String,
    /// Which build of it.
    pub version: StoreVersion,
    /// What it joins.
    pub role: KindRole,
    /// How many partitions the cluster has.
    pub partitions: PartitionCount,
    /// The columns given with each edge; at most [`COLUMNS_MAX`].
    pub columns: Vec<Column>,
    /// The most bytes that buffers may take.
    pub memory_bytes: usize,
    /// Where sorted runs go that do not fit in memory.
    pub scratch_dir: PathBuf,
    /// The component's folder; the build ends up in [`version_dir`] of it.
    pub out_dir: PathBuf,
    /// 1, or 2 and more to sort and write postings beside the caller's thread.
    pub threads: usize,
}

/// What a build did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildSummary {
    /// Members, with or without edges.
    pub members: u64,
    /// Edges kept.
    pub edges: u64,
    /// Distinct entities; 0 unless the component is an entity kind.
    pub entities: u64,
    /// Edges dropped because both ends are one member.
    pub self_loops: u64,
    /// Edges dropped because the same one, in the same order of its ends, came before.
    pub duplicates: u64,
    /// Undirected edges that came in both orders: each such pair is one edge.
    pub both_orders: u64,
    /// Bytes of all files but the manifest.
    pub bytes: u64,
    /// Bytes of the chunk sets with the adjacency lists.
    pub adjacency_bytes: u64,
    /// Bytes of the postings.
    pub postings_bytes: u64,
    /// Runs that were written to scratch because they did not fit in memory.
    pub spilled_runs: usize,
}

/// How far the second half of a build, the writing of files, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildProgress {
    /// Partitions written.
    pub partitions_done: u32,
    /// Partitions in all.
    pub partitions_total: u32,
}

/// A component being built.
pub struct ComponentBuilder {
    options: BuildOptions,
    staging: Staging,
    edges: Box<dyn EdgeSink>,
    /// (partition, id) of members given without an edge.
    members: ExternalSorter<[u64; 2]>,
    self_loops: u64,
}

impl ComponentBuilder {
    /// Starts a build: makes its staging folder, after clearing away that of a killed build.
    ///
    /// # Errors
    /// If a name is not valid, the version exists, another build of the component runs, or folders cannot be made.
    pub fn new(options: BuildOptions) -> Result<Self, BuildError> {
        check(&options)?;
        let staging = Staging::create(&options.out_dir, options.version)?;
        let scratch = &options.scratch_dir;
        std::fs::create_dir_all(scratch).map_err(BuildError::folder("create", scratch))?;
        let members = ExternalSorter::new(sort_options(&options, MEMBER_SHARE, 1));
        Ok(ComponentBuilder { edges: edges::sink(&options), options, staging, members, self_loops: 0 })
    }

    /// The component's name.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Adds an edge with one value per column.
    ///
    /// # Errors
    /// If sorted runs cannot be written. The build is of no use then.
    ///
    /// # Panics
    /// If the number of columns is not that of the options, or the component is a list of members.
    #[inline]
    pub fn edge(&mut self, src: u64, dst: u64, columns: &[u64]) -> Result<(), BuildError> {
        if src == dst && self.options.role != KindRole::Entity {
            self.self_loops += 1;
            return Ok(());
        }
        Ok(self.edges.push(src, dst, columns)?)
    }

    /// Adds a member, with or without edges.
    ///
    /// # Errors
    /// As [`ComponentBuilder::edge`].
    pub fn member(&mut self, id: u64) -> Result<(), BuildError> {
        let partition = partition_of_id(id, self.options.partitions);
        Ok(self.members.push([u64::from(partition.0), id])?)
    }

    /// Sorts, writes and syncs all files and gives the folder its final name. `progress` is called once per
    /// partition.
    ///
    /// # Errors
    /// See [`BuildError`]; nothing is left then.
    pub fn finish(
        self,
        progress: &mut dyn FnMut(BuildProgress),
    ) -> Result<(Manifest, BuildSummary), BuildError> {
        let ComponentBuilder { options, staging, edges, members, self_loops } = self;
        let written = edges.write(&options, &staging.dir(), members.finish()?, progress)?;
        let summary = BuildSummary { self_loops, ..summary(&written) };
        let counts = Counts { members: summary.members, edges: summary.edges, entities: summary.entities };
        let (graph, role, columns) = (options.graph, options.role, options.columns);
        let content = Content::Graph(GraphContent { graph, role, columns, counts });
        let manifest =
            Manifest::new(options.name, options.version, options.partitions, content, written.files);
        let dir = staging.dir();
        write_packs(&dir, &manifest, &|_| false, &mut |entry| Piece::Loose(dir.join(&entry.name)))?;
        manifest.write(&staging.dir())?;
        staging.commit()?;
        Ok((manifest, summary))
    }
}

fn check(options: &BuildOptions) -> Result<(), BuildError> {
    if check_component_name(&options.name).is_err() {
        return Err(BuildError::Name { name: options.name.clone() });
    }
    let columns: Vec<String> = options.columns.iter().map(|column| column.name.clone()).collect();
    let distinct: std::collections::BTreeSet<_> = columns.iter().collect();
    if columns.len() > COLUMNS_MAX || distinct.len() < columns.len() {
        return Err(BuildError::Columns { columns, max: COLUMNS_MAX });
    }
    if columns.iter().any(|name| name == ID_COLUMN) {
        return Err(BuildError::ReservedColumn);
    }
    Ok(())
}

/// A part of a build's memory, in sixteenths.
type MemoryShare = usize;

/// The edges, first gathered, then merged.
const EDGE_SHARE: MemoryShare = 8;
/// Pairs of the postings: of the partition being read and of the one being written, all lists.
const PAIR_SHARE: MemoryShare = 6;
/// Members given without an edge.
const MEMBER_SHARE: MemoryShare = 1;

fn sort_options(options: &BuildOptions, share: MemoryShare, threads: usize) -> SortOptions {
    let memory_bytes = options.memory_bytes / 16 * share;
    SortOptions { memory_bytes, scratch_dir: options.scratch_dir.clone(), threads }
}

fn summary(written: &Written) -> BuildSummary {
    let bytes = |extensions: &[&str]| -> u64 {
        let of = |file: &&FileEntry| extensions.iter().any(|extension| file.name.ends_with(extension));
        written.files.iter().filter(of).map(|file| file.bytes).sum()
    };
    BuildSummary {
        bytes: bytes(&[""]),
        adjacency_bytes: bytes(&[".data", ".index"]),
        postings_bytes: bytes(&[".postings"]),
        ..written.counts
    }
}
