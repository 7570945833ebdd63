//! Reads files whose rows are not delimited text: JSON lines, Parquet, Arrow. Columns, faults and reports are the same as
//! for text.

use super::fault::{LineFault, excerpt};
use super::row::{ColumnFault, Row};
use super::tally::Tally;
use super::{FileError, FileReport, ReadProgress};
use crate::rows::error::{ReadError, RowsError};
use crate::rows::field::Field;
use crate::rows::field_table::FieldTable;
use crate::rows::source::FileSource;
use std::path::Path;

/// A file of rows, open for reading.
pub(super) struct RowFile {
    table: FieldTable,
    /// Its size on disk in bytes.
    bytes: u64,
}

/// Opens a file of rows; `None` for everything else, which is then read as text and may be refused there. A file that is
/// not regular counts as text, because it can be read only once.
pub(super) fn open(path: &Path, memory_bytes: usize) -> Result<Option<RowFile>, RowsError> {
    let Some(metadata) = path.metadata().ok().filter(|metadata| metadata.is_file()) else { return Ok(None) };
    let Ok(source) = FileSource::new(path) else { return Ok(None) };
    let table = FieldTable::open(&source, memory_bytes)?;
    Ok(table.map(|table| RowFile { table, bytes: metadata.len() }))
}

/// The number of rows between two reports of progress.
const ROWS_PER_REPORT: u64 = 1 << 16;

/// An open file of rows with its wanted columns.
pub(super) struct RowTable {
    file: RowFile,
    /// The index of each wanted column.
    indexes: Vec<usize>,
    pub(super) tally: Tally,
}

impl RowTable {
    /// Finds the wanted columns.
    pub(super) fn new(mut file: RowFile, mut tally: Tally) -> Result<Self, FileError> {
        for (name, _) in tally.wanted.iter().filter(|it| it.is_optional).filter_map(|it| it.default) {
            file.table.expect(name);
        }
        let names = file.table.columns();
        // A file that has no members in its first lines, such as JSON that spans lines, has no columns to take by place.
        let indexes = tally.find_named(names)?;
        tally.taken(names, &indexes);
        Ok(RowTable { file, indexes, tally })
    }

    /// Reads the rows, as [`Table::rows`](super::table::Table::rows) describes.
    pub(super) fn rows<E>(
        self,
        progress: &mut dyn FnMut(&ReadProgress),
        each: &mut impl FnMut(&Row<'_>) -> Result<Result<(), ColumnFault>, E>,
    ) -> Result<FileReport, ReadError<E, FileError>> {
        let RowTable { file: RowFile { table, bytes }, indexes, mut tally } = self;
        let unit = table.unit();
        let (mut halted, mut last) = (None, 0);
        let read = table.rows(&indexes, &mut |number, fields| {
            last = number;
            if number % ROWS_PER_REPORT == 1 {
                let path = tally.report.path.clone();
                // The number of bytes read would not show the progress, because columns are stored one after the other.
                progress(&ReadProgress { path, bytes_read: 0, bytes_total: 0, lines: number - 1 });
            }
            let row = (unit, number);
            let counted = match fields.map(|fields| (fields, each(&Row::Fields { number, fields }))) {
                Ok((_, Ok(Ok(())))) => tally.good(|| bytes).map_err(ReadError::Input),
                Ok((fields, Ok(Err(ColumnFault(column, fault))))) => {
                    tally.fault(row, Some(column), fault, || excerpt_of(fields)).map_err(ReadError::Input)
                }
                Ok((_, Err(error))) => Err(ReadError::Caller(error)),
                // Only lines of JSON can lack fields.
                Err(_) => {
                    tally.fault(row, None, LineFault::NotAnObject, String::new).map_err(ReadError::Input)
                }
            };
            halted = counted.err();
            halted.is_none()
        });
        if let Some(error) = halted {
            return Err(error);
        }
        read.map_err(FileError::Rows)?;
        Ok(tally.finish(last, bytes)?)
    }
}

/// The beginning of a row, as its line would be in a text file.
fn excerpt_of(fields: &[Field<'_>]) -> String {
    let texts: Vec<String> = fields.iter().map(Field::to_string).collect();
    excerpt(texts.join(",").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_of_a_row_is_its_line() {
        assert_eq!(excerpt_of(&[Field::Unsigned(7), Field::Null, Field::Text("a\n".into())]), "7,,a\\n");
    }
}
