//! Files as tables of fields: the formats in which every row has its fields by name.

use crate::columnar::FieldBatches;
use crate::error::RowsError;
use crate::field::EachRow;
use crate::options::Format;
use crate::source::RowSource;
use crate::text::json::FieldLines;
use crate::unpack::Unpacked;

/// A file of JSON lines, Parquet or Arrow, about to be read.
pub struct FieldTable {
    columns: Vec<String>,
    rows: Rows,
}

enum Rows {
    Lines(FieldLines),
    Batches(FieldBatches),
}

impl FieldTable {
    /// Opens a source; `None` if it is none of these: delimited text, empty, of no format that is known, or not to be opened at
    /// all. `memory_bytes` is what may be decoded at a time of a Parquet or Arrow file.
    ///
    /// # Errors
    /// If the source is of one of these formats, but damaged or too large to be decoded.
    pub fn open(source: &dyn RowSource, memory_bytes: usize) -> Result<Option<Self>, RowsError> {
        let Ok(unpacked) = Unpacked::open(source) else { return Ok(None) };
        let rows = match unpacked.format() {
            Ok(Format::Json) => Rows::Lines(FieldLines::new(unpacked)),
            Ok(Format::Parquet | Format::Arrow) => {
                Rows::Batches(FieldBatches::open(unpacked, source, memory_bytes as u64)?)
            }
            Ok(Format::Csv | Format::F32le) | Err(_) => return Ok(None),
        };
        let columns = match &rows {
            Rows::Lines(lines) => lines.names(),
            Rows::Batches(batches) => batches.names(),
        };
        Ok(Some(FieldTable { columns, rows }))
    }

    /// The names of the columns; of JSON lines, the members of the first lines in the order in which they come.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Takes lines of JSON for what may have a member of this name, even if none of the first lines has it.
    pub fn expect(&mut self, name: &str) {
        if matches!(self.rows, Rows::Lines(_)) && !self.columns.iter().any(|known| known == name) {
            self.columns.push(name.to_owned());
        }
    }

    /// `line` or `row`: what the numbers of rows count.
    pub fn unit(&self) -> &'static str {
        match &self.rows {
            Rows::Lines(_) => "line",
            Rows::Batches(_) => "row",
        }
    }

    /// Calls `each` with the fields of every row in `columns`, which are places in [`FieldTable::columns`], until it answers
    /// `false`. Memory: one row or batch.
    ///
    /// # Errors
    /// If the file cannot be read to its end, or a column is of a type without fields.
    pub fn rows(self, columns: &[usize], each: &mut EachRow<'_>) -> Result<(), RowsError> {
        match self.rows {
            Rows::Lines(lines) => {
                let names: Vec<&str> = columns.iter().map(|&place| self.columns[place].as_str()).collect();
                lines.rows(&names, each)
            }
            Rows::Batches(batches) => batches.rows(columns, each),
        }
    }
}
