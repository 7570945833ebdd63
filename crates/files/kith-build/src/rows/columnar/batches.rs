//! Opens a Parquet or Arrow file, and reads its batches of rows.

use super::budget::batch_rows;
use super::cells::Cells;
use super::times::{has_no_date, with_exact_times};
use super::{messages, pages};
use crate::rows::error::RowsError;
use crate::rows::source::RowSource;
use crate::rows::unpack::UnpackedSource;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::file::metadata::RowGroupMetaData;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The rows of a Parquet batch. They are few enough that large values do not add up, and enough that the cost per batch
/// does not matter.
const BATCH_ROWS: usize = 1_024;

/// The opened file, or the number of bytes that it would need.
type Bounded = Result<Opened, u64>;

/// A file of batches.
pub(super) struct Batches {
    pub(super) file: Arc<str>,
    pub(super) schema: SchemaRef,
    /// The schema as the writer declared it. Parquet itself has no lists of a fixed length.
    pub(super) declared: SchemaRef,
    next: Next,
}

impl Batches {
    pub(super) fn open(
        unpacked: UnpackedSource,
        source: &dyn RowSource,
        memory_bytes: u64,
    ) -> Result<Self, RowsError> {
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

    /// The next batch; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>, RowsError> {
        let next = &mut self.next;
        guarded(&self.file, || next.next().transpose())
    }

    /// Wraps the column with this index of a batch.
    pub(super) fn cells<'a>(&self, batch: &'a RecordBatch, index: usize) -> Result<Cells<'a>, RowsError> {
        self.check(index)?;
        Cells::of(batch.column(index)).map_err(|got| self.column_type(index, got))
    }

    /// Refuses a column that the writer declared as one of durations or times of day. Parquet may store them as plain numbers.
    pub(super) fn check(&self, index: usize) -> Result<(), RowsError> {
        let written = self.declared.field_with_name(self.schema.field(index).name());
        match written.ok().map(|field| field.data_type()).filter(|it| has_no_date(it)) {
            Some(declared) => Err(self.column_type(index, declared.to_string())),
            None => Ok(()),
        }
    }

    pub(super) fn column_type(&self, index: usize, got: String) -> RowsError {
        let (file, column) = (Arc::clone(&self.file), self.schema.field(index).name().clone());
        RowsError::ColumnType { file, column, got }
    }

    /// The names of the columns.
    pub(super) fn names(&self) -> Vec<String> {
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
    /// Opens a file whose columns have their declared types.
    fn plain(schema: SchemaRef, next: Next) -> Self {
        Opened { declared: Arc::clone(&schema), schema, next }
    }
}

fn parquet(file: File, memory_bytes: u64) -> Result<Bounded, ArrowError> {
    pages::check_footer(&file)?;
    // Without the writer's Arrow schema every column has its plain type: there are no dictionaries and no views.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let mut known = ArrowReaderMetadata::load(&file, options.clone())?;
    let written = known.metadata().file_metadata().key_value_metadata();
    let declared = parquet_to_arrow_schema(known.parquet_schema(), written).ok();
    if let Some(schema) = with_exact_times(known.schema(), declared.as_ref(), known.parquet_schema()) {
        known = ArrowReaderMetadata::try_new(Arc::clone(known.metadata()), options.with_schema(schema))?;
    }
    let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, known);
    let mut rows = BATCH_ROWS;
    for group in builder.metadata().row_groups() {
        match group_rows(&file, group, memory_bytes)? {
            Ok(most) => rows = rows.min(most),
            Err(needed) => return Ok(Err(needed)),
        }
    }
    let reader = builder.with_batch_size(rows).build()?;
    let schema = arrow_array::RecordBatchReader::schema(&reader);
    let declared = declared.map_or_else(|| Arc::clone(&schema), Arc::new);
    Ok(Ok(Opened { schema, declared, next: Box::new(reader) }))
}

/// How many rows of a group can be decoded at a time, or how many bytes one row may need.
fn group_rows(
    file: &File,
    group: &RowGroupMetaData,
    memory_bytes: u64,
) -> Result<Result<usize, u64>, ArrowError> {
    let mut columns = pages::columns(file, group)?;
    let known = batch_rows(&columns, memory_bytes);
    // Pages that are larger than that are not inspected.
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

/// Runs a decoder. A panic of the decoder is reported as damage of the file.
fn guarded<T>(file: &Arc<str>, decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, RowsError> {
    let damaged = |detail: String| RowsError::Damaged { file: Arc::clone(file), detail };
    // The state that the decoder leaves behind is dropped with the error, so nothing reads it.
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

/// Whether a file is intact, but uses a feature that is not built in (such as brotli). Parquet errors retain only a text.
fn is_unsupported(error: &ArrowError, detail: &str) -> bool {
    matches!(error, ArrowError::NotYetImplemented(_))
        || detail.contains("Disabled feature")
        || detail.contains("NYI")
}
