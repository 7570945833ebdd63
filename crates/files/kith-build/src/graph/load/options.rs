//! The options of a load, and its report.

use super::{FileRole, LoadError, component_dir};
use crate::rows::graph::{ColumnRef, ColumnSpec, EdgeColumns, FileOptions, FileReport};
use kith_engine::Manifest;
use kith_files::{BuildSummary, MEMORY_BYTES_DEFAULT, Stop};
use kith_types::{PartitionCount, StoreVersion, check_component_name};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The name of the component for the list of members.
pub const MEMBERS_COMPONENT: &str = "members";

/// The options of a load.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The name of the graph: 1 to 64 letters, digits, `_`, `-` or `.`, with no `.` at the beginning.
    pub graph: String,
    /// The version of every component of this load. It must be above all earlier ones.
    pub version: StoreVersion,
    /// The number of the cluster's partitions.
    pub partitions: PartitionCount,
    /// Edge files, which together become one component.
    pub edges: Vec<PathBuf>,
    /// The name of the edge type.
    pub edge_type: String,
    /// Whether edges have a direction.
    pub directed: bool,
    /// The columns of edge files that are read and kept.
    pub edge_columns: EdgeColumns,
    /// Files of member-to-entity edges; each kind in them becomes a component.
    pub entities: Vec<PathBuf>,
    /// The columns of entity files to keep.
    pub entity_columns: Vec<ColumnSpec>,
    /// Files with the ids of members, which together become one component.
    pub members: Vec<PathBuf>,
    /// The id column of files of members; `None` uses the one named `id`, else the first.
    pub member_column: Option<ColumnRef>,
    /// The options for reading all files. The limit for decoded bytes is the `memory_bytes` of this load.
    pub files: FileOptions,
    /// Whether files without any edge may replace the existing data by nothing.
    pub allow_empty: bool,
    /// Whether everything is only read and checked, and nothing is written.
    pub dry_run: bool,
    /// The most bytes of buffers.
    pub memory_bytes: usize,
    /// The number of threads. With 2 or more, other threads share the work.
    pub threads: usize,
    /// Stops the load while it reads.
    pub stop: Stop,
    /// The folder for sorted runs that do not fit into memory; `None` uses the graph's folder.
    pub scratch_dir: Option<PathBuf>,
    /// The folder of all graphs.
    pub out_dir: PathBuf,
}

impl LoadOptions {
    /// The options of a load without files, with defaults for everything else.
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
        // Names of graphs may contain dots, but not begin with one: such folders belong to the loader, and are neither
        // components nor graphs.
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

/// A version for the next load of a graph. It is above `committed`, the newest that the cluster knows, and above every
/// folder of its components, because a load that is killed before its commit leaves finished folders behind.
///
/// # Errors
/// If the folders cannot be listed.
pub(crate) fn next_version(out_dir: &Path, graph: &str, committed: StoreVersion) -> io::Result<StoreVersion> {
    let mut newest = committed.0;
    for component in folders(&out_dir.join(graph))? {
        let versions = folders(&component)?;
        let names = versions.iter().filter_map(|path| path.file_name()?.to_str()?.parse().ok());
        // A greater number is not a version.
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

/// A file that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedFile {
    /// The role of the file.
    pub role: FileRole,
    /// The counts of its lines, and the wrong ones among them.
    pub report: FileReport,
    /// Good lines that were dropped because they join a member to itself.
    pub self_loops: u64,
}

impl LoadedFile {
    /// The number of rows that became part of a component.
    pub fn good_rows(&self) -> u64 {
        self.report.rows - self.report.errors.total() - self.self_loops
    }
}

/// The result of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// The components that were built, in the order edge type, entity kinds by name, members. Empty in a dry run.
    pub components: Vec<(Manifest, BuildSummary)>,
    /// The files that were read, in the order of the options: edges, entities, members.
    pub files: Vec<LoadedFile>,
}
