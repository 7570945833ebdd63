//! Columns of times whose plain decoding would lose something.

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use parquet::basic::Type;
use parquet::schema::types::SchemaDescriptor;
use std::sync::Arc;

/// The schema of a Parquet file with its INT96 times in milliseconds; `None` if it has none. Decoded in nanoseconds, a
/// time before 1677 or after 2262 would become another date.
pub(super) fn with_far_times(schema: &SchemaRef, parquet: &SchemaDescriptor) -> Option<SchemaRef> {
    let leaves = parquet.columns().iter().enumerate();
    let int96: Vec<usize> = leaves
        .filter(|(_, column)| column.physical_type() == Type::INT96)
        .map(|(leaf, _)| parquet.get_column_root_idx(leaf))
        .collect();
    if int96.is_empty() {
        return None;
    }
    let fields = schema.fields().iter().enumerate();
    let fields =
        fields.map(|(root, field)| if int96.contains(&root) { millis(field) } else { Arc::clone(field) });
    Some(Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())))
}

/// The field with its times in milliseconds instead of nanoseconds.
fn millis(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::List(item) => DataType::List(millis(item)),
        DataType::LargeList(item) => DataType::LargeList(millis(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(millis(item), *length),
        DataType::Map(entries, is_sorted) => DataType::Map(millis(entries), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(millis).collect()),
        other => other.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// Whether values of this type are durations, or lists of them.
pub(super) fn is_duration(column: &DataType) -> bool {
    match column {
        DataType::Duration(_) | DataType::Interval(_) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            is_duration(item.data_type())
        }
        DataType::Map(item, _) => is_duration(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| is_duration(field.data_type())),
        _ => false,
    }
}
