//! Builds one component: takes edges in any order, within a memory budget, and writes the files of every partition
//! (Voldemort §5.2 does this in reducers).
//!
//! Each edge becomes one record for each list that it belongs to. An external sort brings the records into the order of the
//! files. Then each partition is written in one pass: adjacency lists as the records arrive, followed by the member table
//! and the postings. The files depend only on the *set* of edges: the order of lines, the memory budget and the number of
//! threads do not change a single byte.
//!
//! In an undirected component the order of an edge's ends does not matter. Of equal edges, the one with the greatest
//! columns (compared as a tuple, in stored form) is kept. An edge from a member to itself is dropped, and does not add the
//! member. An entity may have the same number as its member; such an edge is kept.
//!
//! Memory beyond the budget: sixteen bytes per key of one partition, and the longest list.

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
use kith_schema::{Column, KindRole};
use kith_types::{PartitionCount, StoreVersion, check_component_name, partition_of_id};
use lists::WrittenLists;
pub(super) use staging::Staging;
use std::path::PathBuf;

pub use error::BuildError;
use error::ID_COLUMN;
pub use staging::version_dir;

/// The default memory of a build. A graph of a million edges is sorted without touching the disk, and larger graphs spill
/// runs that are long enough to be merged in one pass, up to hundreds of millions of edges.
pub const MEMORY_BYTES_DEFAULT: usize = 256 << 20;

/// The most columns of one edge type or entity kind. Each takes eight bytes per edge while edges are sorted.
pub const COLUMNS_MAX: usize = 8;

/// The options of a build.
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The graph that the component belongs to.
    pub graph: String,
    /// The name of the edge type or entity kind: 1 to 64 letters, digits, `_` or `-`.
    pub name: String,
    /// The version number.
    pub version: StoreVersion,
    /// The vertices that it joins, and how.
    pub role: KindRole,
    /// The number of the cluster's partitions.
    pub partitions: PartitionCount,
    /// The columns of each edge; at most [`COLUMNS_MAX`].
    pub columns: Vec<Column>,
    /// The most bytes of buffers.
    pub memory_bytes: usize,
    /// The folder for sorted runs that do not fit into memory.
    pub scratch_dir: PathBuf,
    /// The component's folder. The version is built in its [`version_dir`].
    pub out_dir: PathBuf,
    /// The number of threads. With 2 or more, sorting and writing of postings run in parallel to the caller's thread.
    pub threads: usize,
}

/// The result of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildSummary {
    /// The number of members, with or without edges.
    pub members: u64,
    /// The number of edges that were kept.
    pub edges: u64,
    /// The number of distinct entities; 0 unless the component is an entity kind.
    pub entities: u64,
    /// The number of edges that were dropped because both ends are the same member.
    pub self_loops: u64,
    /// The number of edges that were dropped because the same edge, in the same order of its ends, occurred before.
    pub duplicates: u64,
    /// The number of undirected edges that occurred in both orders. Each such pair is one edge.
    pub both_orders: u64,
    /// The size of all files except the manifest, in bytes.
    pub bytes: u64,
    /// The size of the chunk sets with the adjacency lists, in bytes.
    pub adjacency_bytes: u64,
    /// The size of the postings, in bytes.
    pub postings_bytes: u64,
    /// The number of runs that were written to the scratch folder because they did not fit into memory.
    pub spilled_runs: usize,
}

/// The progress of the second half of a build, which writes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildProgress {
    /// The number of partitions that were written.
    pub partitions_done: u32,
    /// The number of all partitions.
    pub partitions_total: u32,
}

/// Builds a component.
pub struct ComponentBuilder {
    options: BuildOptions,
    staging: Staging,
    edges: Box<dyn EdgeSink>,
    /// (partition, id) of members that were given without an edge.
    members: ExternalSorter<[u64; 2]>,
    self_loops: u64,
}

impl ComponentBuilder {
    /// Starts a build. Removes the staging folder of a killed build, and creates a new one.
    ///
    /// # Errors
    /// If a name is not valid, the version exists, another build of the component is running, or folders cannot be created.
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
    /// If sorted runs cannot be written. The build cannot be continued then.
    ///
    /// # Panics
    /// If the number of columns is not that of the options, or if the component is a list of members.
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
    /// Those of [`ComponentBuilder::edge`].
    pub fn member(&mut self, id: u64) -> Result<(), BuildError> {
        let partition = partition_of_id(id, self.options.partitions);
        Ok(self.members.push([u64::from(partition.0), id])?)
    }

    /// Sorts, writes and syncs all files, and gives the folder its final name. `progress` is called once per partition.
    ///
    /// # Errors
    /// [`BuildError`] if a step fails. Nothing remains then.
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

/// A share of a build's memory, in sixteenths.
type MemoryShare = usize;

/// The edges, which are first gathered and then merged.
const EDGE_SHARE: MemoryShare = 8;
/// The pairs of the postings, of all lists: those of the partition that is read, and those of the partition that is
/// written.
const PAIR_SHARE: MemoryShare = 6;
/// Members that were given without an edge.
const MEMBER_SHARE: MemoryShare = 1;

fn sort_options(options: &BuildOptions, share: MemoryShare, threads: usize) -> SortOptions {
    let memory_bytes = options.memory_bytes / 16 * share;
    SortOptions { memory_bytes, scratch_dir: options.scratch_dir.clone(), threads }
}

fn summary(written: &WrittenLists) -> BuildSummary {
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
