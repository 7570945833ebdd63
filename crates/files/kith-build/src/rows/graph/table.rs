//! Reads one file as a table: the wanted columns and its rows.

use super::header::WantedColumn;
use super::row::{ColumnFault, Row, pair};
use super::rows::{self, RowTable};
use super::tally::Tally;
use super::text::TextTable;
use super::{FileError, FileOptions, FileReport, ReadProgress};
use crate::rows::error::ReadError;
use std::path::Path;

/// An open file with its wanted columns.
pub(super) enum Table {
    /// Lines of delimited text.
    Text(TextTable),
    /// JSON lines, or rows of a Parquet or Arrow file.
    Rows(RowTable),
}

impl Table {
    /// Opens `path` and finds the `wanted` columns.
    pub(super) fn open(
        path: &Path,
        options: &FileOptions,
        wanted: Vec<WantedColumn>,
    ) -> Result<Self, FileError> {
        Table::open_beside(path, options, wanted, Vec::new())
    }

    /// Opens `path` and finds the `wanted` columns. The file must not have the columns `elsewhere`, which folders give.
    pub(super) fn open_beside(
        path: &Path,
        options: &FileOptions,
        wanted: Vec<WantedColumn>,
        elsewhere: Vec<String>,
    ) -> Result<Self, FileError> {
        let mut tally = Tally::new(path, options, wanted);
        tally.elsewhere = elsewhere;
        Ok(match rows::open(path, options.memory_bytes)? {
            Some(file) => Table::Rows(RowTable::new(file, tally)?),
            None => Table::Text(TextTable::open(path, options, tally)?),
        })
    }

    /// How a user names the wanted column with this index: by its name in the file, or by its place there.
    pub(super) fn name_of(&self, column: usize) -> String {
        let tally = match self {
            Table::Text(table) => &table.tally,
            Table::Rows(table) => &table.tally,
        };
        let name = tally.report.taken.get(column).map(|(_, name)| name.as_str()).unwrap_or_default();
        name.strip_prefix("column ").unwrap_or(name).to_owned()
    }

    /// Calls `each` for every line of data. `each` returns a fault if the line is wrong; its own errors end the reading.
    /// `progress` is called once per block.
    pub(super) fn rows<E>(
        self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(&Row<'_>) -> Result<Result<(), ColumnFault>, E>,
    ) -> Result<FileReport, ReadError<E, FileError>> {
        match self {
            Table::Text(table) => table.rows(progress, each),
            Table::Rows(table) => table.rows(progress, &mut each),
        }
    }

    /// Reads rows like [`Table::rows`], for two id columns.
    pub(super) fn pairs<E>(
        self,
        progress: &mut dyn FnMut(&ReadProgress),
        mut each: impl FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<FileReport, ReadError<E, FileError>> {
        match self {
            Table::Text(table) => table.pairs(progress, each),
            Table::Rows(table) => table.rows(progress, &mut |row| pair(row, &mut each)),
        }
    }
}
