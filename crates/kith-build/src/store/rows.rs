//! Rows into a version: the files read, checked, sorted and written, with a meter.

use super::{RowFlags, Shape, fault};
use crate::{failure::Failure, publish::Meter};
use kith_engine::{
    Manifest,
    load::{
        DeltaBuilder, DeltaOptions, DeltaSummary, PartitionBuilder, PartitionSummary, ValuesBuildError,
        ValuesBuilder, ValuesOptions, ZstdOptions,
    },
};
use kith_rows::{ReadError, RowErrors, RowOptions, RowReport, RowSource, RowsError, ValueShape, read_rows};
use kith_types::{ErrorCode, PartitionId, StoreVersion};
use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// The meter looks at the clock once in so many rows, or so many bytes.
const ROWS_A_LOOK: u64 = 1024;
const BYTES_A_LOOK: usize = 1 << 20;

/// Files ready to be read.
pub struct Rows {
    sources: Vec<Box<dyn RowSource>>,
    options: RowOptions,
    read: Arc<AtomicU64>,
    bytes: u64,
    /// What changes with the schema, in words.
    pub notes: Vec<String>,
}

/// Where a version goes.
pub struct Target<'a> {
    pub store: &'a str,
    pub version: StoreVersion,
    /// The folder of the store's versions.
    pub out_dir: PathBuf,
}

/// A version that was built.
pub struct Built {
    pub manifest: Manifest,
    /// Rows dropped because another with their key was kept.
    pub duplicates: u64,
    pub report: RowReport,
    /// Of a version made of another.
    pub changes: Option<DeltaSummary>,
}

/// What a version is made of beside rows.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The folder of the version before.
    pub folder: &'a Path,
    /// A file or URL of keys to delete.
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

impl Rows {
    /// Finds the files and settles what their rows become.
    ///
    /// # Errors
    /// If there are none, or there is no schema for their records.
    pub fn open(inputs: &[String], flags: &RowFlags, shape: &Shape, force: bool) -> Result<Self, Failure> {
        let read = Arc::new(AtomicU64::new(0));
        let mut bytes = 0;
        let mut sources: Vec<Box<dyn RowSource>> = Vec::new();
        for file in super::inputs::files(inputs)? {
            let size = file.size().unwrap_or_default();
            sources.push(Box::new(Counted { file, before: bytes, read: Arc::clone(&read) }));
            bytes += size;
        }
        let rows = Self::of(sources, flags, shape, force)?;
        Ok(Self { read, bytes, ..rows })
    }

    /// As [`Rows::open`], of sources that are there.
    ///
    /// # Errors
    /// As [`Rows::open`].
    pub fn of(
        sources: Vec<Box<dyn RowSource>>,
        flags: &RowFlags,
        shape: &Shape,
        force: bool,
    ) -> Result<Self, Failure> {
        let (options, notes) = shape.row_options(flags, &sources, force)?;
        Ok(Self { sources, options, read: Arc::default(), bytes: 0, notes })
    }

    /// Reads and checks everything, builds nothing.
    ///
    /// # Errors
    /// If the rows are refused.
    pub fn check(&self) -> Result<RowReport, Failure> {
        let mut meter = Meter::new();
        let report = self.each(&mut meter, |_, _| Ok(()));
        meter.clear();
        report.map_err(|error| told(error, &self.options))
    }

    /// Builds a version; after an error nothing of it is left.
    ///
    /// # Errors
    /// If the rows are refused or files cannot be written.
    pub fn build(&self, flags: &RowFlags, shape: &Shape, target: &Target<'_>) -> Result<Built, Failure> {
        let mut meter = Meter::new();
        let options = self.values_options(flags, shape, target);
        let scratch = options.scratch_dir.clone();
        let built = self.try_build(options, &mut meter);
        meter.clear();
        // Scratch files have no names: the folder is empty.
        let _ = fs::remove_dir(scratch);
        built.map_err(|error| told(error, &self.options))
    }

    /// Builds one partition into `folder`; after an error nothing of it is left. `target` says of which version.
    ///
    /// # Errors
    /// As [`Rows::build`]; if a row is of another partition.
    pub fn build_partition(
        &self,
        flags: &RowFlags,
        shape: &Shape,
        target: &Target<'_>,
        partition: PartitionId,
        folder: &Path,
    ) -> Result<PartitionSummary, Failure> {
        let mut meter = Meter::new();
        // Of this task alone: others run beside it.
        let scratch = fs::create_dir_all(&target.out_dir)
            .and_then(|()| tempfile::Builder::new().prefix(".scratch-").tempdir_in(&target.out_dir));
        let scratch = scratch.map_err(|error| {
            let message = format!("{} cannot be written: {error}", target.out_dir.display());
            Failure::new(ErrorCode::BuildFailed, message, "check the folder and its permissions")
        })?;
        let mut options = self.values_options(flags, shape, target);
        options.scratch_dir = scratch.path().to_owned();
        let built = self.try_build_partition(options, partition, folder, &mut meter);
        meter.clear();
        built.map_err(|error| told(error, &self.options))
    }

    fn try_build_partition(
        &self,
        options: ValuesOptions,
        partition: PartitionId,
        folder: &Path,
        meter: &mut Meter,
    ) -> Result<PartitionSummary, ReadError<ValuesBuildError>> {
        let mut builder = PartitionBuilder::new(options, partition, folder).map_err(ReadError::Caller)?;
        self.each(meter, |key, value| builder.row(key, value))?;
        builder.finish(&mut |_| {}).map_err(ReadError::Caller)
    }

