//! Columns of times whose plain decoding would lose something.

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use parquet::basic::Type;
use parquet::schema::types::SchemaDescriptor;
use std::sync::Arc;

/// The schema of a Parquet file with the times that Parquet itself does not describe: INT96 in milliseconds, and the
/// seconds and days that the writer `declared` for plain numbers. `None` if it has none of these. Decoded in nanoseconds, an
/// INT96 before 1677 or after 2262 would become another date.
pub(super) fn with_exact_times(
    schema: &SchemaRef,
    declared: Option<&Schema>,
    parquet: &SchemaDescriptor,
) -> Option<SchemaRef> {
    let leaves = parquet.columns().iter().enumerate();
    let int96: Vec<usize> = leaves
        .filter(|(_, column)| column.physical_type() == Type::INT96)
        .map(|(leaf, _)| parquet.get_column_root_idx(leaf))
        .collect();
    let exact = schema.fields().iter().enumerate().map(|(root, field)| {
        let declared = declared.and_then(|declared| declared.field_with_name(field.name()).ok());
        let data_type = exact(field.data_type(), declared.map(Field::data_type), int96.contains(&root));
        Arc::new(Field::clone(field).with_data_type(data_type))
    });
    let exact = Schema::new_with_metadata(exact.collect::<Vec<FieldRef>>(), schema.metadata().clone());
    (exact != **schema).then(|| Arc::new(exact))
}

/// The type with its times in milliseconds instead of nanoseconds if they are `int96`, and as they were declared if Parquet
/// knows only their numbers.
fn exact(known: &DataType, declared: Option<&DataType>, int96: bool) -> DataType {
    let item = |item: &FieldRef, declared: Option<&FieldRef>| {
        let data_type = exact(item.data_type(), declared.map(|it| it.data_type()), int96);
        Arc::new(Field::clone(item).with_data_type(data_type))
    };
    let declared_item = match declared {
        Some(
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _),
        ) => Some(item),
        _ => None,
    };
    match (known, declared) {
        (DataType::Timestamp(TimeUnit::Nanosecond, zone), _) if int96 => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        (DataType::Int64, Some(time @ (DataType::Timestamp(TimeUnit::Second, _) | DataType::Date64))) => {
            time.clone()
        }
        (DataType::List(it), _) => DataType::List(item(it, declared_item)),
        (DataType::LargeList(it), _) => DataType::LargeList(item(it, declared_item)),
        (DataType::FixedSizeList(it, length), _) => DataType::FixedSizeList(item(it, declared_item), *length),
        (DataType::Map(it, is_sorted), _) => DataType::Map(item(it, declared_item), *is_sorted),
        (DataType::Struct(fields), _) => {
            let declared_field = |name: &str| match declared {
                Some(DataType::Struct(fields_declared)) => {
                    fields_declared.iter().find(|field| field.name() == name)
                }
                _ => None,
            };
            DataType::Struct(fields.iter().map(|field| item(field, declared_field(field.name()))).collect())
        }
        (other, _) => other.clone(),
    }
}

/// Whether values of this type are durations or times of day, or lists of them. No field can hold these.
pub(super) fn has_no_date(column: &DataType) -> bool {
    match column {
        DataType::Duration(_) | DataType::Interval(_) | DataType::Time32(_) | DataType::Time64(_) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_no_date(item.data_type())
        }
        DataType::Map(item, _) => has_no_date(item.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_no_date(field.data_type())),
        _ => false,
    }
}
