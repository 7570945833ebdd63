//! One input file as a table: the columns asked for, its rows, and its wrong lines.

use super::columns::store_text;
use super::header::{self, NoColumn, Wanted};
use super::number::parse_id;
use super::record::RecordReader;
use super::text::TextTable;
use super::typed::{Field, OpenTyped, RowTable, TypedOptions};
use super::{HeaderMode, InputError, LINE_ERRORS_SHOWN, LineError, LineErrors, LineFault, ReadError};
use kith_schema::ColumnKind;
use std::borrow::Cow;
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
    /// What opens files that are not text; `None`: all are.
    pub typed: Option<(OpenTyped, TypedOptions)>,
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
pub(super) enum Table {
    /// Lines of delimited text.
    Text(TextTable),
    /// Rows that the caller's reader makes out.
    Rows(RowTable),
}

/// One line of data, as the caller of [`Table::rows`] sees it: the wanted columns.
pub(super) enum Row<'a> {
    Text { reader: &'a RecordReader, places: &'a [usize] },
    Fields(&'a [Field<'a>]),
}

/// A fault in the wanted column of this index.
pub(super) struct ColumnFault(pub(super) usize, pub(super) LineFault);

impl Row<'_> {
    /// The wanted column of this index, as text; `None` if it is not UTF-8.
    pub(super) fn text(&self, column: usize) -> Option<Cow<'_, str>> {
        match self {
            Row::Text { reader, places } => {
                let bytes = reader.field(places[column]).trim_ascii();
                std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
            }
            Row::Fields(fields) => Some(fields[column].text()),
        }
    }

    /// The wanted column of this index, as an id.
    pub(super) fn id(&self, column: usize) -> Result<u64, ColumnFault> {
        let id = match self {
            Row::Text { reader, places } => parse_id(reader.field(places[column])),
            Row::Fields(fields) => match &fields[column] {
                Field::Unsigned(id) => Ok(*id),
                field => parse_id(field.text().as_bytes()),
            },
        };
        id.map_err(|fault| ColumnFault(column, fault))
    }

    /// The wanted column of this index, as the stored form of a value of `kind`.
    pub(super) fn value(&self, column: usize, kind: ColumnKind) -> Result<u64, ColumnFault> {
        let value = match self {
            Row::Text { .. } => self.text(column).and_then(|text| store_text(kind, &text)),
            Row::Fields(fields) => fields[column].encode(kind),
        };
        value.ok_or(ColumnFault(column, LineFault::ColumnValue(kind)))
    }
}

impl Table {
    /// Opens `path` and finds the columns `wanted`.
    pub(super) fn open(path: &Path, options: &TextOptions, wanted: Vec<Wanted>) -> Result<Self, InputError> {
        let tally = Tally::new(path, options.max_errors, wanted);
        let typed = options.typed.map(|(open, options)| open(path, options));
        Ok(match typed.transpose().map_err(InputError::Typed)?.flatten() {
            Some(file) => Table::Rows(RowTable::new(file, tally)?),
            None => Table::Text(TextTable::open(path, options, tally)?),
        })
    }

    /// Calls `each` for every line of data. `each` answers whether the line is right; its own errors end
    /// the reading. `progress` is called once per block read.
    pub(super) fn rows<E>(
        self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(&Row<'_>) -> Result<Result<(), ColumnFault>, E>,
    ) -> Result<FileReport, ReadError<E>> {
        match self {
            Table::Text(table) => table.rows(progress, each),
            Table::Rows(table) => table.rows(progress, &mut each),
        }
    }

    /// As [`Table::rows`] for two id columns.
    pub(super) fn pairs<E>(
        self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<FileReport, ReadError<E>> {
        match self {
            Table::Text(table) => table.pairs(progress, each),
            Table::Rows(table) => table.rows(progress, &mut |row| pair(row, &mut each)),
        }
    }
}

/// What a file has held so far.
pub(super) struct Tally {
    pub(super) wanted: Vec<Wanted>,
    max_errors: u64,
    pub(super) report: FileReport,
}

impl Tally {
    fn new(path: &Path, max_errors: u64, wanted: Vec<Wanted>) -> Self {
        let report = FileReport { path: path.to_owned(), ..FileReport::default() };
        Tally { wanted, max_errors, report }
    }

    /// Where each wanted column is, in a file with these column names and `width` columns.
    pub(super) fn find_columns(&self, names: &[String], width: usize) -> Result<Vec<usize>, InputError> {
        let found = header::find_columns(&self.wanted, names, width);
        found.map_err(|NoColumn { column, role, header }| {
            let path = self.report.path.clone();
            InputError::NoColumn { path, column, role, header }
        })
    }

    /// Counts a wrong line, of this number. Gives the file up once too many are wrong *and* the first ten are known.
    pub(super) fn fault(
        &mut self,
        (unit, line): (&'static str, u64),
        column: Option<usize>,
        fault: LineFault,
        excerpt: impl FnOnce() -> String,
    ) -> Result<(), InputError> {
        self.report.rows += 1;
        let wanted = &self.wanted;
        self.report.errors.record(fault, || LineError {
            line,
            unit,
            column: column.map(|column| wanted[column].label.clone()),
            fault,
            excerpt: excerpt(),
        });
        if self.report.errors.total() > self.max_errors.max(LINE_ERRORS_SHOWN as u64 - 1) {
            return self.check_errors(false);
        }
        Ok(())
    }

    fn check_errors(&self, complete: bool) -> Result<(), InputError> {
        let (max_errors, errors) = (self.max_errors, &self.report.errors);
        if errors.total() <= max_errors {
            return Ok(());
        }
        let (path, errors) = (self.report.path.clone(), errors.clone());
        Err(InputError::BadLines { path, max_errors, errors, complete })
    }

    /// What the whole file held.
    pub(super) fn finish(mut self, lines: u64, bytes: u64) -> Result<FileReport, InputError> {
        self.check_errors(true)?;
        (self.report.lines, self.report.bytes) = (lines, bytes);
        Ok(self.report)
    }
}

/// Hands on the first two wanted columns, which are ids.
pub(super) fn pair<E>(
    row: &Row<'_>,
    each: &mut impl FnMut(u64, u64) -> Result<(), E>,
) -> Result<Result<(), ColumnFault>, E> {
    let ids = row.id(0).and_then(|src| Ok((src, row.id(1)?)));
    match ids {
        Ok((src, dst)) => each(src, dst).map(Ok),
        Err(fault) => Ok(Err(fault)),
    }
}
