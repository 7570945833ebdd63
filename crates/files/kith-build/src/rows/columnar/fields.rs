//! Reads typed columns as rows of fields.

use super::batches::Batches;
use super::cells::Cell;
use crate::rows::error::RowsError;
use crate::rows::field::{EachRow, Field};
use crate::rows::source::RowSource;
use crate::rows::unpack::UnpackedSource;

/// A file of batches, read as rows of fields.
pub(crate) struct FieldBatches(Batches);

impl FieldBatches {
    pub(crate) fn open(
        unpacked: UnpackedSource,
        source: &dyn RowSource,
        memory_bytes: u64,
    ) -> Result<Self, RowsError> {
        Batches::open(unpacked, source, memory_bytes).map(FieldBatches)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0.names()
    }

    /// Implements [`crate::rows::FieldTable::rows`].
    pub(crate) fn rows(mut self, columns: &[usize], each: &mut EachRow<'_>) -> Result<(), RowsError> {
        let mut number = 0;
        while let Some(batch) = self.0.next()? {
            let cells = columns.iter().map(|&index| self.0.cells(&batch, index));
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
            Cell::Timestamp(value) => {
                u64::try_from(value).map_or_else(|_| Field::Text(value.to_string().into()), Field::Time)
            }
            Cell::Signed(value) => {
                u64::try_from(value).map_or_else(|_| Field::Text(value.to_string().into()), Field::Unsigned)
            }
            Cell::Single(value) => float(value.into(), WHOLE_F32_MAX),
            Cell::Double(value) => float(value, WHOLE_F64_MAX),
            Cell::Inexact(what) => Field::Text(what.into()),
            Cell::Bool(value) => Field::Text(value.to_string().into()),
            Cell::Text(text) => Field::Text(text.into()),
            Cell::Bytes(bytes) => Field::Text(String::from_utf8_lossy(bytes)),
            Cell::Many => Field::Text("a list".into()),
        }
    }
}

/// Below this, a whole number is exact as an `f32`. This one and greater ones may have been rounded before they were written.
const WHOLE_F32_MAX: f64 = (1u64 << 24) as f64;
/// The same for an `f64`.
const WHOLE_F64_MAX: f64 = (1u64 << 53) as f64;

/// A floating-point number: a whole number if it is one and was never rounded.
fn float(value: f64, whole_max: f64) -> Field<'static> {
    match value {
        _ if value.fract() != 0.0 || whole_max <= value.abs() || !value.is_finite() => Field::Float(value),
        _ if value < 0.0 => Field::Text(value.to_string().into()),
        _ => Field::Unsigned(value as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_whole_numbers_only_where_they_were_not_rounded() {
        for (cell, field) in [
            (Cell::Double(7.0), Field::Unsigned(7)),
            (Cell::Double(-7.0), Field::Text("-7".into())),
            (Cell::Double(9_007_199_254_740_991.0), Field::Unsigned((1 << 53) - 1)),
            (Cell::Double(9_007_199_254_740_992.0), Field::Float(9_007_199_254_740_992.0)),
            (Cell::Double(1_234_567_890_123_456_768.0), Field::Float(1_234_567_890_123_456_768.0)),
            (Cell::Single(16_777_215.0), Field::Unsigned((1 << 24) - 1)),
            (Cell::Single(16_777_216.0), Field::Float(16_777_216.0)),
            (Cell::Double(0.5), Field::Float(0.5)),
            (Cell::Double(f64::INFINITY), Field::Float(f64::INFINITY)),
        ] {
            assert_eq!(Field::from(cell), field);
        }
    }
}
