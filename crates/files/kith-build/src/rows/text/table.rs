//! Reads records of delimited text, limits their size, and detects a quote that is not closed.
//!
//! The `csv` crate treats the end of the file as a closing quote, and a record may grow without bound. So the reader below
//! it counts the bytes of a record, and adds a line after the end of the file. A record that includes this line was inside
//! quotes when the file ended.

use super::quotes::Quotes;
use crate::rows::error::RowsError;
use crate::rows::fault::{RowFault, RowLocation};
use crate::rows::limits::ROW_BYTES_MAX;
use crate::rows::unpack::{FileErrors, UnpackedSource, unmarked};
use csv::{ByteRecord, ReaderBuilder};
use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, Read};
use std::rc::Rc;

/// The line that is added after the end.
const MARK: &[u8] = b"\n\x01\n";

/// A file of delimited text.
pub(crate) struct Table {
    reader: csv::Reader<Guarded>,
    errors: FileErrors,
    state: Rc<State>,
    record: ByteRecord,
    /// Whether lines end in two bytes, as the first one does.
    windows: bool,
    /// The lines before the table.
    skipped: u64,
    /// Whether text follows a closing quote in the record.
    has_fault: bool,
    /// Whether the first record must be returned again.
    again: bool,
}

/// The line in which a record begins, and the record.
pub(crate) type NumberedRecord<'a> = (u64, Result<&'a ByteRecord, RowFault>);

struct State {
    /// The bytes that the current record may still take.
    left: Cell<u64>,
    /// The length of the file, once its end is reached.
    end: Cell<Option<u64>>,
    /// The places of texts that follow a closing quote.
    quotes: RefCell<Quotes>,
}

struct Guarded {
    bytes: Box<dyn BufRead>,
    state: Rc<State>,
    read: u64,
    mark: &'static [u8],
}

impl Read for Guarded {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.state.left.get() == 0 {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        if self.state.end.get().is_none() {
            let count = self.bytes.read(out)?;
            self.read += count as u64;
            self.state.left.set(self.state.left.get().saturating_sub(count as u64));
            self.state.quotes.borrow_mut().look(&out[..count]);
            if 0 < count {
                return Ok(count);
            }
            self.state.end.set(Some(self.read));
        }
        self.mark.read(out)
    }
}

impl Table {
    pub(crate) fn open(unpacked: UnpackedSource, delimiter: Option<u8>) -> Self {
        let head = unmarked(&unpacked.head);
        let line = head.split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
        let named = named_delimiter(line);
        let preamble = if named.is_some() { line.len() } else { 0 };
        let delimiter = delimiter.or(named).unwrap_or_else(|| guess_delimiter(head));
        let first = unpacked.head.split_inclusive(|&byte| byte == b'\n').next();
        let windows = first.is_some_and(|line| line.ends_with(b"\r\n"));
        let (errors, mut bytes) = unpacked.into_text();
        // These bytes were read before and are in memory.
        let _ = bytes.read_exact(&mut vec![0; preamble]);
        let state = State {
            left: Cell::new(ROW_BYTES_MAX),
            end: Cell::default(),
            quotes: RefCell::new(Quotes::new(delimiter)),
        };
        let state = Rc::new(state);
        let guarded = Guarded { bytes: Box::new(bytes), state: Rc::clone(&state), read: 0, mark: MARK };
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(delimiter).buffer_capacity(256 << 10);
        let reader = builder.from_reader(guarded);
        let skipped = u64::from(0 < preamble);
        let record = ByteRecord::new();
        Table { reader, errors, state, record, windows, skipped, has_fault: false, again: false }
    }

    pub(crate) fn file(&self) -> &std::sync::Arc<str> {
        &self.errors.file
    }

    /// The next record and the line it begins in; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<NumberedRecord<'_>>, RowsError> {
        if !std::mem::take(&mut self.again) {
            self.state.left.set(ROW_BYTES_MAX);
            let line = self.reader.position().line();
            let read = self.reader.read_byte_record(&mut self.record);
            if !read.map_err(|error| self.failed(line, error))? {
                return Ok(None);
            }
            let end = self.reader.position().byte();
            self.has_fault = self.state.quotes.borrow_mut().has_fault_before(end);
        }
        let after = self.reader.position();
        let line = self.line(after);
        match self.state.end.get() {
            // The mark's first line break may end a record that the file does not end.
            Some(end) if after.byte() <= end + 1 => Ok(Some((line, self.whole()))),
            None => Ok(Some((line, self.whole()))),
            Some(_) if self.record.len() == 1 && &self.record[0] == MARK.trim_ascii() => Ok(None),
            // No line break has ended this record: it contains both line breaks of the mark.
            Some(_) => Ok(Some((line + 1, Err(RowFault::UnclosedQuote)))),
        }
    }

    /// The record, unless text follows a closing quote in it.
    fn whole(&self) -> Result<&ByteRecord, RowFault> {
        if self.has_fault { Err(RowFault::TextAfterQuote) } else { Ok(&self.record) }
    }

    /// The line in which the record that ends at `after` begins. The reader's own count is that of the end of the previous
    /// record: before blank lines, and between the two bytes of a Windows line break.
    fn line(&self, after: &csv::Position) -> u64 {
        let breaks = memchr::memchr_iter(b'\n', self.record.as_slice()).count() as u64;
        let past_break = !self.windows || self.state.end.get().is_some_and(|end| end < after.byte());
        after.line().saturating_sub(breaks + u64::from(past_break)).max(1) + self.skipped
    }

    /// Returns the last record once more.
    pub(crate) fn put_back(&mut self) {
        self.again = true;
    }

    fn failed(&self, line: u64, error: csv::Error) -> RowsError {
        match error.into_kind() {
            csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                let location = RowLocation { file: self.errors.file.clone(), row: line, unit: "line" };
                RowsError::RowTooLong { location, limit: ROW_BYTES_MAX }
            }
            csv::ErrorKind::Io(error) => self.errors.of(error),
            other => RowsError::Damaged { file: self.errors.file.clone(), detail: format!("{other:?}") },
        }
    }
}

/// The delimiter that Excel names in a first line such as `sep=;`.
pub(crate) fn named_delimiter(line: &[u8]) -> Option<u8> {
    match line.trim_ascii_end() {
        [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter] => Some(*delimiter),
        [b's' | b'S', b'e' | b'E', b'p' | b'P', b'='] if line.starts_with(b"sep=\t") => Some(b'\t'),
        _ => None,
    }
}

fn guess_delimiter(head: &[u8]) -> u8 {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let count = |wanted: u8| line.iter().filter(|&&byte| byte == wanted).count();
    match (count(b'\t'), count(b','), count(b';')) {
        (tabs @ 1.., commas, _) if commas <= tabs => b'\t',
        (0, 0, 1..) => b';',
        _ => b',',
    }
}
