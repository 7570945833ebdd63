//! The result of a build, as JSON. The field names are a contract: see `docs/loading.md`.

use crate::publish::DroppedLines;
use kith_build::rows::{RowErrors, RowReport};
use kith_build::{BuiltVersion, DeltaSummary};
use serde::Serialize;
use std::time::Duration;

/// A version that was built, or rows that were checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuildReply {
    pub store: String,
    /// `null` after a dry run.
    pub version: Option<u64>,
    /// The version's folder; `null` after a dry run.
    pub folder: Option<String>,
    pub records: u64,
    pub bytes: u64,
    /// Rows that were dropped because another row with the same key was kept.
    pub duplicates: u64,
    /// Invalid rows that were dropped, by reason.
    pub dropped: Vec<DroppedLines>,
    /// The differences from the previous schema of records, and the fields that the rows lack.
    pub schema_changes: Vec<String>,
    /// A time that is probably in another unit than milliseconds.
    pub warning: Option<String>,
    /// The hash of the manifest, which identifies the version; `null` after a dry run.
    pub manifest_hash: Option<String>,
    /// `null` unless the version was derived from another one.
    pub changes: Option<ChangesReply>,
    pub seconds: f64,
}

/// The changes of a delta.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangesReply {
    /// Keys that were added.
    pub added: u64,
    /// Keys whose value changed.
    pub replaced: u64,
    /// Keys that were deleted.
    pub deleted: u64,
    /// Keys to delete that did not exist.
    pub absent: u64,
    /// Partitions that were rewritten.
    pub partitions: u32,
    /// Bytes of files that the base version does not have.
    pub bytes_changed: u64,
    /// Bytes, without the manifest, that a replica fetches if it has all of the base version.
    pub bytes_moved: u64,
}

impl From<DeltaSummary> for ChangesReply {
    fn from(changes: DeltaSummary) -> Self {
        let DeltaSummary { added, replaced, deleted, absent, partitions, bytes_changed, bytes_moved } =
            changes;
        Self { added, replaced, deleted, absent, partitions, bytes_changed, bytes_moved }
    }
}

impl BuildReply {
    /// Returns the reply for a version in `folder`.
    pub fn built(store: &str, built: &BuiltVersion, folder: String, took: Duration) -> Self {
        Self {
            store: store.to_owned(),
            version: Some(built.manifest.version.0),
            folder: Some(folder),
            records: built.records(),
            bytes: built.bytes(),
            duplicates: built.duplicates,
            dropped: dropped(&built.report.errors),
            schema_changes: Vec::new(),
            warning: None,
            manifest_hash: Some(built.manifest.hash()),
            changes: built.changes.map(ChangesReply::from),
            seconds: seconds(took),
        }
    }

    /// Returns the reply for a dry run.
    pub fn checked(store: &str, report: &RowReport, schema_changes: Vec<String>, took: Duration) -> Self {
        Self {
            store: store.to_owned(),
            version: None,
            folder: None,
            records: report.rows,
            bytes: 0,
            duplicates: 0,
            dropped: dropped(&report.errors),
            schema_changes,
            warning: report.unlikely_time.clone(),
            manifest_hash: None,
            changes: None,
            seconds: seconds(took),
        }
    }
}

/// Returns the counts of invalid rows by reason, each with those of its rows that are among the first ten.
pub fn dropped(errors: &RowErrors) -> Vec<DroppedLines> {
    DroppedLines::all(kith_build::DroppedRows::of_rows(errors))
}

/// Returns a duration in seconds, rounded to the millisecond.
pub fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e3).round() / 1e3
}
