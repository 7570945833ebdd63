//! Files whose rows are not delimited text: Parquet, Arrow, JSON lines. This crate knows none of these formats: the
//! caller brings a reader for them. Columns, faults and reports are the same as for text.

use super::columns::store_text;
use super::fault::excerpt;
use super::table::{ColumnFault, Row, Tally};
use super::{FileReport, InputError, LineFault, ReadError, ReadProgress};
use kith_schema::ColumnKind;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::path::Path;

/// Why a file cannot be read further; its message names the file.
pub type TypedError = Box<dyn Error + Send + Sync>;

/// Opens a file if it is one of rows. `None`: it is not, and is read as text.
pub type OpenTyped = fn(&Path, TypedOptions) -> Result<Option<Box<dyn TypedFile>>, TypedError>;

/// What rows are handed to: the number of each, from 1, and its fields, or why it has none. It answers whether to go on.
pub type EachRow<'f> = dyn FnMut(u64, Result<&[Field<'_>], LineFault>) -> bool + 'f;

/// How files of rows are read.
#[derive(Clone, Copy, Debug)]
pub struct TypedOptions {
    /// Bytes that what is decoded of a file may take at a time.
    pub memory_bytes: usize,
}

/// A file of rows.
pub trait TypedFile {
    /// The names of its columns, in order.
    fn columns(&self) -> &[String];

    /// `line` or `row`: what its rows are called in messages.
    fn unit(&self) -> &'static str;

    /// Its bytes on disk.
    fn bytes(&self) -> u64;

    /// Calls `each` with the fields of every row in `columns`, which are places in [`TypedFile::columns`], until it answers
    /// `false`.
    ///
    /// # Errors
    /// If the file cannot be read to its end.
    fn rows(self: Box<Self>, columns: &[usize], each: &mut EachRow<'_>) -> Result<(), TypedError>;
}

/// A field of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    /// No value.
    Null,
    /// A whole number from 0, or a time in milliseconds since 1970.
    Unsigned(u64),
    /// Everything else, as it would be written as text.
    Text(Cow<'a, str>),
}

impl Field<'_> {
    /// As text.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Field::Null => Cow::Borrowed(""),
            Field::Unsigned(number) => Cow::Owned(number.to_string()),
            Field::Text(text) => Cow::Borrowed(text),
        }
    }

    /// The stored form of its value as one of `kind`, or `None` if it is none.
    pub(super) fn encode(&self, kind: ColumnKind) -> Option<u64> {
        match (self, kind) {
            (Field::Unsigned(number), ColumnKind::Time | ColumnKind::U64) => Some(*number),
            _ => store_text(kind, self.text().trim_ascii()),
        }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// How often progress is told, in rows.
const ROWS_PER_REPORT: u64 = 1 << 16;

/// An open file of rows whose columns are found.
pub(super) struct RowTable {
    file: Box<dyn TypedFile>,
    /// Where each wanted column is.
    places: Vec<usize>,
    tally: Tally,
}

impl RowTable {
    /// Finds the columns that are wanted.
    pub(super) fn new(file: Box<dyn TypedFile>, tally: Tally) -> Result<Self, InputError> {
        let names = file.columns();
        let places = tally.find_columns(names, names.len())?;
        Ok(RowTable { file, places, tally })
    }

    /// As [`Table::rows`](super::table::Table::rows).
    pub(super) fn rows<E>(
        self,
        progress: &mut dyn FnMut(&ReadProgress),
        each: &mut impl FnMut(&Row<'_>) -> Result<Result<(), ColumnFault>, E>,
    ) -> Result<FileReport, ReadError<E>> {
        let RowTable { file, places, mut tally } = self;
        let (unit, bytes) = (file.unit(), file.bytes());
        let (mut halted, mut last) = (None, 0);
        let read = file.rows(&places, &mut |number, fields| {
            last = number;
            if number % ROWS_PER_REPORT == 1 {
                let path = tally.report.path.clone();
                // How many bytes were read does not say how far it is: columns lie one behind the other.
                progress(&ReadProgress { path, bytes_read: 0, bytes_total: 0, lines: number - 1 });
            }
            let place = (unit, number);
            let counted = match fields.map(|fields| (fields, each(&Row::Fields(fields)))) {
                Ok((_, Ok(Ok(())))) => {
                    tally.report.rows += 1;
                    Ok(())
                }
                Ok((fields, Ok(Err(ColumnFault(column, fault))))) => {
                    tally.fault(place, Some(column), fault, || excerpt_of(fields)).map_err(ReadError::Input)
                }
                Ok((_, Err(error))) => Err(ReadError::Caller(error)),
                Err(fault) => tally.fault(place, None, fault, String::new).map_err(ReadError::Input),
            };
            halted = counted.err();
            halted.is_none()
        });
        if let Some(error) = halted {
            return Err(error);
        }
        read.map_err(InputError::Typed)?;
        Ok(tally.finish(last, bytes)?)
    }
}

/// The beginning of a row, as its line would be in a text file.
pub(super) fn excerpt_of(fields: &[Field<'_>]) -> String {
    let texts: Vec<String> = fields.iter().map(Field::to_string).collect();
    excerpt(texts.join(",").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_values_as_their_texts_are() {
        let text = |text: &'static str| Field::Text(text.into());
        for kind in [ColumnKind::Time, ColumnKind::U64, ColumnKind::I64, ColumnKind::F64] {
            assert_eq!(Field::Unsigned(7).encode(kind), store_text(kind, "7"), "{kind:?}");
            assert_eq!(text("-7").encode(kind), store_text(kind, "-7"), "{kind:?}");
            assert_eq!(Field::Null.encode(kind), None, "{kind:?}");
        }
        assert_eq!(text("1970-01-01T00:00:01Z").encode(ColumnKind::Time), Some(1_000));
        assert_eq!(excerpt_of(&[Field::Unsigned(7), Field::Null, text("a\n")]), "7,,a\\n");
    }
}
