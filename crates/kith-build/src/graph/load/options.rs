//! What a load is asked to do, and what it answers.

use super::{LoadError, component_dir};
use kith_engine::Manifest;
use kith_load::{BuildProgress, BuildSummary, MEMORY_BYTES_DEFAULT, Stop};
use kith_rows::graph::{ColumnRef, ColumnSpec, EdgeColumns, FileOptions, FileReport, ReadProgress};
use kith_types::{PartitionCount, StoreVersion, check_component_name};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The component that a list of members becomes.
pub const MEMBERS_COMPONENT: &str = "members";

/// What to load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Name of the graph: 1 to 64 letters, digits, `_`, `-` or `.`, no `.` in front.
    pub graph: String,
    /// The version of every component of this load: above all before.
    pub version: StoreVersion,
    /// How many partitions the cluster has.
    pub partitions: PartitionCount,
    /// Edge files; all become one component.
    pub edges: Vec<PathBuf>,
    /// Name of the edge type.
    pub edge_type: String,
    /// Whether an edge goes one way only.
    pub directed: bool,
    /// Which columns of edge files are read and kept.
    pub edge_columns: EdgeColumns,
    /// Files of member-to-entity edges; each kind in them becomes a component.
    pub entities: Vec<PathBuf>,
    /// Columns of entity files to keep.
    pub entity_columns: Vec<ColumnSpec>,
    /// Files with the ids of members; all become one component.
    pub members: Vec<PathBuf>,
    /// The id column of members files; `None` takes the one named `id`, else the first.
    pub member_column: Option<ColumnRef>,
    /// How all files are read; what is decoded of them has `memory_bytes` of this load.
    pub files: FileOptions,
    /// Whether files without an edge may replace what there is by nothing.
    pub allow_empty: bool,
    /// Read and check everything, write nothing.
    pub dry_run: bool,
    /// The most bytes that buffers may take.
    pub memory_bytes: usize,
    /// 1, or 2 and more to share the work with other threads.
    pub threads: usize,
    /// Ends the load while it reads.
    pub stop: Stop,
    /// Where sorted runs go that do not fit in memory; `None` is the graph's folder.
    pub scratch_dir: Option<PathBuf>,
    /// The folder of all graphs.
    pub out_dir: PathBuf,
}

impl LoadOptions {
    /// A load of nothing yet, with everything else as users expect it.
    pub fn new(graph: &str, version: StoreVersion, partitions: PartitionCount, out_dir: PathBuf) -> Self {
        LoadOptions {
            graph: graph.to_owned(),
            version,
            partitions,
            edges: Vec::new(),
            edge_type: "connection".to_owned(),
            directed: false,
            edge_columns: EdgeColumns::default(),
            entities: Vec::new(),
            entity_columns: Vec::new(),
            members: Vec::new(),
            member_column: None,
            files: FileOptions::default(),
            allow_empty: false,
            dry_run: false,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            stop: Stop::default(),
            scratch_dir: None,
            out_dir,
        }
    }

    /// The folder of the versions of a component.
    pub fn component_dir(&self, component: &str) -> PathBuf {
        component_dir(&self.out_dir, &self.graph, component)
    }

    pub(super) fn scratch_dir(&self) -> PathBuf {
        self.scratch_dir.clone().unwrap_or_else(|| self.out_dir.join(&self.graph))
    }

    pub(super) fn check(&self) -> Result<(), LoadError> {
        if self.edges.is_empty() && self.entities.is_empty() && self.members.is_empty() {
            return Err(LoadError::Nothing);
        }
        let is_name = |name: &str| check_component_name(name).is_ok();
        // Dots are for graphs alone, and not in front: such folders are not components or graphs but belong to the loader.
        let is_graph_name = !self.graph.starts_with('.') && is_name(&self.graph.replace('.', "-"));
        let names = [
            ("a graph", &self.graph, is_graph_name),
            ("an edge type", &self.edge_type, is_name(&self.edge_type)),
        ];
        if let Some((what, name, _)) = names.iter().find(|(_, _, valid)| !valid) {
            return Err(LoadError::Name { what, name: (*name).clone() });
        }
        if self.edge_type == MEMBERS_COMPONENT {
            return Err(LoadError::NameTaken { name: self.edge_type.clone(), by: "the list of members" });
        }
        Ok(())
    }
}

/// A version for the next load of a graph: above `committed`, the newest that the cluster knows, and above every folder
/// of its components, since a load that is killed before its commit leaves finished folders behind.
///
/// # Errors
/// If the folders cannot be listed.
pub(crate) fn next_version(out_dir: &Path, graph: &str, committed: StoreVersion) -> io::Result<StoreVersion> {
    let mut newest = committed.0;
    for component in folders(&out_dir.join(graph))? {
        let versions = folders(&component)?;
        let names = versions.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok());
        // What has a greater number is no version.
        let names = names.filter(|version| *version <= StoreVersion::MAX.0);
        newest = names.fold(newest, u64::max);
    }
    Ok(StoreVersion(newest.saturating_add(1)))
}

fn folders(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path()));
    Ok(paths.collect::<io::Result<Vec<_>>>()?.into_iter().filter(|path| path.is_dir()).collect())
}

/// How far a load is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum LoadProgress<'a> {
    /// A file is being read; once per block.
    Reading(&'a ReadProgress),
    /// A component's files are being written; once per partition.
    Building {
        component: &'a str,
        /// How far it is.
        progress: BuildProgress,
    },
}

/// What a file was read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRole {
    /// Edges of the edge type.
    Edges,
    /// Member-to-entity edges.
    Entities,
    /// Members.
    Members,
}

/// A file that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedFile {
    /// What it was read as.
    pub role: FileRole,
    /// Its lines, and those of them that are wrong.
    pub report: FileReport,
    /// Good lines that were dropped because they join a member to itself.
    pub self_loops: u64,
}

impl LoadedFile {
    /// Rows that went into a component.
    pub fn good_rows(&self) -> u64 {
        self.report.rows - self.report.errors.total() - self.self_loops
    }
}

/// What a load did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// The components built, in the order edge type, entity kinds by name, members. Empty in a dry run.
    pub components: Vec<(Manifest, BuildSummary)>,
    /// The files read, in the order of the options: edges, entities, members.
    pub files: Vec<LoadedFile>,
}
