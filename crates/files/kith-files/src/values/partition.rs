//! Builds one partition of a store separately, as a Spark task does (the reducer of Voldemort §5.2).

use super::options::{ValuesOptions, ValuesProgress, shown};
use super::summary::{PartitionSummary, SUMMARY_FORMAT, SUMMARY_NAME, identity};
use super::writer::ValuesWriter;
use super::{ValuesBuildError, make_folder, sort_options};
use crate::BuildError;
use crate::rows::RowSorter;
use kith_types::PartitionId;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Builds one partition. Its folder appears complete or not at all.
pub struct PartitionBuilder {
    options: ValuesOptions,
    partition: PartitionId,
    target: PathBuf,
    staging: tempfile::TempDir,
    rows: RowSorter,
}

impl PartitionBuilder {
    /// Starts a partition in `folder`. `out_dir` of the options is not used; with compression, the dictionary must be
    /// given. Rows may come in any order.
    ///
    /// # Errors
    /// If the options are invalid, or folders cannot be created.
    pub fn new(
        options: ValuesOptions,
        partition: PartitionId,
        folder: &Path,
    ) -> Result<Self, ValuesBuildError> {
        options.check()?;
        // Fails now and not after a long sort.
        super::coding(&options)?;
        let parent =
            folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        make_folder(parent)?;
        let staging = tempfile::Builder::new().prefix(".partition-").tempdir_in(parent);
        let staging = staging.map_err(BuildError::folder("create", parent))?;
        let rows = RowSorter::new(sort_options(&options)?);
        Ok(Self { options, partition, target: folder.to_owned(), staging, rows })
    }

    /// Adds a row of the partition.
    ///
    /// # Errors
    /// If the row does not belong to this partition or cannot be stored, or sorted runs cannot be written.
    pub fn row(&mut self, key: &[u8], value: &[u8]) -> Result<(), ValuesBuildError> {
        let partition = self.options.check_row(key, value)?;
        if partition != self.partition {
            let (expected, got) = (self.partition.0, partition.0);
            return Err(ValuesBuildError::OtherPartition {
                key: shown(self.options.key, key),
                expected,
                got,
            });
        }
        Ok(self.rows.push(partition, key, value)?)
    }

    /// Writes and syncs the files and the summary, and gives the folder its name. If another run of the same task finished
    /// first, its result stays.
    ///
    /// # Errors
    /// [`ValuesBuildError`] if a step fails. Nothing remains then.
    pub fn finish(
        self,
        progress: &mut dyn FnMut(ValuesProgress),
    ) -> Result<PartitionSummary, ValuesBuildError> {
        let dir = self.staging.path().to_owned();
        let total = self.rows.rows();
        let mut sorted = self.rows.finish()?;
        let mut writer = ValuesWriter::new(&dir, &self.options, std::iter::once(self.partition))?;
        writer.write_rows(&mut sorted, self.options.duplicates, total, progress)?;
        let mut written = writer.finish()?;
        written.files.sort_by(|a, b| a.name.cmp(&b.name));
        let summary = PartitionSummary {
            kith_partition: SUMMARY_FORMAT,
            partition: self.partition.0,
            options: identity(&self.options),
            counts: written.counts,
            files: written.files,
            seal: String::new(),
        }
        .sealed();
        let path = dir.join(SUMMARY_NAME);
        fs::write(&path, summary.encode()).map_err(BuildError::folder("write", &path))?;
        let mut paths: Vec<PathBuf> = summary.files.iter().map(|file| dir.join(&file.name)).collect();
        paths.extend([path, dir.clone()]);
        kith_engine::writing::sync(&paths)?;
        commit(&dir, &self.target, &summary)?;
        Ok(summary)
    }
}

/// Gives the folder its name, unless the same result is already there.
fn commit(dir: &Path, target: &Path, summary: &PartitionSummary) -> Result<(), ValuesBuildError> {
    match fs::rename(dir, target) {
        Ok(()) => {}
        Err(error)
            if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) =>
        {
            if PartitionSummary::read(target)? != *summary {
                let fault = "another build of the partition is there, of other rows or options".to_owned();
                return Err(ValuesBuildError::Partition { path: target.to_owned(), fault });
            }
        }
        Err(error) => return Err(BuildError::folder("rename", dir)(error).into()),
    }
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(parent).and_then(|parent| parent.sync_all());
    Ok(synced.map_err(BuildError::folder("sync", parent))?)
}