    /// As [`Rows::build`], of another version and the rows as its changes. Only partitions with a change are written.
    ///
    /// # Errors
    /// As [`Rows::build`]; if the version before is damaged.
    pub fn build_on(
        &self,
        base: Base<'_>,
        flags: &RowFlags,
        shape: &Shape,
        target: &Target<'_>,
    ) -> Result<Built, Failure> {
        let mut meter = Meter::new();
        let options = DeltaOptions {
            duplicates: flags.duplicates(),
            memory_bytes: flags.memory,
            threads: flags.threads(),
            ..DeltaOptions::new(target.version, target.out_dir.clone())
        };
        let scratch = options.scratch_dir.clone();
        let built = self.try_build_on(base, options, shape, &mut meter);
        meter.clear();
        // Scratch files have no names: the folder is empty.
        let _ = fs::remove_dir(scratch);
        built
    }

    fn try_build_on(
        &self,
        base: Base<'_>,
        options: DeltaOptions,
        shape: &Shape,
        meter: &mut Meter,
    ) -> Result<Built, Failure> {
        let failed = |error| told(ReadError::Caller(error), &self.options);
        let mut builder = DeltaBuilder::new(base.folder, options).map_err(failed)?;
        let report = self.each(meter, |key, value| builder.put(key, value));
        let report = report.map_err(|error| told(error, &self.options))?;
        let deleted =
            base.delete.map_or(Ok(0), |path| super::delta::delete(path, shape.key, &mut builder))?;
        let finished = builder.finish(&mut |step| {
            meter.on_rows("writing", step.rows_done, step.rows_done, step.rows_total);
        });
        let (manifest, changes) = finished.map_err(failed)?;
        let applied = changes.added + changes.replaced + changes.deleted + changes.absent;
        let duplicates = (report.rows + deleted).saturating_sub(applied);
        Ok(Built { manifest, duplicates, report, changes: Some(changes) })
    }

    fn values_options(&self, flags: &RowFlags, shape: &Shape, target: &Target<'_>) -> ValuesOptions {
        let out_dir = target.out_dir.clone();
        ValuesOptions {
            key: shape.key,
            value: shape.value,
            schema: match &self.options.value {
                ValueShape::Record(schema) => Some(schema.canonical().to_owned()),
                ValueShape::Text | ValueShape::Bytes | ValueShape::Json => None,
            },
            compression: flags.compress.map(|level| ZstdOptions { level, dictionary: None }),
            duplicates: flags.duplicates(),
            memory_bytes: flags.memory,
            threads: flags.threads(),
            ..ValuesOptions::new(target.store, target.version, shape.partitions, out_dir)
        }
    }

    fn try_build(
        &self,
        options: ValuesOptions,
        meter: &mut Meter,
    ) -> Result<Built, ReadError<ValuesBuildError>> {
        let mut builder = ValuesBuilder::new(options).map_err(ReadError::Caller)?;
        let report = self.each(meter, |key, value| builder.row(key, value))?;
        let written = builder.finish(&mut |step| {
            meter.on_rows("writing", step.rows_done, step.rows_done, step.rows_total);
        });
        let (manifest, summary) = written.map_err(ReadError::Caller)?;
        Ok(Built { manifest, duplicates: summary.duplicates, report, changes: None })
    }

    fn each(
        &self,
        meter: &mut Meter,
        mut row: impl FnMut(&[u8], &[u8]) -> Result<(), ValuesBuildError>,
    ) -> Result<RowReport, ReadError<ValuesBuildError>> {
        let (mut rows, mut unseen) = (0_u64, 0);
        read_rows(&self.sources, &self.options, |key, value| {
            row(key, value)?;
            rows += 1;
            unseen += key.len() + value.len();
            if rows.is_multiple_of(ROWS_A_LOOK) || BYTES_A_LOOK <= unseen {
                unseen = 0;
                meter.on_rows("reading", rows, self.read.load(Ordering::Relaxed), self.bytes);
            }
            Ok(())
        })
    }
}

/// Shows the first wrong rows as they are in the files.
fn told(error: ReadError<ValuesBuildError>, options: &RowOptions) -> Failure {
    match error {
        ReadError::Rows(error) => {
            if let RowsError::BadRows { errors, .. } | RowsError::NoGoodRows { errors } = &error {
                show(errors, options);
            }
            fault::rows(&error)
        }
        ReadError::Caller(error) => fault::build(&error),
    }
}

fn show(errors: &RowErrors, options: &RowOptions) {
    for error in &errors.first {
        eprintln!("{error}");
    }
    let more = errors.total().saturating_sub(errors.first.len() as u64);
    if 0 < more && 0 < options.errors_max {
        eprintln!("and {more} more");
    }
}

/// A file whose bytes are counted while they are read.
struct Counted {
    file: Box<dyn RowSource>,
    /// Bytes of the files before it.
    before: u64,
    read: Arc<AtomicU64>,
}

impl RowSource for Counted {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn size(&self) -> Option<u64> {
        self.file.size()
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        self.read.store(self.before, Ordering::Relaxed);
        Ok(Box::new(CountedReader { inner: self.file.open()?, read: Arc::clone(&self.read) }))
    }

    fn open_file(&self) -> io::Result<Option<File>> {
        // Read in place, from its end: it counts when the next one is opened.
        self.read.store(self.before, Ordering::Relaxed);
        self.file.open_file()
    }
}

struct CountedReader {
    inner: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for CountedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
