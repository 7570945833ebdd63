//! Receives the rows of files, good and wrong ones.

use crate::rows::columns::{Columns, ValueColumns};
use crate::rows::error::{RowsError, ends_reading};
use crate::rows::fault::{RowError, RowErrors, RowFault, RowLocation};
use crate::rows::limits::unpacked_max;
use crate::rows::options::{RowOptions, ValueShape};
use crate::rows::value::check_size;
use kith_schema::{RecordWriter, TimeUnit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The report on all files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowReport {
    /// The number of good rows, which were handed on.
    pub rows: u64,
    /// The wrong rows, of which there are no more than allowed.
    pub errors: RowErrors,
    /// The fields of the schema that a file lacks, and JSON lines lack in every row. Their default or null is stored. Empty
    /// unless such rows are allowed.
    pub missing: Vec<String>,
    /// The message about the first number in a field of times that is unlikely to be in milliseconds.
    pub unlikely_time: Option<String>,
}

/// The message about a number that `writer` took as a time and that is unlikely to be in milliseconds.
pub(crate) fn unlikely_time(writer: &RecordWriter) -> Option<String> {
    let (field, number) = writer.unlikely_time()?;
    TimeUnit::doubt(field, number, |kind| format!("use --times {field}:{kind}"))
}

/// Why the reading of a source ended early.
pub(crate) enum Halt {
    Rows(Box<RowsError>),
    /// The function that receives the rows failed.
    Caller,
}

impl From<RowsError> for Halt {
    fn from(error: RowsError) -> Self {
        Halt::Rows(Box::new(error))
    }
}

/// Receives rows, good and wrong ones.
pub(crate) struct RowSink<'a> {
    options: &'a RowOptions,
    deliver: &'a mut dyn FnMut(&[u8], &[u8]) -> bool,
    row: Row,
    rows: u64,
    /// The bytes of the good rows so far, and the most that they may have.
    unpacked: (u64, u64),
    /// The size of all sources whose size is known.
    size: u64,
    /// The part read so far of each source whose size is not known.
    pipes: Vec<Arc<AtomicU64>>,
    /// The name of the current source.
    pub(crate) file: Arc<str>,
    errors: RowErrors,
    /// For each field of the schema, whether a file lacks it.
    missing: Vec<bool>,
    /// For each field of the schema, whether a row of JSON lines has it; `None` if there are no such rows.
    in_objects: Option<Vec<bool>>,
    /// The number of good rows before the current file.
    rows_before: u64,
    /// The number of raw vectors so far, over all files. It is the key of the next one.
    pub(crate) vectors: u64,
}

/// The current row; its buffers are reused.
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// The writer of records, for stores of records.
    pub(crate) writer: Option<RecordWriter>,
}

impl<'a> RowSink<'a> {
    /// `size` is that of all sources whose size is known.
    pub(crate) fn new(
        options: &'a RowOptions,
        size: u64,
        deliver: &'a mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Self {
        let writer = match &options.value {
            ValueShape::Record(schema) => Some(options.writer(schema)),
            ValueShape::Text | ValueShape::Bytes | ValueShape::Json => None,
        };
        let missing = writer.as_ref().map_or_else(Vec::new, |it| vec![false; it.schema().fields().len()]);
        let row = Row { key: Vec::new(), value: Vec::new(), writer };
        let (errors, rows, rows_before, in_objects, vectors) = Default::default();
        let (unpacked, file) = ((0, unpacked_max(options.unpacked_max, size)), Arc::from(""));
        RowSink {
            options,
            deliver,
            row,
            rows,
            unpacked,
            size,
            pipes: Vec::new(),
            file,
            errors,
            missing,
            in_objects,
            rows_before,
            vectors,
        }
    }

    /// Begins a file with these columns.
    ///
    /// # Errors
    /// [`RowsError::MissingFields`] if it lacks fields of the schema and that is not allowed.
    pub(crate) fn columns(&mut self, file: &Arc<str>, columns: &Columns) -> Result<(), RowsError> {
        match &columns.value {
            ValueColumns::Fields(fields) => self.fields(file, |field| fields.contains(&Some(field))),
            ValueColumns::One(_) => Ok(()),
        }
    }

    /// Begins a file that has these fields in each row.
    ///
    /// # Errors
    /// Those of [`RowSink::columns`].
    pub(crate) fn fields(
        &mut self,
        file: &Arc<str>,
        is_given: impl Fn(usize) -> bool,
    ) -> Result<(), RowsError> {
        let lacked: Vec<bool> =
            (0..self.missing.len()).map(|field| !is_given(field) && !self.is_constant(field)).collect();
        if !self.options.fill_missing && lacked.contains(&true) {
            return Err(RowsError::MissingFields { file: Arc::clone(file), fields: self.names(&lacked) });
        }
        self.missing.iter_mut().zip(lacked).for_each(|(missing, lacked)| *missing |= lacked);
        Ok(())
    }

