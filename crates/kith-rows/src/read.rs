//! All sources, one after the other, to one function.

use crate::columnar;
use crate::error::{ReadError, RowsError, ends_reading};
use crate::fault::{RowErrors, RowFault, RowLocation};
use crate::options::{Format, FormatChoice, RowOptions, ValueShape};
use crate::source::RowSource;
use crate::text::{csv, json};
use crate::unpack::Unpacked;
use crate::value::check_size;
use crate::vectors;
use kith_schema::RecordWriter;

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowReport {
    /// Good rows, which the function was given.
    pub rows: u64,
    /// Wrong rows, no more than allowed.
    pub errors: RowErrors,
}

/// Calls `each(key bytes, value bytes)` for every good row of `sources`, in order. An error of `each` ends the
/// reading. Memory: one row (Parquet and Arrow: one batch), whatever the size of the files.
///
/// # Errors
/// [`ReadError::Rows`]: a file that cannot be read to its end, more wrong rows than allowed, or wrong rows only; `each` may have been
/// called before that is known. [`ReadError::Caller`]: what `each` returned.
pub fn read_rows<E>(
    sources: &[impl AsRef<dyn RowSource>],
    options: &RowOptions,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
) -> Result<RowReport, ReadError<E>> {
    let mut caller = None;
    let mut deliver = |key: &[u8], value: &[u8]| match each(key, value) {
        Ok(()) => true,
        Err(error) => {
            caller = Some(error);
            false
        }
    };
    let mut sink = RowSink::new(options, &mut deliver);
    let read = sources.iter().try_for_each(|source| read_source(source.as_ref(), options, &mut sink));
    let halted = match read {
        Ok(()) if sink.errors.too_many(options) => Err(sink.bad_rows()),
        Ok(()) if sink.rows == 0 && 0 < sink.errors.total() => {
            Err(RowsError::NoGoodRows { errors: std::mem::take(&mut sink.errors) }.into())
        }
        Ok(()) => Ok(RowReport { rows: sink.rows, errors: std::mem::take(&mut sink.errors) }),
        Err(halt) => Err(halt),
    };
    match (halted, caller) {
        (Ok(report), _) => Ok(report),
        (Err(Halt::Rows(error)), _) => Err(ReadError::Rows(*error)),
        (Err(Halt::Caller), Some(error)) => Err(ReadError::Caller(error)),
        (Err(Halt::Caller), None) => unreachable!("the caller's error was kept when it halted the reading"),
    }
}

fn read_source(source: &dyn RowSource, options: &RowOptions, sink: &mut RowSink<'_>) -> Result<(), Halt> {
    let unpacked = Unpacked::open(source)?;
    match format_of(&unpacked, options)? {
        Format::Csv => csv::read(unpacked, options, sink),
        Format::Json => json::read(unpacked, options, sink),
        Format::Parquet | Format::Arrow => columnar::read(unpacked, source, options, sink),
        Format::F32le => vectors::read(unpacked, options, sink),
    }
}

/// The format of an opened source; what was told must not contradict its first bytes.
pub(crate) fn format_of(unpacked: &Unpacked, options: &RowOptions) -> Result<Format, RowsError> {
    let told = match options.format {
        FormatChoice::Detect => return unpacked.format(),
        FormatChoice::Told(Format::F32le) => return Ok(Format::F32le),
        FormatChoice::Told(told) => told,
    };
    let found = unpacked.format()?;
    let is_text = |format| matches!(format, Format::Csv | Format::Json);
    // The first bytes cannot tell text of one kind from text of the other for certain; empty files are any text.
    if told == found || (is_text(told) && is_text(found)) || unpacked.head.is_empty() {
        return Ok(if unpacked.head.is_empty() { found } else { told });
    }
    Err(RowsError::OtherFormat { file: unpacked.file.clone(), told, found })
}

/// Why the reading of a source ended early.
pub(crate) enum Halt {
    Rows(Box<RowsError>),
    /// The function that is given the rows has an error of its own.
    Caller,
}

impl From<RowsError> for Halt {
    fn from(error: RowsError) -> Self {
        Halt::Rows(Box::new(error))
    }
}

/// Where rows go, good and wrong ones.
pub(crate) struct RowSink<'a> {
    options: &'a RowOptions,
    deliver: &'a mut dyn FnMut(&[u8], &[u8]) -> bool,
    row: Row,
    rows: u64,
    errors: RowErrors,
    /// Rows of raw vectors so far, over all files: the next one's key.
    pub(crate) vectors: u64,
}

/// The row being put together; its buffers are used again.
pub(crate) struct Row {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// Of stores of records.
    pub(crate) writer: Option<RecordWriter>,
}

impl<'a> RowSink<'a> {
    fn new(options: &'a RowOptions, deliver: &'a mut dyn FnMut(&[u8], &[u8]) -> bool) -> Self {
        let writer = match &options.value {
            ValueShape::Record(schema) => Some(RecordWriter::new(schema)),
            ValueShape::Text | ValueShape::Bytes | ValueShape::Json => None,
        };
        let row = Row { key: Vec::new(), value: Vec::new(), writer };
        RowSink { options, deliver, row, rows: 0, errors: RowErrors::default(), vectors: 0 }
    }

    /// Takes the next row, which `fill` puts together.
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
        // Once the rows are refused as a whole, the rest is read only to show more of what is wrong.
        if self.errors.too_many(self.options) {
            return Ok(());
        }
        self.rows += 1;
        if (self.deliver)(&self.row.key, &self.row.value) { Ok(()) } else { Err(Halt::Caller) }
    }

    fn refuse(&mut self, place: RowLocation, fault: RowFault) -> Result<(), Halt> {
        self.errors.record(place, fault);
        if ends_reading(self.errors.total(), self.options.errors_max) { Err(self.bad_rows()) } else { Ok(()) }
    }

    fn bad_rows(&mut self) -> Halt {
        RowsError::BadRows { max: self.options.errors_max, errors: std::mem::take(&mut self.errors) }.into()
    }
}
