//! The result of a load, as JSON. The field names are a contract: see `docs/loading.md`.

use crate::publish::DroppedLines;
use kith_build::{LoadReport, LoadedFile};
use kith_topology::role_name;
use serde::Serialize;
use std::time::Duration;

/// A load that succeeded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadReply {
    pub graph: String,
    /// The graph's version that serves now; `null` after a dry run.
    pub version: Option<u64>,
    pub components: Vec<LoadedComponent>,
    /// Invalid lines that were dropped, by reason.
    pub dropped: Vec<DroppedLines>,
    pub files: Vec<ReadFile>,
    pub seconds: f64,
}

/// A component that was built.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadedComponent {
    pub name: String,
    pub role: String,
    pub members: u64,
    pub edges: u64,
    pub self_loops: u64,
    pub duplicates: u64,
    pub both_orders: u64,
    pub bytes: u64,
}

/// A file that was read to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReadFile {
    pub path: String,
    pub role: &'static str,
    pub rows: u64,
    pub dropped: u64,
    pub self_loops: u64,
    pub bytes: u64,
    /// The columns that were read: the role of each, and its name in the file or its place.
    pub columns: Vec<(String, String)>,
    /// A time that is probably in another unit than the column says.
    pub warning: Option<String>,
}

impl LoadReply {
    /// Converts the report of the engine.
    pub fn new(graph: &str, version: Option<u64>, report: &LoadReport, took: Duration) -> Self {
        let components = report.components.iter().map(|(manifest, summary)| LoadedComponent {
            name: manifest.component.clone(),
            role: manifest.graph().map_or("values", |graph| role_name(graph.role)).to_owned(),
            members: summary.members,
            edges: summary.edges,
            self_loops: summary.self_loops,
            duplicates: summary.duplicates,
            both_orders: summary.both_orders,
            bytes: summary.bytes,
        });
        Self {
            graph: graph.to_owned(),
            version,
            components: components.collect(),
            dropped: DroppedLines::all(kith_build::DroppedRows::of_files(&report.files)),
            files: report.files.iter().map(ReadFile::from).collect(),
            seconds: (took.as_secs_f64() * 1e3).round() / 1e3,
        }
    }
}

impl From<&LoadedFile> for ReadFile {
    fn from(file: &LoadedFile) -> Self {
        Self {
            path: file.report.path.display().to_string(),
            role: file.role.name(),
            rows: file.report.rows,
            dropped: file.report.errors.total(),
            self_loops: file.self_loops,
            bytes: file.report.bytes,
            columns: file.report.taken.clone(),
            warning: file.report.unlikely_time.clone(),
        }
    }
}
