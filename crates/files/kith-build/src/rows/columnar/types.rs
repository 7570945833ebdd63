//! The types of fields that are inferred from columns.

use arrow_schema::DataType;
use kith_schema::{DIMENSIONS_MAX, ElementType, FieldType, ScalarType};

/// The field type of a column; `None` if all its values are null.
///
/// # Errors
/// The name of the type if no field can hold it.
pub(super) fn field_type(column: &DataType) -> Result<Option<FieldType>, String> {
    let unknown = || Err(column.to_string());
    let field_type = match column {
        DataType::Null => return Ok(None),
        // A list that happens to have one length in this file may have another length in the next one. Only `vector_type`
        // infers vectors.
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            match scalar_type(item.data_type()) {
                Some(scalar) => FieldType::List(scalar),
                None => return unknown(),
            }
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                match (scalar_type(pair[0].data_type()), scalar_type(pair[1].data_type())) {
                    (Some(ScalarType::Text), Some(value)) => FieldType::Map(value),
                    _ => return unknown(),
                }
            }
            _ => return unknown(),
        },
        other => match scalar_type(other) {
            Some(scalar) => FieldType::Scalar(scalar),
            None => return unknown(),
        },
    };
    Ok(Some(field_type))
}

/// The vector type of a column of lists with a declared length; `None` for every other column. Lists of `f64` stay lists,
/// because vectors cannot have such elements, and so do lists that are longer than a vector can be.
pub(super) fn vector_type(column: &DataType) -> Option<FieldType> {
    let DataType::FixedSizeList(item, length) = column else { return None };
    let element = match item.data_type() {
        DataType::Float32 => ElementType::F32,
        DataType::Float16 => ElementType::F16,
        DataType::Int8 => ElementType::I8,
        _ => return None,
    };
    let dimensions = u32::try_from(*length).ok().filter(|count| (1..=DIMENSIONS_MAX).contains(count))?;
    Some(FieldType::Vector { element, dimensions })
}

fn scalar_type(column: &DataType) -> Option<ScalarType> {
    Some(match column {
        DataType::Boolean => ScalarType::Bool,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => {
            ScalarType::I32
        }
        DataType::Int64 | DataType::UInt32 => ScalarType::I64,
        DataType::UInt64 => ScalarType::U64,
        DataType::Float16 | DataType::Float32 => ScalarType::F32,
        DataType::Float64 => ScalarType::F64,
        // Spark has no unsigned type: it writes those of 64 bits as decimals of 20 digits.
        DataType::Decimal32(digits, 0)
        | DataType::Decimal64(digits, 0)
        | DataType::Decimal128(digits, 0)
        | DataType::Decimal256(digits, 0) => {
            if *digits <= 18 {
                ScalarType::I64
            } else {
                ScalarType::U64
            }
        }
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => ScalarType::F64,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ScalarType::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            ScalarType::Bytes
        }
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => ScalarType::Timestamp,
        DataType::Dictionary(_, values) => return scalar_type(values),
        _ => return None,
    })
}
