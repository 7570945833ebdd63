//! Builds a version from another version and a set of changes: the future work of Voldemort §7, on whole partitions.
//!
//! Only partitions with a change are written. Files of the others are those of the base, byte for byte, and packs with only
//! such files are linked. The result is the version that a build of all rows with the base's dictionary would produce: the
//! manifest is the same. The patch beside it lists the changes record by record, and nodes that hold the base fetch only
//! the patch.

mod base;
mod changes;
mod merge;
mod options;

use super::options::{ValuesOptions, ValuesProgress, ZstdOptions};
use super::writer::ValuesWriter;
use super::{ValuesBuildError, manifest, sort_options};
use crate::builder::Staging;
use crate::rows::RowSorter;
use base::{changed_bytes, counts, kept_files, lay_out};
use changes::{Changes, DELETE, PUT};
use kith_engine::writing::{PatchWriter, merge, read_dictionary};
use kith_engine::{ChunkSetReader, Compression, Manifest, ValueCounts, VersionFolder};
use kith_types::PartitionId;
use merge::Merge;
use std::collections::BTreeSet;
use std::path::Path;

pub use options::{DeltaOptions, DeltaSummary};

/// Collects the changes to a version.
pub struct DeltaBuilder {
    base: VersionFolder,
    options: ValuesOptions,
    staging: Staging,
    changes: RowSorter,
    touched: BTreeSet<PartitionId>,
}

impl DeltaBuilder {
    /// Starts from the folder of a version in the object store, with all its partitions.
    ///
    /// # Errors
    /// If the base cannot be opened or holds a graph, or folders cannot be created.
    pub fn new(base: &Path, options: DeltaOptions) -> Result<Self, ValuesBuildError> {
        let base = VersionFolder::open(base)?;
        let manifest = base.manifest();
        let Some(values) = manifest.values() else {
            let (component, got) = (manifest.component.clone(), manifest.content.name());
            return Err(kith_engine::OpenError::OtherContent { component, expected: "values", got }.into());
        };
        let compression = match values.compression {
            Some(Compression::Zstd(level)) => {
                Some(ZstdOptions { level, dictionary: Some(read_dictionary(&base)?) })
            }
            None => None,
        };
        let options = ValuesOptions {
            name: manifest.component.clone(),
            version: options.version,
            partitions: manifest.partition_count,
            key: values.key,
            value: values.value,
            schema: values.schema.clone(),
            compression,
            duplicates: options.duplicates,
            memory_bytes: options.memory_bytes,
            scratch_dir: options.scratch_dir,
            out_dir: options.out_dir,
            threads: options.threads,
        };
        options.check()?;
        let staging = Staging::create(&options.out_dir, options.version)?;
        let changes = RowSorter::new(sort_options(&options)?);
        Ok(Self { base, options, staging, changes, touched: BTreeSet::new() })
    }

    /// Adds a key or gives it a new value.
    ///
    /// # Errors
    /// If the row cannot be a row of the store, or sorted runs cannot be written.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), ValuesBuildError> {
        self.options.check_row(key, value)?;
        self.change(key, &[&[PUT], value].concat())
    }

    /// Removes a key, which need not exist.
    ///
    /// # Errors
    /// Those of [`DeltaBuilder::put`].
    pub fn delete(&mut self, key: &[u8]) -> Result<(), ValuesBuildError> {
        self.change(key, &[DELETE])
    }

    fn change(&mut self, key: &[u8], change: &[u8]) -> Result<(), ValuesBuildError> {
        let partition = self.options.check_row(key, &[])?;
        self.touched.insert(partition);
        Ok(self.changes.push(partition, key, change)?)
    }

    /// Writes the new version. `progress` is called once per partition that changed.
    ///
    /// # Errors
    /// [`ValuesBuildError`] if a step fails. Nothing of the new version remains then, and the base is unchanged.
    pub fn finish(
        self,
        progress: &mut dyn FnMut(ValuesProgress),
    ) -> Result<(Manifest, DeltaSummary), ValuesBuildError> {
        let Self { base, options, staging, changes, touched } = self;
        let (dir, total) = (staging.dir(), changes.rows());
        let mut changes = Changes::new(changes.finish()?, options.key, options.duplicates)?;
        let mut summary = DeltaSummary { partitions: touched.len() as u32, ..DeltaSummary::default() };
        let mut writer = ValuesWriter::new(&dir, &options, touched.iter().copied())?;
        let mut patch = PatchWriter::new(&dir)?;
        let mut removed = ValueCounts::default();
        for &partition in &touched {
            let records = ChunkSetReader::open(&base, partition, None)?;
            patch.begin(partition);
            let mut merging = Merge {
                writer: &mut writer,
                patch: &mut patch,
                changes: &mut changes,
                summary: &mut summary,
                partition,
                compressed: options.compression.is_some(),
                removed: &mut removed,
            };
            merge(&records, &mut merging)?;
            progress(ValuesProgress { rows_done: changes.done, rows_total: total });
        }
        let written = writer.finish()?;
        let counts = counts(&base, &written.counts, &removed);
        let mut files = kept_files(&base, &touched);
        files.extend(written.files);
        let manifest = manifest(&options, counts, files);
        let patched = patch.finish(base.manifest(), &manifest)?;
        summary.bytes_changed = changed_bytes(base.manifest(), &manifest, &|_| true);
        let is_pulled = |partition| !patched.partitions.contains(&partition);
        summary.bytes_moved = patched.bytes + changed_bytes(base.manifest(), &manifest, &is_pulled);
        lay_out(&base, &manifest, &dir)?;
        manifest.write(&dir)?;
        staging.commit()?;
        Ok((manifest, summary))
    }
}
