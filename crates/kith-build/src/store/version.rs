//! Which version is built, where, of what, and what came of it.

use super::{RowSettings, Shape};
use kith_engine::Manifest;
use kith_load::{DeltaSummary, ValuesOptions, ZstdOptions};
use kith_objects::Objects;
use kith_rows::{RowReport, ValueShape};
use kith_types::StoreVersion;
use std::path::{Path, PathBuf};

/// Which version a build makes, and where.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// The name of the store.
    pub store: &'a str,
    /// The number of the version; its folder is named by it.
    pub version: StoreVersion,
    /// The folder of the store's versions. It is made if it is not there.
    pub out_dir: PathBuf,
}

impl Target<'_> {
    /// How the engine builds this version, of values that become what `value` says.
    pub(super) fn values_options(
        &self,
        shape: &Shape,
        settings: &RowSettings,
        value: &ValueShape,
    ) -> ValuesOptions {
        ValuesOptions {
            key: shape.key,
            value: shape.value,
            schema: match value {
                ValueShape::Record(schema) => Some(schema.canonical().to_owned()),
                ValueShape::Text | ValueShape::Bytes | ValueShape::Json => None,
            },
            compression: settings.compress.map(|level| ZstdOptions { level, dictionary: None }),
            duplicates: settings.duplicates,
            memory_bytes: settings.memory_bytes,
            threads: settings.threads,
            ..ValuesOptions::new(self.store, self.version, shape.partitions, self.out_dir.clone())
        }
    }
}

/// As [`Target`], of a version in a folder or a bucket.
#[derive(Clone, Debug)]
pub struct Destination<'a> {
    /// The name of the store.
    pub store: &'a str,
    /// The number of the version; `None`: the time in milliseconds since 1970, but above all versions in the place.
    pub version: Option<StoreVersion>,
    /// The place of the store's versions, each under its number.
    pub place: &'a Objects,
}

/// A version that was built.
#[derive(Clone, Debug)]
pub struct Built {
    /// Its files and counts; `Manifest::hash` identifies it.
    pub manifest: Manifest,
    /// Rows dropped because another with their key was kept.
    pub duplicates: u64,
    /// Rows read, and the wrong ones that were dropped.
    pub report: RowReport,
    /// Of a version made of another.
    pub changes: Option<DeltaSummary>,
}

/// What a version is made of beside rows.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The folder of the version before.
    pub folder: &'a Path,
    /// Where that version lies, if that is a bucket: what both versions have in common is copied there, and not uploaded.
    pub place: Option<&'a Objects>,
    /// A file or URL of keys to delete, one a line, bytes in base64.
    pub delete: Option<&'a str>,
}

impl Built {
    /// How many keys it has.
    pub fn records(&self) -> u64 {
        self.manifest.values().map_or(0, |values| values.counts.records)
    }

    /// Bytes of one replica.
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }
}
