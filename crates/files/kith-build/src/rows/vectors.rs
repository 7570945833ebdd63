//! Raw vectors: rows of `dimensions` little-endian `f32` values, end to end. The key is the number of the row, from 0 and
//! continued through all files. The value is a record whose field `vector` holds the values.

use crate::rows::error::RowsError;
use crate::rows::fault::{RowFault, RowLocation};
use crate::rows::options::{RowOptions, VECTOR_FIELD, ValueShape};
use crate::rows::sink::{Halt, RowSink};
use crate::rows::unpack::UnpackedSource;
use kith_schema::{DIMENSIONS_MAX, ElementType, FieldType, KeyType};
use std::io::{BufRead, Read};
use std::sync::Arc;

/// The type of the vectors.
pub(crate) fn field_type(options: &RowOptions) -> Result<FieldType, RowsError> {
    let wrong = |why: &str| RowsError::Vectors { why: why.to_owned() };
    let dimensions = options.dimensions.ok_or_else(|| wrong("need --dims, the length of a row"))?;
    if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
        return Err(wrong("have 1 to 65536 dimensions"));
    }
    Ok(FieldType::Vector { element: ElementType::F32, dimensions })
}

/// Reads the rows of one file.
pub(crate) fn read(
    unpacked: UnpackedSource,
    options: &RowOptions,
    sink: &mut RowSink<'_>,
) -> Result<(), Halt> {
    let (dimensions, field) = check(options)?;
    let file = Arc::clone(&unpacked.file);
    sink.fields(&file, |given| given == field)?;
    let (errors, mut bytes) = unpacked.into_raw();
    let row_bytes = 4 * dimensions as usize;
    let (mut row, mut values) = (vec![0; row_bytes], vec![0f32; dimensions as usize]);
    let mut number = 0u64;
    while !bytes.fill_buf().map_err(|error| errors.of(error))?.is_empty() {
        let read = fill_row(&mut bytes, &mut row).map_err(|error| errors.of(error))?;
        if read != row_bytes {
            let (row_bytes, bytes) = (row_bytes as u64, number * row_bytes as u64 + read as u64);
            return Err(RowsError::NotWhole { file, bytes, row_bytes, dimensions }.into());
        }
        number += 1;
        let key = sink.vectors;
        sink.vectors += 1;
        let (elements, _) = row.as_chunks::<4>();
        values.iter_mut().zip(elements).for_each(|(value, bytes)| *value = f32::from_le_bytes(*bytes));
        let location = || RowLocation { file: Arc::clone(&file), row: number, unit: "row" };
        sink.row(location, |out| {
            out.key.extend_from_slice(&key.to_le_bytes());
            let Some(writer) = &mut out.writer else { unreachable!("the value is a record: it was checked") };
            writer.clear();
            writer.set_f32s(field, &values).map_err(RowFault::Record)?;
            Ok(writer.finish(&mut out.value)?)
        })?;
    }
    Ok(())
}

/// Fills `row` as far as there are bytes. Returns the number of bytes.
fn fill_row(bytes: &mut impl Read, row: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < row.len() {
        match bytes.read(&mut row[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The dimensions, and the index of the field that they fill.
fn check(options: &RowOptions) -> Result<(u32, usize), RowsError> {
    let wrong = |why: String| RowsError::Vectors { why };
    let expected = field_type(options)?;
    if options.key != KeyType::Id {
        return Err(wrong(format!("have ids as keys, keys of this store are of type {}", options.key)));
    }
    let ValueShape::Record(schema) = &options.value else {
        return Err(wrong(format!("are records, values of this store are {}", options.value.value_type())));
    };
    let field = schema.index_of(VECTOR_FIELD);
    let field = field.ok_or_else(|| wrong(format!("fill a field {VECTOR_FIELD:?}, the schema has none")))?;
    match (schema.fields()[field].field_type(), options.dimensions) {
        (FieldType::Vector { dimensions, .. }, Some(declared)) if dimensions == declared => {
            Ok((declared, field))
        }
        (got, _) => Err(wrong(format!("are {expected}, field {VECTOR_FIELD:?} of the schema is {got}"))),
    }
}
