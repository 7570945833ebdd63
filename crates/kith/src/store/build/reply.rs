//! What a build did, as JSON: field names are a contract (`docs/loading.md`).

use crate::publish::Dropped;
use kith_build::{Built, DeltaSummary};
use kith_rows::{RowErrors, RowReport};
use serde::Serialize;
use std::time::Duration;

/// A version that was built, or rows that were checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BuildReply {
    pub store: String,
    /// `null` after a dry run.
    pub version: Option<u64>,
    /// Where it is; `null` after a dry run.
    pub folder: Option<String>,
    pub records: u64,
    pub bytes: u64,
    /// Rows dropped because another with their key was kept.
    pub duplicates: u64,
    /// Wrong rows that were dropped, by reason.
    pub dropped: Vec<Dropped>,
    /// What identifies it; `null` after a dry run.
    pub manifest_hash: Option<String>,
    /// `null` unless it was made of another version.
    pub changes: Option<ChangesReply>,
    pub seconds: f64,
}

/// What a delta changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ChangesReply {
    /// Keys that were not there before.
    pub added: u64,
    /// Keys with another value.
    pub replaced: u64,
    /// Keys that are gone.
    pub deleted: u64,
    /// Keys to delete that were not there.
    pub absent: u64,
    /// Partitions written anew.
    pub partitions: u32,
    /// Bytes of files that the version before does not have.
    pub bytes_changed: u64,
    /// Bytes that a replica with all of the version before fetches, beside the manifest.
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
    /// Of a version in `folder`.
    pub fn built(store: &str, built: &Built, folder: String, took: Duration) -> Self {
        Self {
            store: store.to_owned(),
            version: Some(built.manifest.version.0),
            folder: Some(folder),
            records: built.records(),
            bytes: built.bytes(),
            duplicates: built.duplicates,
            dropped: dropped(&built.report.errors),
            manifest_hash: Some(built.manifest.hash()),
            changes: built.changes.map(ChangesReply::from),
            seconds: seconds(took),
        }
    }

    /// Of a dry run.
    pub fn checked(store: &str, report: &RowReport, took: Duration) -> Self {
        Self {
            store: store.to_owned(),
            version: None,
            folder: None,
            records: report.rows,
            bytes: 0,
            duplicates: 0,
            dropped: dropped(&report.errors),
            manifest_hash: None,
            changes: None,
            seconds: seconds(took),
        }
    }
}

/// Wrong rows by reason, with those among the first ten.
pub fn dropped(errors: &RowErrors) -> Vec<Dropped> {
    Dropped::all(kith_build::Dropped::of_rows(errors))
}

/// Seconds, to the millisecond.
pub fn seconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1e3).round() / 1e3
}
