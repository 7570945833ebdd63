//! Builds a version from rows: reads, checks, sorts and writes them.

use super::{
    Base, BuiltVersion, Destination, RowSettings, Shape, Target, delete::delete, inputs::files,
    scratch::Scratch, sources::CountedFile,
};
use crate::rows::{ReadError, RowOptions, RowReport, RowSource, RowsError, read_rows};
use crate::{
    Failure, OnProgress, Progress, Workshop,
    failure::{build, check_name, read},
    place::{next_version, publish_version},
};
use kith_files::{
    DeltaBuilder, DeltaOptions, PartitionBuilder, PartitionSummary, ValuesBuildError, ValuesBuilder,
    ValuesOptions, version_dir,
};
use kith_types::{ErrorCode, PartitionId};
use std::{
    fs,
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The number of rows, and of bytes of rows, between two reports of progress.
const ROWS_A_LOOK: u64 = 1024;
const BYTES_A_LOOK: usize = 1 << 20;

/// Files and objects with the rows of a store, ready to be read. They may be read several times.
pub struct Rows {
    sources: Vec<Box<dyn RowSource>>,
    shape: Shape,
    settings: RowSettings,
    options: RowOptions,
    read: Arc<AtomicU64>,
    bytes: u64,
    warning: OnceLock<String>,
    /// The effects of the schema compared with the current one, as text.
    pub notes: Vec<String>,
}

impl Rows {
    /// Finds the files, folders, patterns and URLs of `inputs`, and determines the types of their rows. With `force`, the
    /// schema need not be compatible with the current one. Records without a known schema cost a pass over the files.
    ///
    /// # Errors
    /// `bad_input`; `object_store_unreachable`; `bad_schema` if there is no schema for their records;
    /// `incompatible_schema`.
    pub fn open(
        inputs: &[String],
        settings: &RowSettings,
        shape: &Shape,
        force: bool,
    ) -> Result<Self, Failure> {
        let read = Arc::new(AtomicU64::new(0));
        let mut bytes = 0;
        let mut sources: Vec<Box<dyn RowSource>> = Vec::new();
        for file in files(inputs)? {
            let size = file.size().unwrap_or_default();
            sources.push(Box::new(CountedFile { file, before: bytes, read: Arc::clone(&read) }));
            bytes += size;
        }
        let rows = Self::of(sources, settings, shape, force)?;
        Ok(Self { read, bytes, ..rows })
    }

    /// Prepares given sources like [`Rows::open`].
    ///
    /// # Errors
    /// Those of [`Rows::open`].
    pub fn of(
        sources: Vec<Box<dyn RowSource>>,
        settings: &RowSettings,
        shape: &Shape,
        force: bool,
    ) -> Result<Self, Failure> {
        let (options, notes) = shape.row_options(settings, &sources, force)?;
        let (shape, settings) = (shape.clone(), settings.clone());
        Ok(Self {
            sources,
            shape,
            settings,
            options,
            read: Arc::default(),
            bytes: 0,
            notes,
            warning: OnceLock::new(),
        })
    }

    /// Reads and checks everything without building a version.
    ///
    /// # Errors
    /// `bad_rows`, `no_rows` or `bad_input` if the rows are refused.
    pub fn check(&self, on_progress: &mut OnProgress<'_>) -> Result<RowReport, Failure> {
        self.each(on_progress, |_, _| Ok(())).map_err(|error| self.refused(error))
    }

    /// The effects of these rows and their schema compared with the current version, as text.
    pub fn changes(&self, report: &RowReport) -> Vec<String> {
        let missing = report.missing.iter();
        let missing = missing
            .map(|field| format!("field {field:?} is missing in rows: its default, or null, is stored"));
        self.notes.iter().cloned().chain(missing).collect()
    }

    /// The message about the first number in a field of times that is unlikely to be in milliseconds, once the rows are read.
    pub fn warning(&self) -> Option<String> {
        self.warning.get().cloned()
    }

    /// The failure for refused rows. If they do not have the fields of the schema, it also lists what the schema changes.
    fn refused(&self, error: ReadError<ValuesBuildError>) -> Failure {
        let by_fields = matches!(
            error,
            ReadError::Input(RowsError::MissingFields { .. } | RowsError::UnknownColumn { .. })
        );
        let mut failure = read(error, &self.options);
        if by_fields {
            failure.wrong.clone_from(&self.notes);
        }
        failure
    }

    /// Builds a version. After an error nothing of it remains.
    ///
    /// # Errors
    /// Those of [`Rows::check`]; `duplicate_key`; `build_failed` if the version exists, or files cannot be written.
    pub fn build(
        &self,
        target: &Target<'_>,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<BuiltVersion, Failure> {
        check_name("store", target.store)?;
        let options = self.values_options(target);
        let _scratch = Scratch(options.scratch_dir.clone());
        self.try_build(options, on_progress).map_err(|error| self.refused(error))
    }

    /// Builds a version like [`Rows::build`], from another version with the rows as its changes. Only partitions with a
    /// change are written.
    ///
    /// # Errors
    /// Those of [`Rows::build`]; an error if the base version is damaged.
    pub fn build_on(
        &self,
        base: Base<'_>,
        target: &Target<'_>,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<BuiltVersion, Failure> {
        let options = DeltaOptions {
            duplicates: self.settings.duplicates,
            memory_bytes: self.settings.memory_bytes,
            threads: self.settings.threads,
            ..DeltaOptions::new(target.version, target.out_dir.clone())
        };
        let _scratch = Scratch(options.scratch_dir.clone());
        self.try_build_on(base, options, on_progress)
    }

    /// Builds a version in its place, from rows alone or as changes of another version. For a bucket, it is built in a
    /// temporary folder first.
    ///
    /// # Errors
    /// Those of [`Rows::build`], [`Rows::build_on`] and [`publish_version`].
    pub fn build_into(
        &self,
        destination: &Destination<'_>,
        base: Option<Base<'_>>,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<BuiltVersion, Failure> {
        let version = match destination.version {
            Some(version) => version,
            None => next_version(destination.objects)?,
        };
        let workshop = Workshop::of(destination.objects)?;
        let target = Target { store: destination.store, version, out_dir: workshop.folder().to_owned() };
        let built = match base {
            Some(base) => self.build_on(base, &target, on_progress)?,
            None => self.build(&target, on_progress)?,
        };
        let to = destination.objects.join(&version.0.to_string());
        let base = base.and_then(|base| base.objects);
        publish_version(base, &version_dir(workshop.folder(), version), &to, on_progress)?;
        Ok(built)
    }

    /// Builds one partition of the version `target` in `folder`. After an error nothing of it remains.
    ///
    /// # Errors
    /// Those of [`Rows::build`]; an error if a row belongs to another partition.
    pub fn build_partition(
        &self,
        target: &Target<'_>,
        partition: PartitionId,
        folder: &Path,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<PartitionSummary, Failure> {
        // Each task has a scratch folder of its own, because several may write below the same folder.
        let scratch = fs::create_dir_all(&target.out_dir)
            .and_then(|()| tempfile::Builder::new().prefix(".scratch-").tempdir_in(&target.out_dir));
        let scratch = scratch.map_err(|error| {
            let message = format!("{} cannot be written: {error}", target.out_dir.display());
            Failure::new(ErrorCode::BuildFailed, message, "check the folder and its permissions")
        })?;
        let mut options = self.values_options(target);
        options.scratch_dir = scratch.path().to_owned();
        let built = self.try_build_partition(options, partition, folder, on_progress);
        built.map_err(|error| self.refused(error))
    }

    fn try_build_partition(
        &self,
        options: ValuesOptions,
        partition: PartitionId,
        folder: &Path,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<PartitionSummary, ReadError<ValuesBuildError>> {
        let mut builder = PartitionBuilder::new(options, partition, folder).map_err(ReadError::Caller)?;
        self.each(on_progress, |key, value| builder.row(key, value))?;
        builder.finish(&mut |_| {}).map_err(ReadError::Caller)
    }

    fn try_build_on(
        &self,
        base: Base<'_>,
        options: DeltaOptions,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<BuiltVersion, Failure> {
        let mut builder = DeltaBuilder::new(base.folder, options).map_err(|error| build(&error))?;
        let report = self.each(on_progress, |key, value| builder.put(key, value));
        let report = report.map_err(|error| self.refused(error))?;
        let deleted = base.delete.map_or(Ok(0), |path| delete(path, self.shape.key, &mut builder))?;
        let finished =
            builder.finish(&mut |step| on_progress(Progress::writing(step.rows_done, step.rows_total)));
        let (manifest, changes) = finished.map_err(|error| build(&error))?;
        let applied = changes.added + changes.replaced + changes.deleted + changes.absent;
        let duplicates = (report.rows + deleted).saturating_sub(applied);
        Ok(BuiltVersion { manifest, duplicates, report, changes: Some(changes) })
    }

    fn values_options(&self, target: &Target<'_>) -> ValuesOptions {
        target.values_options(&self.shape, &self.settings, &self.options.value)
    }

    fn try_build(
        &self,
        options: ValuesOptions,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<BuiltVersion, ReadError<ValuesBuildError>> {
        let mut builder = ValuesBuilder::new(options).map_err(ReadError::Caller)?;
        let report = self.each(on_progress, |key, value| builder.row(key, value))?;
        let written =
            builder.finish(&mut |step| on_progress(Progress::writing(step.rows_done, step.rows_total)));
        let (manifest, summary) = written.map_err(ReadError::Caller)?;
        Ok(BuiltVersion { manifest, duplicates: summary.duplicates, report, changes: None })
    }

    fn each(
        &self,
        on_progress: &mut OnProgress<'_>,
        mut row: impl FnMut(&[u8], &[u8]) -> Result<(), ValuesBuildError>,
    ) -> Result<RowReport, ReadError<ValuesBuildError>> {
        let (mut rows, mut unseen) = (0_u64, 0);
        let report = read_rows(&self.sources, &self.options, |key, value| {
            self.settings.stop.check()?;
            row(key, value)?;
            rows += 1;
            unseen += key.len() + value.len();
            if rows.is_multiple_of(ROWS_A_LOOK) || BYTES_A_LOOK <= unseen {
                unseen = 0;
                let (done, total) = (self.read.load(Ordering::Relaxed), self.bytes);
                on_progress(Progress::Rows { stage: "reading", rows, done, total });
            }
            Ok(())
        })?;
        if let Some(warning) = &report.unlikely_time {
            // The first reading says the same as all others.
            let _ = self.warning.set(warning.clone());
        }
        Ok(report)
    }
}
