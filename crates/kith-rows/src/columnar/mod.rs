//! Tables of typed columns: Parquet and Arrow IPC.
//!
//! The decoders are those of the Arrow project. They are made for files that are as they should be; a damaged one may
//! make them panic, which is caught here and told as damage.
//!
//! They also believe what a file claims: a few kilobytes can unpack to any number of gigabytes, and one value can stand for a
//! million. So what a file needs is worked out first, from the headers of its pages or messages, and held against a bound.

mod budget;
mod cells;
mod fields;
mod messages;
mod pages;
mod thrift;
mod types;

use crate::error::RowsError;
use crate::fault::{RowFault, RowLocation};
use crate::key::{RawKey, put_key};
use crate::options::{RowOptions, ValueShape};
use crate::read::{Halt, Row, RowSink};
use crate::source::RowSource;
use crate::text::columns::{ValueColumns, by_name, check_names, position};
use crate::unpack::Unpacked;
use crate::value::put_json;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use budget::batch_rows;
use cells::{Cell, Cells};
use kith_schema::{FieldType, Inference};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::RowGroupMetaData;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use types::{field_type, vector_type};

pub(crate) use fields::FieldBatches;

/// Rows of a Parquet batch: few enough that large values do not add up, enough that a batch costs nothing per row.
const BATCH_ROWS: usize = 1_024;

/// What a decoder can be made of, or how many bytes the file would need.
type Bounded = Result<Opened, u64>;

/// A file of batches.
struct Batches {
    file: Arc<str>,
    schema: SchemaRef,
    /// As the writer declared it: Parquet itself knows no lists of a fixed length.
    declared: SchemaRef,
    next: Next,
}

impl Batches {
    fn open(unpacked: Unpacked, source: &dyn RowSource, memory_bytes: u64) -> Result<Self, RowsError> {
        let name = Arc::clone(&unpacked.file);
        let is_parquet = unpacked.head.starts_with(b"PAR1");
        let has_footer = unpacked.head.starts_with(b"ARROW1");
        let file = unpacked.into_file(source)?;
        let opened = guarded(&name, || match (is_parquet, has_footer) {
            (true, _) => parquet(file, memory_bytes),
            (false, true) => arrow_file(file, memory_bytes),
            (false, false) => arrow_stream(file, memory_bytes),
        });
        let Opened { schema, declared, next } = opened?.map_err(|needed| {
            let file = Arc::clone(&name);
            RowsError::TooLarge { file, needed, memory_bytes }
        })?;
        Ok(Batches { file: name, schema, declared, next })
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, RowsError> {
        let next = &mut self.next;
        guarded(&self.file, || next.next().transpose())
    }

    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }
}

type Next = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>>>;

struct Opened {
    schema: SchemaRef,
    declared: SchemaRef,
    next: Next,
}

impl Opened {
    /// A file whose columns have the types that they are declared to have.
    fn plain(schema: SchemaRef, next: Next) -> Self {
        Opened { declared: Arc::clone(&schema), schema, next }
    }
}

fn parquet(file: File, memory_bytes: u64) -> Result<Bounded, ArrowError> {
    pages::check_footer(&file)?;
    // Without the writer's Arrow schema every column has its plain type: no dictionaries, no views.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file.try_clone()?, options)?;
    let mut rows = BATCH_ROWS;
    for group in builder.metadata().row_groups() {
        match group_rows(&file, group, memory_bytes)? {
            Ok(most) => rows = rows.min(most),
            Err(needed) => return Ok(Err(needed)),
        }
    }
    let written = builder.metadata().file_metadata().key_value_metadata();
    let declared = parquet_to_arrow_schema(builder.parquet_schema(), written).ok().map(Arc::new);
    let reader = builder.with_batch_size(rows).build()?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let declared = declared.unwrap_or_else(|| Arc::clone(&schema));
    Ok(Ok(Opened { schema, declared, next: Box::new(reader) }))
}

/// How many rows of a group can be decoded at a time, or how many bytes one may need.
fn group_rows(
    file: &File,
    group: &RowGroupMetaData,
    memory_bytes: u64,
) -> Result<Result<usize, u64>, ArrowError> {
    let mut columns = pages::columns(file, group)?;
    let known = batch_rows(&columns, memory_bytes);
    // Pages that are larger than that are not looked into.
    let largest = columns.iter().flat_map(|column| &column.pages).map(|page| page.bytes).max();
    if known == Ok(BATCH_ROWS) || memory_bytes / 4 < largest.unwrap_or(0) {
        return Ok(known);
    }
    let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
    for (chunk, column) in group.columns().iter().zip(&mut columns) {
        if column.needs_look() {
            pages::look(file, chunk, rows, column)?;
        }
    }
    Ok(batch_rows(&columns, memory_bytes))
}

fn arrow_file(file: File, memory_bytes: u64) -> Result<Bounded, ArrowError> {
    let needed = messages::of_file(&file)?;
    if memory_bytes < needed {
        return Ok(Err(needed));
    }
    let reader = arrow_ipc::reader::FileReader::try_new(BufReader::new(file), None)?;
    Ok(Ok(Opened::plain(reader.schema(), Box::new(reader))))
}

