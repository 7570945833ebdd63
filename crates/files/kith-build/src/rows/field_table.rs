//! Reads files as tables of fields. Supports the formats in which every row names its fields.

use crate::rows::columnar::FieldBatches;
use crate::rows::error::RowsError;
use crate::rows::field::EachRow;
use crate::rows::format::Format;
use crate::rows::source::RowSource;
use crate::rows::text::json::FieldLines;
use crate::rows::unpack::UnpackedSource;

/// A file of JSON lines, Parquet or Arrow, open for reading.
pub struct FieldTable {
    columns: Vec<String>,
    rows: Rows,
}

enum Rows {
    Lines(FieldLines),
    Batches(FieldBatches),
}

impl FieldTable {
    /// Opens a source. Returns `None` if it has none of these formats: if it is delimited text, empty or of an unknown
    /// format, or cannot be opened. `memory_bytes` limits the decoded bytes of a Parquet or Arrow file at a time.
    ///
    /// # Errors
    /// If the source has one of these formats, but is damaged or too large to be decoded.
    pub fn open(source: &dyn RowSource, memory_bytes: usize) -> Result<Option<Self>, RowsError> {
        let Ok(unpacked) = UnpackedSource::open(source) else { return Ok(None) };
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

    /// The names of the columns. For JSON lines, they are the members of the first lines, in order of appearance.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Adds a member of JSON lines that may be missing from the first lines.
    pub fn expect(&mut self, name: &str) {
        if matches!(self.rows, Rows::Lines(_)) && !self.columns.iter().any(|known| known == name) {
            self.columns.push(name.to_owned());
        }
    }

    /// `line` or `row`, depending on what the numbers of rows count.
    pub fn unit(&self) -> &'static str {
        match &self.rows {
            Rows::Lines(_) => "line",
            Rows::Batches(_) => "row",
        }
    }

    /// Calls `each` with the fields of every row in `columns`, which are indexes into [`FieldTable::columns`], until it
    /// returns `false`. Memory: one row or batch.
    ///
    /// # Errors
    /// If the file cannot be read to its end, or a column has a type that cannot be a field.
    pub fn rows(self, columns: &[usize], each: &mut EachRow<'_>) -> Result<(), RowsError> {
        match self.rows {
            Rows::Lines(lines) => {
                let names: Vec<&str> = columns.iter().map(|&index| self.columns[index].as_str()).collect();
                lines.rows(&names, each)
            }
            Rows::Batches(batches) => batches.rows(columns, each),
        }
    }
}
