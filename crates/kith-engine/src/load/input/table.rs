//! One input file as a table: its delimiter, its header, the columns asked for, and its wrong lines.

use super::fault::excerpt;
use super::header::{self, NoColumn, Wanted, detect_delimiter};
use super::number::parse_id;
use super::record::{Next, RecordReader};
use super::source::Source;
use super::{
    ColumnKind, HeaderMode, InputError, LINE_ERRORS_SHOWN, LineError, LineErrors, LineFault, ReadError,
};
use std::path::{Path, PathBuf};

/// How to read text files.
#[derive(Clone, Debug, Default)]
pub struct TextOptions {
    /// The byte between columns; `None` takes the first of tab, comma, `;`, `|` and space that the first line has.
    pub delimiter: Option<u8>,
    /// Whether files begin with a header line.
    pub header: HeaderMode,
    /// How many wrong lines a file may have before it is refused.
    pub max_errors: u64,
}

/// How far the reading of a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadProgress {
    /// The file.
    pub path: PathBuf,
    /// Bytes read, as they are on disk.
    pub bytes_read: u64,
    /// Bytes of the file; 0 if unknown (a pipe).
    pub bytes_total: u64,
    /// Lines read.
    pub lines: u64,
}

/// What one file held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Lines of data, wrong ones included; without header, comments and blank lines.
    pub rows: u64,
    /// Lines in all.
    pub lines: u64,
    /// Bytes of the file on disk.
    pub bytes: u64,
    /// The lines that were dropped because they are wrong.
    pub errors: LineErrors,
}

/// An open input file whose columns are found.
pub(super) struct Table {
    reader: RecordReader,
    wanted: Vec<Wanted>,
    /// Where each wanted column is in a record.
    places: Vec<usize>,
    /// Columns of every record; `None` in a file without lines.
    width: Option<usize>,
    max_errors: u64,
    report: FileReport,
}

/// One line of data, as the caller of [`Table::rows`] sees it.
pub(super) struct Row<'a> {
    reader: &'a RecordReader,
    places: &'a [usize],
}

/// A fault in the wanted column of this index.
pub(super) struct ColumnFault(pub(super) usize, pub(super) LineFault);

impl Row<'_> {
    /// The wanted column of this index, as bytes.
    pub(super) fn bytes(&self, column: usize) -> &[u8] {
        self.reader.field(self.places[column])
    }

    /// The wanted column of this index, as an id.
    pub(super) fn id(&self, column: usize) -> Result<u64, ColumnFault> {
        parse_id(self.bytes(column)).map_err(|fault| ColumnFault(column, fault))
    }

    /// The wanted column of this index, as the stored form of a value of `kind`.
    pub(super) fn value(&self, column: usize, kind: ColumnKind) -> Result<u64, ColumnFault> {
        let text = std::str::from_utf8(self.bytes(column).trim_ascii()).ok();
        let value = text.and_then(|text| kind.encode(text));
        value.ok_or(ColumnFault(column, LineFault::ColumnValue(kind)))
    }
}

impl Table {
    /// Opens `path` and finds the columns `wanted`.
    pub(super) fn open(path: &Path, options: &TextOptions, wanted: Vec<Wanted>) -> Result<Self, InputError> {
        let source = Source::open(path)?;
        let report = FileReport { path: path.to_owned(), ..FileReport::default() };
        let mut table = Table {
            reader: RecordReader::new(source, options.delimiter.unwrap_or(b',')),
            wanted,
            places: Vec::new(),
            width: None,
            max_errors: options.max_errors,
            report,
        };
        table.skip_preamble()?;
        if options.delimiter.is_none() {
            table.reader.delimiter = detect_delimiter(table.reader.peek());
        }
        table.read_header(options.header)?;
        Ok(table)
    }

    /// Skips a byte order mark and the `#` lines at the top, and leaves a whole line to peek at.
    fn skip_preamble(&mut self) -> Result<(), InputError> {
        let mut is_start = true;
        loop {
            let bytes = self.reader.peek();
            if bytes.contains(&b'\n') || self.reader.at_end() {
                if is_start && bytes.starts_with(b"\xef\xbb\xbf") {
                    self.reader.skip(3);
                }
                is_start = false;
                if self.reader.peek().first() != Some(&b'#') {
                    return Ok(());
                }
                self.reader.skip_line();
            } else {
                self.reader.fill()?;
            }
        }
    }

    fn read_header(&mut self, mode: HeaderMode) -> Result<(), InputError> {
        let first = loop {
            match self.reader.next() {
                Next::More if self.reader.fill()? => {}
                Next::More => return Ok(()),
                found => break found,
            }
        };
        let fields: Vec<Vec<u8>> = match first {
            Next::Record => (0..self.reader.width()).map(|i| self.reader.field(i).to_vec()).collect(),
            // A first line that is no record is no header: it is counted with the wrong lines.
            _ => Vec::new(),
        };
        let is_header = !fields.is_empty() && header::is_header(mode, &fields, &self.wanted);
        let names: Vec<String> = if is_header {
            fields.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect()
        } else {
            self.reader.put_back();
            Vec::new()
        };
        self.width = Some(fields.len()).filter(|&width| 0 < width);
        let found = header::find_columns(&self.wanted, &names, fields.len());
        self.places = found.map_err(|NoColumn { column, role, header }| {
            let path = self.report.path.clone();
            InputError::NoColumn { path, column, role, header }
        })?;
        Ok(())
    }

