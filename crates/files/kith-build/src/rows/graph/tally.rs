//! Counts the lines of a file, and refuses it if too many are wrong.

use super::fault::{LineError, LineFault};
use super::header::{self, HeaderFault, WantedColumn};
use super::{ColumnRef, FileError, FileOptions, FileReport};
use crate::rows::error::RowsError;
use crate::rows::limits::unpacked_max;
use crate::rows::wrong::ROW_ERRORS_SHOWN;
use std::fs::Metadata;
use std::path::Path;

/// The wanted columns of a file, and its counts so far.
pub(super) struct Tally {
    pub(super) wanted: Vec<WantedColumn>,
    /// Columns that folders give, so that the file must not have them.
    pub(super) elsewhere: Vec<String>,
    max_errors: u64,
    /// The most bytes that the rows may take, if the user says that.
    unpacked_option: Option<u64>,
    /// The most bytes of the rows, and how many rows those are.
    unpacked_max: u64,
    rows_max: u64,
    pub(super) report: FileReport,
}

/// The bytes of a number of a row.
const NUMBER_BYTES: u64 = 8;

/// How many rows of the wanted columns take this many bytes.
fn rows_of(bytes: u64, wanted: &[WantedColumn]) -> u64 {
    bytes / (NUMBER_BYTES * wanted.len().max(1) as u64)
}

impl Tally {
    pub(super) fn new(path: &Path, options: &FileOptions, wanted: Vec<WantedColumn>) -> Self {
        let report = FileReport { path: path.to_owned(), ..FileReport::default() };
        // Of a pipe, no size is known until it is read.
        let size = path.metadata().ok().filter(Metadata::is_file).map_or(0, |file| file.len());
        let unpacked_max = unpacked_max(options.unpacked_max, size);
        let rows_max = rows_of(unpacked_max, &wanted);
        Tally {
            unpacked_option: options.unpacked_max,
            wanted,
            elsewhere: Vec::new(),
            max_errors: options.max_errors,
            unpacked_max,
            rows_max,
            report,
        }
    }

    /// Counts a good row. Fails if the rows take too much. `read` is how many bytes of the file were read, before they were
    /// decompressed.
    #[inline]
    pub(super) fn good(&mut self, read: impl FnOnce() -> u64) -> Result<(), FileError> {
        self.report.rows += 1;
        if self.report.rows <= self.rows_max { Ok(()) } else { self.expand(read()) }
    }

    /// Allows more rows if more of a pipe was read since the last time.
    #[cold]
    fn expand(&mut self, read: u64) -> Result<(), FileError> {
        self.unpacked_max = self.unpacked_max.max(unpacked_max(self.unpacked_option, read));
        self.rows_max = rows_of(self.unpacked_max, &self.wanted);
        if self.report.rows <= self.rows_max {
            return Ok(());
        }
        let file = self.report.path.display().to_string().into();
        Err(FileError::Rows(RowsError::Expands { file, max: self.unpacked_max }))
    }

    /// The index of each wanted column, in a file with these column names and `width` columns.
    pub(super) fn find_columns(&self, names: &[String], width: usize) -> Result<Vec<usize>, FileError> {
        let found = header::find_columns(&self.wanted, names, width);
        let path = self.report.path.clone();
        if let Some(column) = self.elsewhere.iter().find(|column| names.contains(column)) {
            return Err(FileError::RepeatedColumn { path, column: column.clone() });
        }
        found.map_err(|fault| match fault {
            HeaderFault::Missing { column, role, header } => {
                FileError::NoColumn { path, column, role, header }
            }
            HeaderFault::Repeated { column } => FileError::RepeatedColumn { path, column },
            HeaderFault::Unknown { roles, header } => FileError::UnknownHeader { path, roles, header },
        })
    }

    /// Notes which columns of the file are taken, for the report.
    pub(super) fn taken(&mut self, names: &[String], indexes: &[usize]) {
        let name =
            |index: &usize| names.get(*index).cloned().unwrap_or_else(|| format!("column {}", index + 1));
        let labels = self.wanted.iter().map(|column| column.label.clone());
        self.report.taken = labels.zip(indexes.iter().map(name)).collect();
    }

    /// The index of each wanted column, in a file whose columns all have names.
    pub(super) fn find_named(&self, names: &[String]) -> Result<Vec<usize>, FileError> {
        let indexes = self.find_columns(names, names.len())?;
        let Some(missing) = indexes.iter().position(|index| names.len() <= *index) else {
            return Ok(indexes);
        };
        let (path, column) = (self.report.path.clone(), ColumnRef::Position(indexes[missing]));
        Err(FileError::NoColumn {
            path,
            column,
            role: self.wanted[missing].label.clone(),
            header: names.to_vec(),
        })
    }

    /// Counts a wrong line with this number. Fails once too many are wrong *and* the first ten are known.
    pub(super) fn fault(
        &mut self,
        (unit, line): (&'static str, u64),
        column: Option<usize>,
        fault: LineFault,
        excerpt: impl FnOnce() -> String,
    ) -> Result<(), FileError> {
        self.report.rows += 1;
        let wanted = &self.wanted;
        self.report.errors.record(fault.reason(), || LineError {
            line,
            unit,
            column: column.map(|column| wanted[column].label.clone()),
            fault,
            excerpt: excerpt(),
        });
        if self.report.errors.total() > self.max_errors.max(ROW_ERRORS_SHOWN as u64 - 1) {
            return self.check_errors(false);
        }
        Ok(())
    }

    fn check_errors(&self, complete: bool) -> Result<(), FileError> {
        let (max_errors, errors) = (self.max_errors, &self.report.errors);
        if !errors.too_many(max_errors) {
            return Ok(());
        }
        let (path, errors) = (self.report.path.clone(), errors.clone());
        Err(FileError::BadLines { path, max_errors, errors, complete })
    }

    /// Returns the report on the whole file.
    pub(super) fn finish(mut self, lines: u64, bytes: u64) -> Result<FileReport, FileError> {
        self.check_errors(true)?;
        (self.report.lines, self.report.bytes) = (lines, bytes);
        Ok(self.report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_pipe_are_bounded_by_what_is_read_of_it() {
        let two = || vec![WantedColumn::id("src", None, 0), WantedColumn::id("dst", None, 1)];
        let tally = |unpacked_max| {
            let options = FileOptions { unpacked_max, ..FileOptions::default() };
            Tally::new(Path::new("/dev/null"), &options, two())
        };
        let mut pipe = tally(None);
        pipe.report.rows = crate::rows::UNPACKED_MIN / 16;
        assert!(pipe.good(|| 1 << 10).is_err(), "1 KiB does not expand to 1 GiB");
        assert!(pipe.good(|| 2 << 20).is_ok());
        pipe.report.rows = (2 << 20) * crate::rows::UNPACKED_FACTOR / 16;
        assert!(pipe.good(|| 2 << 20).is_err());
        let mut counted = tally(Some(32));
        assert!(counted.good(|| u64::MAX).and_then(|()| counted.good(|| u64::MAX)).is_ok());
        assert!(counted.good(|| u64::MAX).is_err());
    }
}
