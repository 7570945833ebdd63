//! Writes rows as Parquet: a column for the key, then one for the value, or a column for each field of a record.
//! [`read_rows`](crate::rows::read_rows) reads the file back as the same rows, records under the same schema.

mod columns;

use crate::rows::options::{RowOptions, ValueShape};
use arrow_array::RecordBatch;
use arrow_array::builder::{ArrayBuilder, make_builder};
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema};
use columns::{column_type, put, put_field};
use kith_schema::{KeyType, RecordError, RecordView, Scalar, Schema};
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    errors::ParquetError,
    file::properties::WriterProperties,
};
use std::io::Write;
use std::sync::Arc;
use thiserror::Error;

/// The number of rows that are gathered before they are written. Columns then compress well, and little memory is needed.
const BATCH_ROWS: usize = 4_096;
/// The number of bytes of values that are gathered at most.
const BATCH_BYTES: usize = 8 << 20;

/// Why a row cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum WriteRowsError {
    /// A key or value does not have the store's type.
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
        /// The fault in the field.
        why: &'static str,
    },
    /// The file cannot be written.
    #[error("write Parquet")]
    Parquet(#[from] ParquetError),
    /// The columns do not fit together, which is a bug.
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
    /// Begins a file in `out`; `options` gives the types of keys and values, and the name of the key's column. If records
    /// have a field of that name, there is no separate column for the key.
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
    /// If the row does not have the store's types, or the file cannot be written. The written part is then not a valid
    /// file.
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

    /// Writes the remaining rows and the end of the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<(), WriteRowsError> {
        self.flush()?;
        // `close` is not used: it would leave buffered bytes of `out` to its drop, where errors are lost.
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
