//! Sets fields of records from the cells of a column.

use super::cells::{Cell, Cells};
use arrow_array::Array;
use kith_schema::{EncodeError, FieldType, RecordWriter, Scalar, ValueFault};

impl Cells<'_> {
    /// Sets a field of the current record to the value in `row`.
    pub(super) fn set(&self, row: usize, writer: &mut RecordWriter, index: usize) -> Result<(), EncodeError> {
        let Some(cell) = self.at(row) else { return writer.set_null(index) };
        let inexact = |writer: &RecordWriter, item: Option<usize>, got: &str| {
            let field = &writer.schema().fields()[index];
            let (expected, got) = (field.field_type().to_string(), got.to_owned());
            let (field, item) = (field.name().to_owned(), item.map(|item| item as u64 + 1));
            EncodeError::Value { field, item, fault: ValueFault::OutOfRange { expected, got } }
        };
        if let Cell::Inexact(got) = cell {
            return Err(inexact(writer, None, got));
        }
        let bad_item = |cells: &Cells<'_>, range: std::ops::Range<usize>| {
            range.enumerate().find_map(|(item, row)| match cells.at(row) {
                Some(Cell::Inexact(got)) => Some((item, got)),
                _ => None,
            })
        };
        let null_item = |writer: &RecordWriter, item: usize| EncodeError::Value {
            field: writer.schema().fields()[index].name().to_owned(),
            item: Some(item as u64 + 1),
            fault: ValueFault::NullItem,
        };
        match self {
            Cells::List { runs, items, .. } => {
                let range = runs.range(row);
                let is_vector =
                    matches!(writer.schema().fields()[index].field_type(), FieldType::Vector { .. });
                if let (Cells::F32(array), true) = (&**items, is_vector)
                    && array.null_count() == 0
                {
                    return writer.set_f32s(index, &array.values()[range]);
                }
                if let Some(item) = range.clone().position(|item| items.at(item).is_none()) {
                    return Err(null_item(writer, item));
                }
                if let Some((item, got)) = bad_item(items, range.clone()) {
                    return Err(inexact(writer, Some(item), got));
                }
                writer.set_list(index, range.filter_map(|item| items.at(item).and_then(Cell::scalar)))
            }
            Cells::Map { runs, keys, values, .. } => {
                let range = runs.range(row);
                if let Some(item) = range.clone().position(|item| values.at(item).is_none()) {
                    return Err(null_item(writer, item));
                }
                if let Some((item, got)) = bad_item(values, range.clone()) {
                    return Err(inexact(writer, Some(item), got));
                }
                let entries = range.filter_map(|item| match (keys.at(item)?, values.at(item)?.scalar()?) {
                    (Cell::Text(key), value) => Some((key, value)),
                    _ => None,
                });
                writer.set_map(index, entries)
            }
            _ => match cell.scalar() {
                Some(scalar) => writer.set(index, scalar),
                None => writer.set_null(index),
            },
        }
    }
}

impl<'a> Cell<'a> {
    /// The value as a scalar; `None` for a list or map.
    fn scalar(self) -> Option<Scalar<'a>> {
        Some(match self {
            Cell::Bool(value) => Scalar::Bool(value),
            Cell::Signed(value) => Scalar::I64(value),
            Cell::Unsigned(value) => Scalar::U64(value),
            Cell::Single(value) => Scalar::F32(value),
            Cell::Double(value) => Scalar::F64(value),
            Cell::Timestamp(value) => Scalar::Timestamp(value),
            Cell::Text(text) => Scalar::Text(text),
            Cell::Bytes(bytes) => Scalar::Bytes(bytes),
            Cell::Many | Cell::Inexact(_) => return None,
        })
    }
}
