//! Reads typed columns as rows of fields.

use super::batches::Batches;
use super::cells::{Cell, Cells};
use crate::error::RowsError;
use crate::field::{EachRow, Field};
use crate::source::RowSource;
use crate::unpack::Unpacked;
use std::sync::Arc;

/// A file of batches, read as rows of fields.
pub(crate) struct FieldBatches(Batches);

impl FieldBatches {
    pub(crate) fn open(
        unpacked: Unpacked,
        source: &dyn RowSource,
        memory_bytes: u64,
    ) -> Result<Self, RowsError> {
        Batches::open(unpacked, source, memory_bytes).map(FieldBatches)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.names()
    }

    /// Implements [`crate::FieldTable::rows`].
    pub(crate) fn rows(mut self, columns: &[usize], each: &mut EachRow<'_>) -> Result<(), RowsError> {
        let file = Arc::clone(&self.0.file);
        let mut number = 0;
        while let Some(batch) = self.0.next()? {
            let cells = columns.iter().map(|&index| {
                Cells::of(batch.column(index)).map_err(|got| RowsError::ColumnType {
                    file: Arc::clone(&file),
                    column: batch.schema().field(index).name().clone(),
                    got,
                })
            });
            let cells = cells.collect::<Result<Vec<_>, _>>()?;
            let mut fields = Vec::with_capacity(cells.len());
            for row in 0..batch.num_rows() {
                number += 1;
                fields.clear();
                fields.extend(cells.iter().map(|cells| cells.at(row).map_or(Field::Null, Field::from)));
                if !each(number, Ok(&fields)) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl<'a> From<Cell<'a>> for Field<'a> {
    fn from(cell: Cell<'a>) -> Self {
        match cell {
            Cell::Unsigned(value) => Field::Unsigned(value),
            Cell::Signed(value) | Cell::Timestamp(value) => {
                u64::try_from(value).map_or_else(|_| Field::Text(value.to_string().into()), Field::Unsigned)
            }
            Cell::Single(value) => Field::Text(value.to_string().into()),
            Cell::Double(value) => Field::Text(value.to_string().into()),
            Cell::Bool(value) => Field::Text(value.to_string().into()),
            Cell::Text(text) => Field::Text(text.into()),
            Cell::Bytes(bytes) => Field::Text(String::from_utf8_lossy(bytes)),
            Cell::Many => Field::Text("a list".into()),
        }
    }
}