    /// Whether every line is `id delimiter id`, so that [`Table::pairs`] can read it.
    fn is_plain_pairs(&self) -> bool {
        self.width == Some(2) && self.places == [0, 1]
    }

    /// Calls `each` for every line of data. `each` answers whether the line is right; its own errors end
    /// the reading. `progress` is called once per block read.
    pub(super) fn rows<E>(
        mut self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(&Row<'_>) -> Result<Result<(), ColumnFault>, E>,
    ) -> Result<FileReport, ReadError<E>> {
        while self.next_block(progress)? {
            loop {
                match self.reader.next() {
                    Next::More => break,
                    Next::Fault(fault) => self.line_fault(None, fault)?,
                    Next::Record => self.row(&mut each)?,
                }
            }
        }
        Ok(self.finish()?)
    }

    /// As [`Table::rows`] for two id columns; lines of two plain ids, nearly all of a large file, take a
    /// path of their own.
    pub(super) fn pairs<E>(
        mut self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<FileReport, ReadError<E>> {
        if !self.is_plain_pairs() {
            return self.rows(progress, |row| pair(row, &mut each));
        }
        while self.next_block(progress)? {
            loop {
                while let Some((src, dst)) = self.reader.next_plain_pair() {
                    self.report.rows += 1;
                    each(src, dst).map_err(ReadError::Caller)?;
                }
                match self.reader.next() {
                    Next::More => break,
                    Next::Fault(fault) => self.line_fault(None, fault)?,
                    Next::Record => self.row(&mut |row: &Row<'_>| pair(row, &mut each))?,
                }
            }
        }
        Ok(self.finish()?)
    }

    /// Makes more bytes available. The first call finds those that the header left.
    fn next_block(&mut self, progress: &mut dyn FnMut(&ReadProgress)) -> Result<bool, InputError> {
        let is_more = self.reader.fill()?;
        progress(&ReadProgress {
            path: self.report.path.clone(),
            bytes_read: self.reader.source.bytes_read(),
            bytes_total: self.reader.source.bytes_total,
            lines: self.reader.next_line() - 1,
        });
        Ok(is_more)
    }

    fn row<E>(
        &mut self,
        each: &mut impl FnMut(&Row<'_>) -> Result<Result<(), ColumnFault>, E>,
    ) -> Result<(), ReadError<E>> {
        let got = self.reader.width();
        let expected =
            *self.width.get_or_insert(got.max(self.places.iter().max().map_or(0, |last| last + 1)));
        if expected != got {
            return Ok(self.line_fault(None, LineFault::ColumnCount { expected, got })?);
        }
        let row = Row { reader: &self.reader, places: &self.places };
        match each(&row).map_err(ReadError::Caller)? {
            Ok(()) => self.report.rows += 1,
            Err(ColumnFault(column, fault)) => self.line_fault(Some(column), fault)?,
        }
        Ok(())
    }

    /// Counts a wrong line. Gives the file up once too many are wrong *and* the first ten are known.
    fn line_fault(&mut self, column: Option<usize>, fault: LineFault) -> Result<(), InputError> {
        self.report.rows += 1;
        let (reader, wanted) = (&self.reader, &self.wanted);
        self.report.errors.record(fault, || LineError {
            line: reader.record_line(),
            column: column.map(|column| wanted[column].label.clone()),
            fault,
            excerpt: excerpt(reader.record_bytes()),
        });
        if self.report.errors.total() > self.max_errors.max(LINE_ERRORS_SHOWN as u64 - 1) {
            return self.check_errors(false);
        }
        Ok(())
    }

    fn check_errors(&mut self, complete: bool) -> Result<(), InputError> {
        let (max_errors, errors) = (self.max_errors, &self.report.errors);
        if errors.total() <= max_errors {
            return Ok(());
        }
        let (path, errors) = (self.report.path.clone(), errors.clone());
        Err(InputError::BadLines { path, max_errors, errors, complete })
    }

    fn finish(mut self) -> Result<FileReport, InputError> {
        self.check_errors(true)?;
        self.report.lines = self.reader.next_line() - 1;
        self.report.bytes = self.reader.source.bytes_read();
        Ok(self.report)
    }
}

fn pair<E>(
    row: &Row<'_>,
    each: &mut impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<Result<(), ColumnFault>, E> {
    let ids = row.id(0).and_then(|src| Ok((src, row.id(1)?)));
    match ids {
        Ok((src, dst)) => each(src, dst).map(Ok),
        Err(fault) => Ok(Err(fault)),
    }
}
