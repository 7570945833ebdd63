//! Reads tables of typed columns: Parquet and Arrow IPC.
//!
//! The decoders are those of the Arrow project, and expect well-formed files. A damaged file may make them panic, which is
//! caught here and reported as damage.
//!
//! They also trust the sizes that a file states: a few kilobytes can decompress to any number of gigabytes, and one value
//! can stand for a million. So the memory that a file needs is computed first, from the headers of its pages or messages,
//! and compared with a limit.

mod batches;
mod budget;
mod cells;
mod fields;
mod messages;
mod pages;
mod set;
mod thrift;
mod times;
mod types;

use crate::rows::columns::{ValueColumns, by_name, check_names, position};
use crate::rows::error::RowsError;
use crate::rows::fault::{RowFault, RowLocation};
use crate::rows::key::{RawKey, put_key};
use crate::rows::options::{RowOptions, ValueShape};
use crate::rows::seen::SeenRows;
use crate::rows::sink::{Halt, Row, RowSink};
use crate::rows::source::RowSource;
use crate::rows::unpack::UnpackedSource;
use crate::rows::value::put_json;
use batches::Batches;
use cells::{Cell, Cells};
use kith_schema::FieldType;
use std::sync::Arc;
use types::{field_type, vector_type};

pub(crate) use fields::FieldBatches;

/// Reads the rows of one file.
pub(crate) fn read(
    unpacked: UnpackedSource,
    source: &dyn RowSource,
    options: &RowOptions,
    sink: &mut RowSink<'_>,
) -> Result<(), Halt> {
    let mut batches = Batches::open(unpacked, source, options.memory_bytes as u64)?;
    let file = Arc::clone(&batches.file);
    let columns = by_name(&file, &batches.names(), options)?;
    sink.columns(&file, &columns)?;
    let mut number = 0u64;
    while let Some(batch) = batches.next()? {
        let cells_of = |index: usize| batches.cells(&batch, index);
        let key = cells_of(columns.key)?;
        let value = match &columns.value {
            ValueColumns::One(index) => BatchValue::One(cells_of(*index)?),
            ValueColumns::Fields(fields) => {
                let cells = fields.iter().enumerate();
                let cells =
                    cells.filter_map(|(index, field)| field.map(|field| Ok((field, cells_of(index)?))));
                BatchValue::Fields(cells.collect::<Result<_, RowsError>>()?)
            }
        };
        for row in 0..batch.num_rows() {
            number += 1;
            let location = || RowLocation { file: Arc::clone(&file), row: number, unit: "row" };
            sink.row(location, |out| fill(row, &key, &value, options, out))?;
        }
    }
    Ok(())
}

/// The value columns of a batch.
enum BatchValue<'a> {
    One(Cells<'a>),
    /// Each column with the index of its field.
    Fields(Vec<(usize, Cells<'a>)>),
}

fn fill(
    row: usize,
    key: &Cells<'_>,
    value: &BatchValue<'_>,
    options: &RowOptions,
    out: &mut Row,
) -> Result<(), RowFault> {
    let name = options.key_name();
    let raw = key.key(row).ok_or_else(|| RowFault::NoKey { name: name.to_owned() })?;
    put_key(options.key, raw, name, false, &mut out.key)?;
    match (value, &mut out.writer) {
        (BatchValue::Fields(fields), Some(writer)) => {
            writer.clear();
            for (index, cells) in fields {
                cells.set(row, writer, *index)?;
            }
            Ok(writer.finish(&mut out.value)?)
        }
        (BatchValue::One(cells), _) => put_value(row, cells, options, &mut out.value),
        (BatchValue::Fields(_), None) => unreachable!("columns are fields only where values are records"),
    }
}

/// Encodes the value of a row, which is one column.
fn put_value(row: usize, cells: &Cells<'_>, options: &RowOptions, out: &mut Vec<u8>) -> Result<(), RowFault> {
    let wrong = |expected, got| RowFault::ValueType { expected, got };
    let cell = cells.at(row).ok_or_else(|| RowFault::NoValue { name: options.value_name().to_owned() })?;
    match (&options.value, cell) {
        (ValueShape::Json, Cell::Text(text)) => return put_json(text, out),
        (ValueShape::Json, _) => return Err(wrong("JSON text", "of another type")),
        (_, Cell::Text(text)) => out.extend_from_slice(text.as_bytes()),
        (ValueShape::Text, _) => return Err(wrong("text", "of another type")),
        (_, Cell::Bytes(bytes)) => out.extend_from_slice(bytes),
        _ => return Err(wrong("bytes", "of another type")),
    }
    Ok(())
}

/// Adds the columns of one file to the inference. Of its rows, only the number matters.
pub(crate) fn infer(
    unpacked: UnpackedSource,
    source: &dyn RowSource,
    options: &RowOptions,
    seen: &mut SeenRows,
) -> Result<(), RowsError> {
    let batches = Batches::open(unpacked, source, options.memory_bytes as u64)?;
    let names = batches.names();
    check_names(&batches.file, &names)?;
    let key = position(&batches.file, &names, options.key_name())?;
    let mut columns: Vec<(&str, Option<FieldType>, bool)> = Vec::new();
    for (index, field) in batches.schema.fields().iter().enumerate().filter(|(index, _)| *index != key) {
        batches.check(index)?;
        let declared = field_type(field.data_type()).map_err(|got| batches.column_type(index, got))?;
        let written = batches.declared.field_with_name(field.name()).ok();
        let declared = written.and_then(|written| vector_type(written.data_type())).or(declared);
        columns.push((&names[index], declared, field.is_nullable()));
    }
    let location = RowLocation { file: Arc::clone(&batches.file), row: 1, unit: "row" };
    seen.inference.observe_columns(&location, 1, columns)?;
    Ok(())
}

impl Cells<'_> {
    /// The key in this column; `None` if it is null.
    fn key(&self, row: usize) -> Option<RawKey<'_>> {
        Some(match self.at(row)? {
            Cell::Text(text) => RawKey::Text(text),
            Cell::Bytes(bytes) => RawKey::Bytes(bytes),
            Cell::Signed(value) => RawKey::Signed(value),
            Cell::Unsigned(value) => RawKey::Unsigned(value),
            Cell::Single(value) => RawKey::Float(value.into()),
            Cell::Double(value) => RawKey::Float(value),
            Cell::Timestamp(_) => RawKey::Other("a time"),
            Cell::Bool(_) => RawKey::Other("false or true"),
            Cell::Many => RawKey::Other("a list"),
            Cell::Inexact(what) => RawKey::Other(what),
        })
    }
}
