//! The columns of fields: their types, and the values that are appended to them.

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, FixedSizeListBuilder, Float32Builder, Float64Builder,
    Int8Builder, Int32Builder, Int64Builder, ListBuilder, MapBuilder, StringBuilder,
    TimestampMillisecondBuilder, UInt64Builder,
};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use kith_schema::{ElementType, FieldType, FieldView, Scalar, ScalarType};
use std::sync::Arc;

/// The type of a field's column.
pub(super) fn column_type(field: FieldType) -> DataType {
    let item = |scalar| Arc::new(Field::new("item", scalar, true));
    match field {
        FieldType::Scalar(scalar) => scalar_type(scalar),
        FieldType::List(scalar) => DataType::List(item(scalar_type(scalar))),
        FieldType::Vector { element, dimensions } => {
            // Arrow has half precision, but few of its readers support it.
            let element = if element == ElementType::I8 { DataType::Int8 } else { DataType::Float32 };
            DataType::FixedSizeList(item(element), dimensions as i32)
        }
        FieldType::Map(scalar) => {
            let pair =
                [Field::new("keys", DataType::Utf8, false), Field::new("values", scalar_type(scalar), true)];
            let entries = Field::new("entries", DataType::Struct(Fields::from(pair.to_vec())), false);
            DataType::Map(Arc::new(entries), false)
        }
    }
}

fn scalar_type(scalar: ScalarType) -> DataType {
    match scalar {
        ScalarType::Bool => DataType::Boolean,
        ScalarType::I32 => DataType::Int32,
        ScalarType::I64 => DataType::Int64,
        ScalarType::U64 => DataType::UInt64,
        ScalarType::F32 => DataType::Float32,
        ScalarType::F64 => DataType::Float64,
        ScalarType::Text => DataType::Utf8,
        ScalarType::Bytes => DataType::Binary,
        ScalarType::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, None),
    }
}

/// The builder for the column's type.
fn of<B: ArrayBuilder>(column: &mut dyn ArrayBuilder) -> &mut B {
    column.as_any_mut().downcast_mut().expect("columns were made for their fields")
}

/// Appends a value to the column of its type.
pub(super) fn put(column: &mut dyn ArrayBuilder, value: Scalar<'_>) {
    match value {
        Scalar::Bool(value) => of::<BooleanBuilder>(column).append_value(value),
        Scalar::I32(value) => of::<Int32Builder>(column).append_value(value),
        Scalar::I64(value) => of::<Int64Builder>(column).append_value(value),
        Scalar::U64(value) => of::<UInt64Builder>(column).append_value(value),
        Scalar::F32(value) => of::<Float32Builder>(column).append_value(value),
        Scalar::F64(value) => of::<Float64Builder>(column).append_value(value),
        Scalar::Text(value) => of::<StringBuilder>(column).append_value(value),
        Scalar::Bytes(value) => of::<BinaryBuilder>(column).append_value(value),
        Scalar::Timestamp(value) => of::<TimestampMillisecondBuilder>(column).append_value(value),
    }
}

fn put_null(column: &mut dyn ArrayBuilder, scalar: ScalarType) {
    match scalar {
        ScalarType::Bool => of::<BooleanBuilder>(column).append_null(),
        ScalarType::I32 => of::<Int32Builder>(column).append_null(),
        ScalarType::I64 => of::<Int64Builder>(column).append_null(),
        ScalarType::U64 => of::<UInt64Builder>(column).append_null(),
        ScalarType::F32 => of::<Float32Builder>(column).append_null(),
        ScalarType::F64 => of::<Float64Builder>(column).append_null(),
        ScalarType::Text => of::<StringBuilder>(column).append_null(),
        ScalarType::Bytes => of::<BinaryBuilder>(column).append_null(),
        ScalarType::Timestamp => of::<TimestampMillisecondBuilder>(column).append_null(),
    }
}

type Items = Box<dyn ArrayBuilder>;

/// Appends the value of a field of a record, or null.
pub(super) fn put_field(
    column: &mut dyn ArrayBuilder,
    field: FieldType,
    value: Option<FieldView<'_>>,
) -> Result<(), &'static str> {
    match (field, value) {
        (FieldType::Scalar(_), Some(FieldView::Scalar(value))) => put(column, value),
        (FieldType::Scalar(scalar), _) => put_null(column, scalar),
        (FieldType::List(_), value) => {
            let list = of::<ListBuilder<Items>>(column);
            if let Some(FieldView::List(items)) = &value {
                items.iter().try_for_each(|item| item.map(|item| put(list.values().as_mut(), item)))?;
            }
            list.append(value.is_some());
        }
        (FieldType::Vector { element, dimensions }, value) => {
            let list = of::<FixedSizeListBuilder<Items>>(column);
            put_vector(list.values().as_mut(), element, dimensions, value.as_ref());
            list.append(value.is_some());
        }
        (FieldType::Map(_), value) => {
            let map = of::<MapBuilder<Items, Items>>(column);
            if let Some(FieldView::Map(entries)) = &value {
                for entry in entries.iter() {
                    let (key, value) = entry?;
                    put(map.keys().as_mut(), Scalar::Text(key));
                    put(map.values().as_mut(), value);
                }
            }
            map.append(value.is_some()).map_err(|_| "its entries are not pairs")?;
        }
    }
    Ok(())
}

/// Appends a vector. A null vector takes its place in the column too.
fn put_vector(
    items: &mut dyn ArrayBuilder,
    element: ElementType,
    dimensions: u32,
    value: Option<&FieldView<'_>>,
) {
    let vector = value.and_then(FieldView::as_vector);
    for index in 0..dimensions as usize {
        let value = vector.as_ref().and_then(|vector| vector.get(index));
        match element {
            ElementType::I8 => of::<Int8Builder>(items).append_value(value.unwrap_or(0.0) as i8),
            ElementType::F32 | ElementType::F16 => {
                of::<Float32Builder>(items).append_value(value.unwrap_or(0.0));
            }
        }
    }
}
