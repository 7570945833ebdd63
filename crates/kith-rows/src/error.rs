//! Why files cannot be read.

use crate::codec::Codec;
use crate::fault::{RowErrors, RowLocation};
use crate::options::Format;
use crate::wrong::ROW_ERRORS_SHOWN;
use kith_schema::{InferError, SchemaError};
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// Why the reading ended early. `E` is the error of the function that was given the rows, `F` that of the files.
#[derive(Debug, Error)]
pub enum ReadError<E, F = RowsError> {
    /// The files.
    #[error(transparent)]
    Input(F),
    /// The function that was given the rows.
    #[error(transparent)]
    Caller(E),
}

impl<E, F> From<F> for ReadError<E, F> {
    fn from(error: F) -> Self {
        ReadError::Input(error)
    }
}

/// Why files are refused, or cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum RowsError {
    /// A source cannot be opened.
    #[error("{file} cannot be opened")]
    Open {
        file: Arc<str>,
        /// What the system says.
        source: io::Error,
    },
    /// The disk or the network under it failed.
    #[error("{file} cannot be read further")]
    Read {
        file: Arc<str>,
        /// What the system says.
        source: io::Error,
    },
    /// A compressed file ends in the middle.
    #[error("{file} is cut off: its {codec} data end early; fetch or write it again")]
    Truncated {
        file: Arc<str>,
        /// How it is compressed.
        codec: Codec,
    },
    /// A file does not unpack or decode.
    #[error("{file} is damaged or cut off: {detail}; fetch or write it again")]
    Damaged {
        file: Arc<str>,
        /// What the decoder says.
        detail: String,
    },
    /// A file needs more memory than it may take, whatever it is packed to.
    #[error(
        "{file} needs {} MiB of memory to be decoded, {} MiB are allowed: allow more (--memory), or write it with smaller pages, \
         row groups or batches", needed.div_ceil(1 << 20), memory_bytes >> 20
    )]
    TooLarge {
        file: Arc<str>,
        /// Bytes that it needs at a time, as far as can be told before it is decoded.
        needed: u64,
        /// Bytes that it may take.
        memory_bytes: u64,
    },
    /// A file is written in a way that is not built in.
    #[error("{file} cannot be decoded: {detail}; write it uncompressed or with snappy, zstd, gzip or lz4")]
    Unsupported {
        file: Arc<str>,
        /// What the decoder says.
        detail: String,
    },
    /// A file is of another format than told.
    #[error("{file} is not {told}, it looks like {found}")]
    OtherFormat {
        file: Arc<str>,
        /// What was told.
        told: Format,
        /// What it seems to be.
        found: Format,
    },
    /// A file is of no format that can be read.
    #[error("{file} is no CSV, JSON, Parquet or Arrow file: {found}")]
    UnknownFormat {
        file: Arc<str>,
        /// What it seems to be.
        found: &'static str,
    },
    /// A row of a text file is longer than any that could be kept.
    #[error("{place} is longer than {limit} bytes: is a quote not closed, or the file not text?")]
    RowTooLong {
        place: RowLocation,
        /// The most bytes a row may have.
        limit: u64,
    },
    /// A column that is needed is not there.
    #[error("{file} has no column {column:?} (its columns: {}); --key-field and --value-field name them", columns.join(", "))]
    NoColumn {
        file: Arc<str>,
        /// The column looked for.
        column: String,
        /// Those that are there.
        columns: Vec<String>,
    },
    /// Two columns of one name.
    #[error("{file} has more than one column {column:?}")]
    RepeatedColumn { file: Arc<str>, column: String },
    /// A column that has no place in the value.
    #[error("{file} has a column {column:?} that is not in the schema{}", near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
    UnknownColumn {
        file: Arc<str>,
        column: String,
        /// The field that was probably meant.
        near: Option<String>,
    },
    /// Columns besides key and value.
    #[error("{file} has columns besides key and value ({}): name the value with --value-field to leave them out", columns.join(", "))]
    ExtraColumns {
        file: Arc<str>,
        /// All its columns.
        columns: Vec<String>,
    },
    /// A column of a type that no field can have.
    #[error("column {column:?} of {file} is of type {got}, which cannot be stored")]
    ColumnType {
        file: Arc<str>,
        column: String,
        /// Its type, as Arrow names it.
        got: String,
    },
    /// Whether the first line is a header cannot be told.
    #[error(
        "{file} has no column \"key\" in its first line, which may be a header or a row: say --header yes or no, or --key-field"
    )]
    HeaderUnclear { file: Arc<str> },
    /// Names are needed and the file has none.
    #[error("{file} has no header: columns need names, or the store a schema")]
    NoHeader { file: Arc<str> },
    /// Raw vectors and the other settings do not go together.
    #[error("raw f32 rows {why}")]
    Vectors {
        /// What is missing or wrong.
        why: String,
    },
    /// Raw vectors that end inside a row.
    #[error(
        "{file} is {bytes} bytes long, not a multiple of the {row_bytes} of a row of {dimensions} dimensions"
    )]
    NotWhole {
        file: Arc<str>,
        /// Its length, unpacked.
        bytes: u64,
        /// Bytes of a row.
        row_bytes: u64,
        /// `f32` of a row.
        dimensions: u32,
    },
    /// More wrong rows than allowed.
    #[error("{}{} row(s) are wrong, {max} allowed; the first: {}", at_least(errors.total(), *max), errors.total(), errors.first[0])]
    BadRows {
        /// How many were allowed.
        max: u64,
        /// The first ten, and those found by reason; never empty. Reading ends at the tenth beyond those allowed.
        errors: RowErrors,
    },
    /// Every row is wrong. They are allowed, but what is left of them is nothing.
    #[error("all {} row(s) are wrong; the first: {}", errors.total(), errors.first[0])]
    NoGoodRows {
        /// The first ten, and all of them by reason; never empty.
        errors: RowErrors,
    },
    /// A schema cannot be inferred.
    #[error(transparent)]
    Infer(Box<InferError<RowLocation>>),
    /// A schema cannot be made.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Nobody has read on where so many are wrong.
fn at_least(wrong: u64, max: u64) -> &'static str {
    if ends_reading(wrong, max) { "at least " } else { "" }
}

/// Whether so many wrong rows are enough: those allowed, and as many as are shown.
pub(crate) fn ends_reading(wrong: u64, max: u64) -> bool {
    max.saturating_add(ROW_ERRORS_SHOWN as u64) <= wrong
}

impl From<InferError<RowLocation>> for RowsError {
    fn from(error: InferError<RowLocation>) -> Self {
        RowsError::Infer(Box::new(error))
    }
}
