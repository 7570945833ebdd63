//! Receives the rows of files, good and wrong ones.

use crate::error::{RowsError, ends_reading};
use crate::fault::{RowError, RowErrors, RowFault, RowLocation};
use crate::options::{RowOptions, ValueShape};
use crate::value::check_size;
use kith_schema::RecordWriter;

/// The report on all files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowReport {
    /// The number of good rows, which were handed on.
    pub rows: u64,
    /// The wrong rows, of which there are no more than allowed.
    pub errors: RowErrors,
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
    errors: RowErrors,
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
    pub(crate) fn new(options: &'a RowOptions, deliver: &'a mut dyn FnMut(&[u8], &[u8]) -> bool) -> Self {
        let writer = match &options.value {
            ValueShape::Record(schema) => Some(RecordWriter::new(schema)),
            ValueShape::Text | ValueShape::Bytes | ValueShape::Json => None,
        };
        let row = Row { key: Vec::new(), value: Vec::new(), writer };
        RowSink { options, deliver, row, rows: 0, errors: RowErrors::default(), vectors: 0 }
    }

    /// Takes the next row, which `fill` assembles.
    #[inline]
    pub(crate) fn row(
        &mut self,
        place: impl FnOnce() -> RowLocation,
        fill: impl FnOnce(&mut Row) -> Result<(), RowFault>,
    ) -> Result<(), Halt> {
        self.row.key.clear();
        self.row.value.clear();
        if let Err(fault) = fill(&mut self.row).and_then(|()| check_size(&self.row.value)) {
            return self.refuse(place(), fault);
        }
        // Once the rows are refused as a whole, the rest is read only to show more faults.
        if self.errors.too_many(self.options.errors_max) {
            return Ok(());
        }
        self.rows += 1;
        if (self.deliver)(&self.row.key, &self.row.value) { Ok(()) } else { Err(Halt::Caller) }
    }

    fn refuse(&mut self, place: RowLocation, fault: RowFault) -> Result<(), Halt> {
        self.errors.record(fault.reason(), || RowError { place, fault });
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
        Ok(RowReport { rows: self.rows, errors })
    }
}
