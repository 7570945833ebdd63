//! Builds a version of a store: takes rows in any order, within a memory budget, and writes the files of every partition
//! (Voldemort §5.2; one copy of each partition for all its replicas).
//!
//! The files depend only on the rows, the options and the version number. The order of rows (except for the choice of the
//! first or last duplicate), the memory budget, the number of threads and the number of processes do not change a byte.
//!
//! Compression needs a dictionary before the first value is written. It is trained on the rows of the whole store whose
//! keys have the least positions. Positions are a hash, so all builders choose the same sample. A builder of all rows
//! collects the sample as the rows pass. Builders of single partitions are given the dictionary, which a pass over the rows
//! with [`DictionarySample`] produces.

mod assemble;
mod delta;
mod error;
mod options;
mod partition;
mod sample;
mod summary;
#[cfg(test)]
mod tests;
mod writer;

use crate::builder::Staging;
use crate::rows::RowSorter;
use crate::sort::SortOptions;
pub use assemble::{AssembledSource, Assembly, assemble};
pub use delta::{DeltaBuilder, DeltaOptions, DeltaSummary};
pub use error::ValuesBuildError;
use kith_engine::Manifest;
use kith_engine::writing::{Piece, write_packs};
use kith_engine::{Content, ValueCounts, ValuesContent};
pub use options::{Duplicates, ValuesOptions, ValuesProgress, ValuesSummary, ZstdOptions};
pub use partition::PartitionBuilder;
pub use sample::DictionarySample;
use std::path::Path;
pub use summary::{PartitionSummary, SUMMARY_NAME};
use writer::{ValueCoding, ValuesWriter, write_dictionary};

/// Builds a version of a store.
pub struct ValuesBuilder {
    options: ValuesOptions,
    staging: Staging,
    rows: RowSorter,
    /// The sample, while a dictionary has to be trained.
    sample: Option<DictionarySample>,
}

impl ValuesBuilder {
    /// Starts a build. Removes the staging folder of a killed build, and creates a new one.
    ///
    /// # Errors
    /// If the name is not valid, the version exists, another build of the store is running, or folders cannot be created.
    pub fn new(options: ValuesOptions) -> Result<Self, ValuesBuildError> {
        options.check()?;
        let staging = Staging::create(&options.out_dir, options.version)?;
        let rows = RowSorter::new(sort_options(&options)?);
        let trains = options.compression.as_ref().is_some_and(|zstd| zstd.dictionary.is_none());
        let sample = trains.then(|| DictionarySample::new(options.duplicates));
        Ok(Self { options, staging, rows, sample })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the key or value cannot be stored, or sorted runs cannot be written.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), ValuesBuildError> {
        let partition = self.options.check_row(key, value)?;
        if let Some(sample) = &mut self.sample {
            sample.add(key, value);
        }
        Ok(self.rows.push(partition, key, value)?)
    }

    /// The number of rows so far.
    pub fn rows(&self) -> u64 {
        self.rows.rows()
    }

    /// Sorts, writes and syncs all files, and gives the folder its final name. `progress` is called once per partition, and
    /// more often within large ones.
    ///
    /// # Errors
    /// [`ValuesBuildError`] if a step fails. Nothing remains then.
    pub fn finish(
        self,
        progress: &mut dyn FnMut(ValuesProgress),
    ) -> Result<(Manifest, ValuesSummary), ValuesBuildError> {
        let Self { mut options, staging, rows, sample } = self;
        if let (Some(sample), Some(zstd)) = (sample, &mut options.compression) {
            zstd.dictionary = Some(sample.train());
        }
        let dir = staging.dir();
        let given = rows.rows();
        let mut sorted = rows.finish()?;
        let mut writer = ValuesWriter::new(&dir, &options, options.partitions.iter())?;
        writer.write_rows(&mut sorted, options.duplicates, given, progress)?;
        let written = writer.finish()?;
        let mut files = written.files;
        files.extend(write_dictionary(&dir, &options)?);
        let manifest = manifest(&options, written.counts, files);
        write_packs(&dir, &manifest, &|_| false, &mut |entry| Piece::Loose(dir.join(&entry.name)))?;
        manifest.write(&dir)?;
        staging.commit()?;
        let summary = ValuesSummary {
            counts: written.counts,
            duplicates: given - written.counts.records,
            bytes: manifest.files.iter().map(|file| file.bytes).sum(),
            spilled_runs: sorted.spilled_runs(),
        };
        Ok((manifest, summary))
    }
}

/// The manifest of a version with these files.
fn manifest(options: &ValuesOptions, counts: ValueCounts, files: Vec<kith_engine::FileEntry>) -> Manifest {
    let content = Content::Values(ValuesContent {
        key: options.key,
        value: options.value,
        schema: options.schema.clone(),
        compression: options.compression.as_ref().map(ZstdOptions::compression),
        counts,
    });
    Manifest::new(options.name.clone(), options.version, options.partitions, content, files)
}

/// The options of the sort, which gets all of a build's memory. Writing needs only a few more buffers, whatever the number
/// of rows.
fn sort_options(options: &ValuesOptions) -> Result<SortOptions, ValuesBuildError> {
    let scratch_dir = options.scratch_dir.clone();
    make_folder(&scratch_dir)?;
    Ok(SortOptions { memory_bytes: options.memory_bytes, scratch_dir, threads: options.threads })
}

fn make_folder(path: &Path) -> Result<(), ValuesBuildError> {
    let made = std::fs::create_dir_all(path);
    Ok(made.map_err(crate::BuildError::folder("create", path))?)
}

/// The encoding of values in files.
fn coding(options: &ValuesOptions) -> Result<ValueCoding, ValuesBuildError> {
    let Some(zstd) = &options.compression else { return Ok(ValueCoding::Plain) };
    let dictionary = zstd.dictionary.as_deref().ok_or(ValuesBuildError::NoDictionary)?;
    Ok(ValueCoding::compressing(zstd.level, dictionary)?)
}
