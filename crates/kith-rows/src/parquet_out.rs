//! Rows out, as Parquet: a column for the key, then the value, or a column for each field of a record. What is written is
//! read back by [`read_rows`](crate::read_rows) as the same rows, of records under the same schema.

use crate::options::{RowOptions, ValueShape};
use arrow_array::RecordBatch;
use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, FixedSizeListBuilder, Float32Builder, Float64Builder,
    Int8Builder, Int32Builder, Int64Builder, ListBuilder, MapBuilder, StringBuilder,
    TimestampMillisecondBuilder, UInt64Builder, make_builder,
};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema as ArrowSchema, TimeUnit};
use kith_schema::{
    ElementType, FieldType, FieldView, KeyType, RecordError, RecordView, Scalar, ScalarType, Schema,
};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};
use std::io::Write;
use std::sync::Arc;
use thiserror::Error;

/// Rows are gathered so many at a time: columns compress well, and little memory is held.
const BATCH_ROWS: usize = 4_096;
/// Or so many bytes of values, whichever comes first.
const BATCH_BYTES: usize = 8 << 20;

/// A row cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum WriteRowsError {
    /// A key or value is not what the store says.
    #[error("a {what} is not what the store says")]
    NotOfItsType {
        /// `key` or `value`.
        what: &'static str,
    },
    /// A record is damaged.
    #[error("a record is damaged")]
    Record(#[from] RecordError),
    /// A field of a record is damaged.
    #[error("field {field:?} of a record is damaged: {why}")]
    Field {
        field: String,
        /// What does not hold.
        why: &'static str,
    },
    /// The file cannot be written.
    #[error("write Parquet")]
    Parquet(#[from] ParquetError),
    /// Columns do not fit together: a defect.
    #[error("put a batch together")]
    Arrow(#[from] ArrowError),
}

/// Writes rows as Parquet.
pub struct ParquetRows<W: Write + Send> {
    writer: ArrowWriter<W>,
    schema: Arc<ArrowSchema>,
    key: KeyType,
    value: ValueShape,
    columns: Vec<Box<dyn ArrayBuilder>>,
    rows: usize,
    bytes: usize,
}

impl<W: Write + Send> ParquetRows<W> {
    /// Into `out`; `options` say what keys and values are, and what the key's column is called. A record that has a field of
    /// that name has no other column for its key.
    ///
    /// # Errors
    /// If the file cannot be begun.
    pub fn new(out: W, options: &RowOptions) -> Result<Self, WriteRowsError> {
        let mut fields = Vec::new();
        let key_name = options.key_name();
        let is_field = |schema: &Schema| schema.index_of(key_name).is_some();
        if !matches!(&options.value, ValueShape::Record(schema) if is_field(schema)) {
            let key = match options.key {
                KeyType::Id => DataType::UInt64,
                KeyType::String => DataType::Utf8,
                KeyType::Bytes => DataType::Binary,
            };
            fields.push(Field::new(key_name, key, false));
        }
        match &options.value {
            ValueShape::Text | ValueShape::Json => {
                fields.push(Field::new(options.value_name(), DataType::Utf8, false));
            }
            ValueShape::Bytes => fields.push(Field::new(options.value_name(), DataType::Binary, false)),
            ValueShape::Record(schema) => {
                fields.extend(schema.fields().iter().map(|field| {
                    Field::new(field.name(), column_type(field.field_type()), field.is_nullable())
                }));
            }
        }
        let schema = Arc::new(ArrowSchema::new(fields));
        let zstd = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(zstd).build();
        let writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties))?;
        let columns =
            schema.fields().iter().map(|field| make_builder(field.data_type(), BATCH_ROWS)).collect();
        Ok(Self {
            writer,
            schema,
            key: options.key,
            value: options.value.clone(),
            columns,
            rows: 0,
            bytes: 0,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If it is not of the store's types, or the file cannot be written: what was written is then no whole file.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteRowsError> {
        let fields = if let ValueShape::Record(schema) = &self.value { schema.fields().len() } else { 1 };
        let first = self.columns.len() - fields;
        if first == 1 {
            put(self.columns[0].as_mut(), key_of(self.key, key)?);
        }
        match &self.value {
            ValueShape::Text | ValueShape::Json => put(self.columns[first].as_mut(), text("value", value)?),
            ValueShape::Bytes => put(self.columns[first].as_mut(), Scalar::Bytes(value)),
            ValueShape::Record(schema) => {
                let record = RecordView::new(schema, value)?;
                for (index, field) in schema.fields().iter().enumerate() {
                    let damaged = |why| WriteRowsError::Field { field: field.name().to_owned(), why };
                    let column = self.columns[first + index].as_mut();
                    put_field(column, field.field_type(), record.at(index)?).map_err(damaged)?;
                }
            }
        }
        self.rows += 1;
        self.bytes += key.len() + value.len();
        if BATCH_ROWS <= self.rows || BATCH_BYTES <= self.bytes { self.flush() } else { Ok(()) }
    }

    /// Writes what is left and the file's end.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<(), WriteRowsError> {
        self.flush()?;
        // Not `close`, which would leave what lies in a buffer of `out` to its drop, errors and all.
        let mut out = self.writer.into_inner()?;
        out.flush().map_err(ParquetError::from)?;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), WriteRowsError> {
        if self.rows == 0 {
            return Ok(());
        }
        let columns = self.columns.iter_mut().map(|column| column.finish()).collect();
        self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), columns)?)?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

fn key_of(key_type: KeyType, key: &[u8]) -> Result<Scalar<'_>, WriteRowsError> {
    match key_type {
        KeyType::Id => match key.try_into() {
            Ok(id) => Ok(Scalar::U64(u64::from_le_bytes(id))),
            Err(_) => Err(WriteRowsError::NotOfItsType { what: "key" }),
        },
        KeyType::String => text("key", key),
        KeyType::Bytes => Ok(Scalar::Bytes(key)),
    }
}

fn text<'a>(what: &'static str, bytes: &'a [u8]) -> Result<Scalar<'a>, WriteRowsError> {
    let text = std::str::from_utf8(bytes).map_err(|_| WriteRowsError::NotOfItsType { what })?;
    Ok(Scalar::Text(text))
}

fn column_type(field: FieldType) -> DataType {
    let item = |scalar| Arc::new(Field::new("item", scalar, true));
    match field {
        FieldType::Scalar(scalar) => scalar_type(scalar),
        FieldType::List(scalar) => DataType::List(item(scalar_type(scalar))),
        FieldType::Vector { element, dimensions } => {
            // Arrow knows half precision, few of its readers do.
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

/// A builder of the column's type.
fn of<B: ArrayBuilder>(column: &mut dyn ArrayBuilder) -> &mut B {
    column.as_any_mut().downcast_mut().expect("columns were made for their fields")
}

fn put(column: &mut dyn ArrayBuilder, value: Scalar<'_>) {
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

fn put_field(
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

/// A vector that is null has its place in the column all the same.
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
