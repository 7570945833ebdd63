//! The target of a build, its base, and its result.

use super::{RowSettings, Shape};
use crate::rows::{RowReport, ValueShape};
use kith_engine::Manifest;
use kith_files::objects::Objects;
use kith_files::{DeltaSummary, ValuesOptions, ZstdOptions};
use kith_types::StoreVersion;
use std::path::{Path, PathBuf};

/// The version to build, and its folder.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// The name of the store.
    pub store: &'a str,
    /// The number of the version, after which its folder is named.
    pub version: StoreVersion,
    /// The folder of the store's versions. It is created if it does not exist.
    pub out_dir: PathBuf,
}

impl Target<'_> {
    /// The options of the engine for building this version, with values of the type `value`.
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

/// The version to build in a folder or a bucket, like [`Target`].
#[derive(Clone, Debug)]
pub struct Destination<'a> {
    /// The name of the store.
    pub store: &'a str,
    /// The number of the version; `None` uses the time in milliseconds since 1970, but above all versions in the place.
    pub version: Option<StoreVersion>,
    /// The place of the store's versions, each under its number.
    pub objects: &'a Objects,
}

/// A version that was built.
#[derive(Clone, Debug)]
pub struct BuiltVersion {
    /// Its files and counts; `Manifest::hash` identifies it.
    pub manifest: Manifest,
    /// The number of rows that were dropped because another row with the same key was kept.
    pub duplicates: u64,
    /// The number of rows that were read, and the wrong ones that were dropped.
    pub report: RowReport,
    /// The summary of changes, for a version that was made from another.
    pub changes: Option<DeltaSummary>,
}

/// The base of a version that is built from changes.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The folder of the base version.
    pub folder: &'a Path,
    /// The place of the base version, if it is in a bucket. Files that both versions have in common are copied there, and
    /// not uploaded.
    pub objects: Option<&'a Objects>,
    /// A file or URL of keys to delete, one per line, with bytes in base64.
    pub delete: Option<&'a str>,
}

impl BuiltVersion {
    /// The number of its keys.
    pub fn records(&self) -> u64 {
        self.manifest.values().map_or(0, |values| values.counts.records)
    }

    /// The size of one replica in bytes.
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }
}