fn arrow_stream(file: File, memory_bytes: u64) -> Result<Bounded, ArrowError> {
    let needed = messages::of_stream(&file)?;
    if memory_bytes < needed {
        return Ok(Err(needed));
    }
    let reader = arrow_ipc::reader::StreamReader::try_new(BufReader::new(file), None)?;
    Ok(Ok(Opened::plain(reader.schema(), Box::new(reader))))
}

/// Runs a decoder; a panic of its is damage of the file.
fn guarded<T>(file: &Arc<str>, decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, RowsError> {
    let damaged = |detail: String| RowsError::Damaged { file: Arc::clone(file), detail };
    // What the decoder leaves behind is dropped with the error, so nobody sees it half done.
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(|error| match error.to_string() {
            detail if is_unsupported(&error, &detail) => {
                RowsError::Unsupported { file: Arc::clone(file), detail }
            }
            detail => damaged(detail),
        }),
        Err(_) => Err(damaged("its structure is inconsistent".to_owned())),
    }
}

/// Whether a file is whole, but of a kind that is not built in (brotli). Of Parquet errors only the text is left.
fn is_unsupported(error: &ArrowError, detail: &str) -> bool {
    matches!(error, ArrowError::NotYetImplemented(_))
        || detail.contains("Disabled feature")
        || detail.contains("NYI")
}

/// Reads the rows of one file.
pub(crate) fn read(
    unpacked: Unpacked,
    source: &dyn RowSource,
    options: &RowOptions,
    sink: &mut RowSink<'_>,
) -> Result<(), Halt> {
    let mut batches = Batches::open(unpacked, source, options.memory_bytes as u64)?;
    let file = Arc::clone(&batches.file);
    let columns = by_name(&file, &batches.names(), options)?;
    let mut number = 0u64;
    while let Some(batch) = batches.next()? {
        let cells_of = |index: usize| {
            Cells::of(batch.column(index)).map_err(|got| RowsError::ColumnType {
                file: Arc::clone(&file),
                column: batch.schema().field(index).name().clone(),
                got,
            })
        };
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
            let place = || RowLocation { file: Arc::clone(&file), row: number, unit: "row" };
            sink.row(place, |out| fill(row, &key, &value, options, out))?;
        }
    }
    Ok(())
}

/// The value columns of a batch.
enum BatchValue<'a> {
    One(Cells<'a>),
    /// With the field each of them is.
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
        (BatchValue::One(cells), _) => {
            let no_value = || RowFault::NoValue { name: options.value_name().to_owned() };
            let wrong = |expected, got| RowFault::ValueType { expected, got };
            match (&options.value, cells.at(row).ok_or_else(no_value)?) {
                (ValueShape::Json, Cell::Text(text)) => put_json(text, &mut out.value),
                (ValueShape::Json, _) => Err(wrong("JSON text", "of another type")),
                (ValueShape::Text, Cell::Text(text)) => {
                    out.value.extend_from_slice(text.as_bytes());
                    Ok(())
                }
                (ValueShape::Text, _) => Err(wrong("text", "of another type")),
                (_, Cell::Bytes(bytes)) => {
                    out.value.extend_from_slice(bytes);
                    Ok(())
                }
                (_, Cell::Text(text)) => {
                    out.value.extend_from_slice(text.as_bytes());
                    Ok(())
                }
                _ => Err(wrong("bytes", "of another type")),
            }
        }
        (BatchValue::Fields(_), None) => unreachable!("columns are fields only where values are records"),
    }
}

/// Takes in the columns of one file; of its rows only how many there are at all.
pub(crate) fn infer(
    unpacked: Unpacked,
    source: &dyn RowSource,
    options: &RowOptions,
    seen: &mut Inference<RowLocation>,
) -> Result<(), RowsError> {
    let batches = Batches::open(unpacked, source, options.memory_bytes as u64)?;
    let names = batches.names();
    check_names(&batches.file, &names)?;
    let key = position(&batches.file, &names, options.key_name())?;
    let mut columns: Vec<(&str, Option<FieldType>, bool)> = Vec::new();
    for (index, field) in batches.schema.fields().iter().enumerate().filter(|(index, _)| *index != key) {
        let declared = field_type(field.data_type()).map_err(|got| RowsError::ColumnType {
            file: Arc::clone(&batches.file),
            column: names[index].clone(),
            got,
        })?;
        let written = batches.declared.field_with_name(field.name()).ok();
        let declared = written.and_then(|written| vector_type(written.data_type())).or(declared);
        columns.push((&names[index], declared, field.is_nullable()));
    }
    let place = RowLocation { file: Arc::clone(&batches.file), row: 1, unit: "row" };
    seen.observe_columns(&place, 1, columns)?;
    Ok(())
}

impl Cells<'_> {
    /// The key in this column; `None` if null.
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
        })
    }
}