    /// The writer of records, for stores of records.
    pub(crate) fn writer(&mut self) -> &mut Option<RecordWriter> {
        &mut self.row.writer
    }

    /// Whether all rows of the current file have the same value in this field.
    fn is_constant(&self, field: usize) -> bool {
        self.row.writer.as_ref().is_some_and(|writer| writer.is_constant(field))
    }

    /// Begins a file of JSON lines, whose rows may have different fields.
    pub(crate) fn begin_objects(&mut self) {
        self.rows_before = self.rows;
        if let Some(writer) = &mut self.row.writer {
            writer.forget();
        }
    }

    /// Ends a file of JSON lines.
    pub(crate) fn end_objects(&mut self) {
        let Some(writer) = &self.row.writer else { return };
        if self.rows_before < self.rows {
            let seen = self.in_objects.get_or_insert_with(|| vec![false; self.missing.len()]);
            seen.iter_mut().enumerate().for_each(|(field, seen)| *seen |= writer.was_set(field));
        }
    }

    /// The names of the marked fields of the schema.
    fn names(&self, marked: &[bool]) -> Vec<String> {
        let fields = self.row.writer.iter().flat_map(|writer| writer.schema().fields());
        fields.zip(marked).filter(|(_, marked)| **marked).map(|(field, _)| field.name().to_owned()).collect()
    }

    /// Takes the next row, which `fill` assembles.
    #[inline]
    pub(crate) fn row(
        &mut self,
        location: impl FnOnce() -> RowLocation,
        fill: impl FnOnce(&mut Row) -> Result<(), RowFault>,
    ) -> Result<(), Halt> {
        self.row.key.clear();
        self.row.value.clear();
        if let Err(fault) = fill(&mut self.row).and_then(|()| check_size(&self.row.value)) {
            return self.refuse(location(), fault);
        }
        // Once the rows are refused as a whole, the rest is read only to show more faults.
        if self.errors.too_many(self.options.errors_max) {
            return Ok(());
        }
        self.rows += 1;
        self.unpacked.0 += (self.row.key.len() + self.row.value.len()) as u64;
        if self.unpacked.1 < self.unpacked.0 {
            self.expand()?;
        }
        if (self.deliver)(&self.row.key, &self.row.value) { Ok(()) } else { Err(Halt::Caller) }
    }

    /// Allows more bytes if more was read from pipes since the last time.
    ///
    /// # Errors
    /// [`RowsError::Expands`] if the rows take more than that.
    #[cold]
    fn expand(&mut self) -> Result<(), RowsError> {
        let read = self.pipes.iter().map(|pipe| pipe.load(Ordering::Relaxed)).sum();
        let max = unpacked_max(self.options.unpacked_max, self.size.saturating_add(read));
        self.unpacked.1 = max;
        if max < self.unpacked.0 {
            return Err(RowsError::Expands { file: Arc::clone(&self.file), max });
        }
        Ok(())
    }

    /// Begins a source of unknown size. `read` is what was read of it so far.
    pub(crate) fn begin_pipe(&mut self, read: Arc<AtomicU64>) {
        self.pipes.push(read);
    }

    fn refuse(&mut self, location: RowLocation, fault: RowFault) -> Result<(), Halt> {
        self.errors.record(fault.reason(), || RowError { location, fault });
        if ends_reading(self.errors.total(), self.options.errors_max) { Err(self.bad_rows()) } else { Ok(()) }
    }

    fn bad_rows(&mut self) -> Halt {
        RowsError::BadRows { max: self.options.errors_max, errors: std::mem::take(&mut self.errors) }.into()
    }

    /// Returns the report after every source was read to its end.
    pub(crate) fn finish(&mut self) -> Result<RowReport, Halt> {
        if self.errors.too_many(self.options.errors_max) {
            return Err(self.bad_rows());
        }
        let errors = std::mem::take(&mut self.errors);
        if self.rows == 0 && 0 < errors.total() {
            return Err(RowsError::NoGoodRows { errors }.into());
        }
        if let Some(seen) = self.in_objects.take() {
            self.fields(&Arc::from("every row"), |field| seen[field])?;
        }
        let (missing, unlikely_time) =
            (self.names(&self.missing), self.row.writer.as_ref().and_then(unlikely_time));
        Ok(RowReport { rows: self.rows, errors, missing, unlikely_time })
    }
}
