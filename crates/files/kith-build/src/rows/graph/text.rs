//! Reads one file of delimited text as a table: its delimiter, its header, its lines.

use super::fault::{LineFault, excerpt};
use super::header::{self, detect_delimiter};
use super::record::{NextRecord, RecordReader};
use super::row::{ColumnFault, Row, pair};
use super::source::{Source, other_than_text};
use super::tally::Tally;
use super::{FileError, FileOptions, FileReport, ReadProgress};
use crate::rows::error::ReadError;
use crate::rows::options::HeaderMode;
use crate::rows::text::table::named_delimiter;
use crate::rows::unpack::unmarked;
use std::path::Path;

/// An open text file with its wanted columns.
pub(super) struct TextTable {
    reader: RecordReader,
    /// The place of each wanted column in a record.
    indexes: Vec<usize>,
    /// The number of columns of every record; `None` in a file without lines.
    width: Option<usize>,
    pub(super) tally: Tally,
}

impl TextTable {
    /// Opens the file and finds the wanted columns.
    pub(super) fn open(path: &Path, options: &FileOptions, tally: Tally) -> Result<Self, FileError> {
        let source = Source::open(path)?;
        let mut table = TextTable {
            reader: RecordReader::new(source, options.delimiter.unwrap_or(b','), options.line_bytes_max),
            indexes: Vec::new(),
            width: None,
            tally,
        };
        let named = table.skip_preamble()?;
        if options.delimiter.is_none() {
            table.reader.delimiter = named.unwrap_or_else(|| detect_delimiter(table.reader.peek()));
        }
        table.read_header(options.header)?;
        Ok(table)
    }

    /// Skips what precedes the first line of the table, until a whole line is buffered: a byte order mark, comments, blank
    /// lines, the size line of Matrix Market, and the line with which Excel names the delimiter, which is returned.
    fn skip_preamble(&mut self) -> Result<Option<u8>, FileError> {
        let (mut is_start, mut is_matrix, mut delimiter) = (true, false, None);
        loop {
            let bytes = self.reader.peek();
            if !bytes.contains(&b'\n') && !self.reader.at_end() {
                self.reader.fill()?;
                continue;
            }
            if is_start {
                if let Some(found) = other_than_text(bytes) {
                    return Err(FileError::NotText { path: self.tally.report.path.clone(), found });
                }
                let mark = bytes.len() - unmarked(bytes).len();
                self.reader.skip(mark);
            }
            is_start = false;
            let bytes = self.reader.peek();
            let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
            if bytes.is_empty() {
                return Ok(delimiter);
            } else if line.starts_with(b"%%MatrixMarket") {
                is_matrix = true;
            } else if let Some(named) = named_delimiter(line) {
                delimiter = Some(named);
            } else if line.trim_ascii().is_empty() || matches!(line[0], b'#' | b'%') {
            } else if is_matrix {
                is_matrix = false;
            } else {
                return Ok(delimiter);
            }
            self.reader.skip_line();
        }
    }

    fn read_header(&mut self, mode: HeaderMode) -> Result<(), FileError> {
        let first = loop {
            match self.reader.next() {
                NextRecord::More if self.reader.fill()? => {}
                NextRecord::More => return Ok(()),
                found => break found,
            }
        };
        let fields: Vec<Vec<u8>> = match first {
            NextRecord::Record => (0..self.reader.width()).map(|i| self.reader.field(i).to_vec()).collect(),
            // A first line that is not a record is not a header. It is counted with the wrong lines.
            _ => Vec::new(),
        };
        let is_header = !fields.is_empty() && header::is_header(mode, &fields, &self.tally.wanted);
        let names: Vec<String> = if is_header {
            fields.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect()
        } else {
            self.reader.put_back();
            Vec::new()
        };
        self.width = Some(fields.len()).filter(|&width| 0 < width);
        self.indexes = self.tally.find_columns(&names, fields.len())?;
        self.tally.taken(&names, &self.indexes);
        // No id begins as a comment does. Elsewhere such a line may be data.
        let first = self.indexes.iter().position(|position| *position == 0);
        self.reader.has_comments = first.is_some_and(|index| self.tally.wanted[index].is_id);
        Ok(())
    }

    /// Whether every line is `id delimiter id`, so that [`TextTable::pairs`] can read it.
    fn is_plain_pairs(&self) -> bool {
        self.width == Some(2) && self.indexes == [0, 1]
    }

    /// Reads the rows, as [`Table::rows`](super::table::Table::rows) describes.
    pub(super) fn rows<E>(
        mut self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(&Row<'_>) -> Result<Result<(), ColumnFault>, E>,
    ) -> Result<FileReport, ReadError<E, FileError>> {
        while self.next_block(progress)? {
            loop {
                match self.reader.next() {
                    NextRecord::More => break,
                    NextRecord::Fault(fault) => self.line_fault(None, fault)?,
                    NextRecord::Record => self.row(&mut each)?,
                }
            }
        }
        Ok(self.finish()?)
    }

    /// Reads rows like [`TextTable::rows`], for two id columns. Lines of two plain ids, which are nearly all lines of a
    /// large file, take a fast path.
    pub(super) fn pairs<E>(
        mut self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<FileReport, ReadError<E, FileError>> {
        if !self.is_plain_pairs() {
            return self.rows(progress, |row| pair(row, &mut each));
        }
        while self.next_block(progress)? {
            loop {
                while let Some((src, dst)) = self.reader.next_plain_pair() {
                    self.tally.good(|| self.reader.source.bytes_read())?;
                    each(src, dst).map_err(ReadError::Caller)?;
                }
                match self.reader.next() {
                    NextRecord::More => break,
                    NextRecord::Fault(fault) => self.line_fault(None, fault)?,
                    NextRecord::Record => self.row(&mut |row: &Row<'_>| pair(row, &mut each))?,
                }
            }
        }
        Ok(self.finish()?)
    }

    /// Reads more bytes. The first call returns those that are left after the header.
    fn next_block(&mut self, progress: &mut dyn FnMut(&ReadProgress)) -> Result<bool, FileError> {
        let is_more = self.reader.fill()?;
        progress(&ReadProgress {
            path: self.tally.report.path.clone(),
            bytes_read: self.reader.source.bytes_read(),
            bytes_total: self.reader.source.bytes_total,
            lines: self.reader.next_line() - 1,
        });
        Ok(is_more)
    }

    fn row<E>(
        &mut self,
        each: &mut impl FnMut(&Row<'_>) -> Result<Result<(), ColumnFault>, E>,
    ) -> Result<(), ReadError<E, FileError>> {
        let got = self.reader.width();
        let expected =
            *self.width.get_or_insert(got.max(self.indexes.iter().max().map_or(0, |last| last + 1)));
        if expected != got {
            return Ok(self.line_fault(None, LineFault::ColumnCount { expected, got })?);
        }
        let row = Row::Text { reader: &self.reader, indexes: &self.indexes };
        match each(&row).map_err(ReadError::Caller)? {
            Ok(()) => self.tally.good(|| self.reader.source.bytes_read())?,
            Err(ColumnFault(column, fault)) => self.line_fault(Some(column), fault)?,
        }
        Ok(())
    }

    fn line_fault(&mut self, column: Option<usize>, fault: LineFault) -> Result<(), FileError> {
        let reader = &self.reader;
        let line = ("line", reader.record_line());
        self.tally.fault(line, column, fault, || excerpt(reader.record_bytes()))
    }

    fn finish(self) -> Result<FileReport, FileError> {
        let (lines, bytes) = (self.reader.next_line() - 1, self.reader.source.bytes_read());
        self.tally.finish(lines, bytes)
    }
}
