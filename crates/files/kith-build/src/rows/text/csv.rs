//! CSV and TSV rows.

use super::table::Table;
use crate::rows::columns::{Columns, ValueColumns, by_name, by_place, check_names, position};
use crate::rows::error::RowsError;
use crate::rows::fault::{RowFault, RowLocation};
use crate::rows::key::{RawKey, put_key};
use crate::rows::options::{HeaderMode, RowOptions, ValueShape};
use crate::rows::seen::SeenRows;
use crate::rows::sink::{Halt, Row, RowSink};
use crate::rows::unpack::UnpackedSource;
use crate::rows::value::{put_base64, put_json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use csv::ByteRecord;
use kith_schema::{EncodeError, FieldType, KeyType, RecordWriter, Scalar, ScalarType, ValueFault};
use std::sync::Arc;

/// Reads the rows of one file.
pub(crate) fn read(
    unpacked: UnpackedSource,
    options: &RowOptions,
    sink: &mut RowSink<'_>,
) -> Result<(), Halt> {
    let mut table = Table::open(unpacked, options.delimiter);
    let file = Arc::clone(table.file());
    let columns = match header(&mut table, options)? {
        Header::Empty => return Ok(()),
        Header::Names(names) => by_name(&file, &names, options)?,
        Header::None => by_place(options),
    };
    sink.columns(&file, &columns)?;
    while let Some((row, record)) = table.next()? {
        let location = || RowLocation { file: Arc::clone(&file), row, unit: "line" };
        sink.row(location, |out| fill(record?, &columns, options, out))?;
    }
    Ok(())
}

/// Adds the rows of one file to the inference.
pub(crate) fn infer(
    unpacked: UnpackedSource,
    options: &RowOptions,
    seen: &mut SeenRows,
) -> Result<(), RowsError> {
    let mut table = Table::open(unpacked, options.delimiter);
    let file = Arc::clone(table.file());
    let names = match header(&mut table, options)? {
        Header::Empty => return Ok(()),
        Header::None => return Err(RowsError::NoHeader { file }),
        Header::Names(names) => names,
    };
    check_names(&file, &names)?;
    let key = position(&file, &names, options.key_name())?;
    while !seen.is_enough()
        && let Some((row, record)) = table.next()?
    {
        // Rows that are wrong in themselves are reported when they are read.
        let Ok(record) = record else { continue };
        let cells = record.iter().map(std::str::from_utf8).collect::<Result<Vec<_>, _>>();
        let Some(cells) = cells.ok().filter(|cells| cells.len() == names.len()) else { continue };
        let location = RowLocation { file: Arc::clone(&file), row, unit: "line" };
        let fields = names.iter().map(String::as_str).zip(cells).enumerate();
        seen.inference.observe_cells(
            &location,
            fields.filter(|(index, _)| *index != key).map(|(_, (name, cell))| (name, guessed(cell))),
        )?;
    }
    Ok(())
}

enum Header {
    /// The file has no lines.
    Empty,
    Names(Vec<String>),
    /// The first line is data.
    None,
}

fn header(table: &mut Table, options: &RowOptions) -> Result<Header, RowsError> {
    let file = Arc::clone(table.file());
    let names: Vec<String> = match table.next()? {
        None => return Ok(Header::Empty),
        Some((_, Ok(record))) => {
            record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
        }
        Some((row, Err(RowFault::TextAfterQuote))) if options.header != HeaderMode::Absent => {
            return Err(RowsError::TextAfterQuote { location: RowLocation { file, row, unit: "line" } });
        }
        Some((_, Err(_))) => {
            table.put_back();
            return Ok(Header::None);
        }
    };
    let has_key = names.iter().any(|name| name == options.key_name());
    let is_id = |name: &String| put_key(KeyType::Id, RawKey::Text(name), "", true, &mut Vec::new()).is_ok();
    let named = match options.header {
        HeaderMode::Present => true,
        HeaderMode::Absent => false,
        HeaderMode::Detect if has_key || options.key_field.is_some() => true,
        HeaderMode::Detect if options.key == KeyType::Id => !names.first().is_some_and(is_id),
        HeaderMode::Detect => return Err(RowsError::HeaderUnclear { file }),
    };
    if named {
        return Ok(Header::Names(names));
    }
    table.put_back();
    Ok(Header::None)
}

fn fill(record: &ByteRecord, columns: &Columns, options: &RowOptions, out: &mut Row) -> Result<(), RowFault> {
    if record.len() != columns.count {
        return Err(RowFault::ColumnCount { expected: columns.count, got: record.len() });
    }
    let text = |index: usize, what: &dyn Fn() -> String| {
        std::str::from_utf8(&record[index]).map_err(|_| RowFault::NotText { what: what() })
    };
    let key = text(columns.key, &|| "key".to_owned())?;
    put_key(options.key, RawKey::Text(key), options.key_name(), true, &mut out.key)?;
    match (&columns.value, &mut out.writer) {
        (ValueColumns::Fields(fields), Some(writer)) => {
            writer.clear();
            for (index, field) in fields.iter().enumerate() {
                let Some(field) = *field else { continue };
                let name = || format!("field {:?}", writer.schema().fields()[field].name());
                let cell = cell_of(text(index, &name)?);
                set_cell(writer, field, cell)?;
            }
            Ok(writer.finish(&mut out.value)?)
        }
        (ValueColumns::One(index), _) => {
            let value = text(*index, &|| "value".to_owned())?;
            match &options.value {
                ValueShape::Json => put_json(value, &mut out.value),
                ValueShape::Bytes => put_base64(value, &mut out.value),
                ValueShape::Text | ValueShape::Record(_) => {
                    out.value.extend_from_slice(value.as_bytes());
                    Ok(())
                }
            }
        }
        (ValueColumns::Fields(_), None) => unreachable!("columns are fields only where values are records"),
    }
}

/// A cell as its type is guessed. Words for a missing value count as the number that is none: one of them among numbers must
/// not make the column text, and is refused when it is read. A column of nothing but words is text.
fn guessed(text: &str) -> &str {
    match text {
        "NULL" | "Null" | "null" | "None" | "NA" | "N/A" | "<NA>" => "NaN",
        text => cell_of(text),
    }
}

/// A cell of a record. `\N` is how MySQL, Hive and PostgreSQL write null.
fn cell_of(text: &str) -> &str {
    if text == "\\N" { "" } else { text }
}

/// Sets a field from a cell. An empty cell means null, or the default, or empty text, depending on the field.
pub(crate) fn set_cell(writer: &mut RecordWriter, index: usize, cell: &str) -> Result<(), EncodeError> {
    let field = &writer.schema().fields()[index];
    let field_type = field.field_type();
    if cell.is_empty() {
        return match field_type {
            _ if field.is_nullable() => writer.set_null(index),
            FieldType::Scalar(ScalarType::Text) if !field.has_default() => {
                writer.set(index, Scalar::Text(""))
            }
            _ => Ok(()),
        };
    }
    let FieldType::Scalar(scalar) = field_type else { return writer.set_json(index, cell) };
    let value = match scalar {
        ScalarType::Text => Some(Scalar::Text(cell)),
        ScalarType::Bytes => {
            let Ok(bytes) = STANDARD.decode(cell) else {
                let field = field.name().to_owned();
                return Err(EncodeError::Value { field, item: None, fault: ValueFault::NotBase64 });
            };
            return writer.set(index, Scalar::Bytes(&bytes));
        }
        ScalarType::Bool => cell.parse().ok().map(Scalar::Bool),
        ScalarType::F32 => cell.parse().ok().map(Scalar::F32),
        ScalarType::F64 => cell.parse().ok().map(Scalar::F64),
        ScalarType::I32 | ScalarType::I64 | ScalarType::U64 | ScalarType::Timestamp => whole(cell),
    };
    writer.set(index, value.unwrap_or(Scalar::Text(cell)))
}

/// A number as the narrowest type that holds it exactly. The writer checks whether it fits.
fn whole(cell: &str) -> Option<Scalar<'static>> {
    let signed = cell.parse().ok().map(Scalar::I64);
    let unsigned = || cell.parse().ok().map(Scalar::U64);
    signed.or_else(unsigned).or_else(|| cell.parse().ok().map(Scalar::F64))
}
