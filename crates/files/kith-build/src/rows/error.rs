//! Errors of reading files.

use crate::rows::codec::Codec;
use crate::rows::fault::{RowErrors, RowLocation};
use crate::rows::format::Format;
use crate::rows::inference::InferError;
use crate::rows::wrong::ROW_ERRORS_SHOWN;
use kith_schema::SchemaError;
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// Why the reading ended early. `E` is the error of the function that received the rows, and `F` the error of the files.
#[derive(Debug, Error)]
pub enum ReadError<E, F = RowsError> {
    /// The files could not be read or were refused.
    #[error(transparent)]
    Input(F),
    /// The function that received the rows failed.
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
        /// The error of the operating system.
        source: io::Error,
    },
    /// The disk or the network failed during reading.
    #[error("{file} cannot be read further")]
    Read {
        file: Arc<str>,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A compressed file ends too early.
    #[error("{file} is cut off: its {codec} data end early; fetch or write it again")]
    Truncated {
        file: Arc<str>,
        /// Its compression.
        codec: Codec,
    },
    /// A file cannot be decompressed or decoded.
    #[error("{file} is damaged or cut off: {detail}; fetch or write it again")]
    Damaged {
        file: Arc<str>,
        /// The error of the decoder.
        detail: String,
    },
    /// A file needs more memory than it may take, however small it is compressed.
    #[error(
        "{file} needs {} MiB of memory to be decoded, {} MiB are allowed: allow more (--memory), or write it with smaller pages, \
         row groups or batches", needed.div_ceil(1 << 20), memory_bytes >> 20
    )]
    TooLarge {
        file: Arc<str>,
        /// The bytes that it needs at a time, as far as they can be computed before it is decoded.
        needed: u64,
        /// The bytes that it may take.
        memory_bytes: u64,
    },
    /// The rows take too much, however small their files are.
    #[error(
        "{file} expands to more than {max} bytes of rows: allow more (--unpacked-max), if the disk has room for them and for \
         their files"
    )]
    Expands {
        /// The file at which the bound was exceeded.
        file: Arc<str>,
        /// The most bytes of all rows.
        max: u64,
    },
    /// A file uses a feature that is not built in.
    #[error("{file} cannot be decoded: {detail}; write it uncompressed or with snappy, zstd, gzip or lz4")]
    Unsupported {
        file: Arc<str>,
        /// The error of the decoder.
        detail: String,
    },
    /// A file is Parquet or Arrow, and the program was built without them.
    #[error(
        "{file} is Parquet or Arrow, and this program was built without them; `make build` builds one that reads them"
    )]
    NotBuilt { file: Arc<str> },
    /// A file has another format than the given one.
    #[error("{file} is not {declared}, it looks like {found}")]
    OtherFormat {
        file: Arc<str>,
        /// The given format.
        declared: Format,
        /// The format that the file seems to have.
        found: Format,
    },
    /// The format of a file is not supported.
    #[error("{file} is no CSV, JSON, Parquet or Arrow file: it is {found}")]
    UnknownFormat {
        file: Arc<str>,
        /// The format that the file seems to have.
        found: &'static str,
    },
    /// Text follows the quote that closes a name in a header.
    #[error(
        "{location} has text after a closing quote; quotes inside a quoted field are written twice (\"\")"
    )]
    TextAfterQuote { location: RowLocation },
    /// A row of a text file is longer than any row that could be stored.
    #[error("{location} is longer than {limit} bytes: is a quote not closed, or the file not text?")]
    RowTooLong {
        location: RowLocation,
        /// The most bytes of a row.
        limit: u64,
    },
    /// A required column is missing.
    #[error("{file} has no column {column:?} (its columns: {}); --key-field and --value-field name them", columns.join(", "))]
    NoColumn {
        file: Arc<str>,
        /// The required column.
        column: String,
        /// All columns of the file.
        columns: Vec<String>,
    },
    /// Two columns have the same name.
    #[error("{file} has more than one column {column:?}")]
    RepeatedColumn { file: Arc<str>, column: String },
    /// A column in the name of a folder, as Hive writes them, cannot be a column of the rows.
    #[error(
        "{file} is in a folder that gives it the column {column:?}, but {why}; rename the folder if it means no column"
    )]
    FolderColumn {
        file: Arc<str>,
        /// The column.
        column: String,
        /// The fault in it.
        why: String,
    },
    /// The value has no field for a column.
    #[error("{file} has a column {column:?} that is not in the schema{}{}", near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default(), lacking(missing))]
    UnknownColumn {
        file: Arc<str>,
        column: String,
        /// The field that was probably meant.
        near: Option<String>,
        /// The fields of the schema for which the file has no column.
        missing: Vec<String>,
    },
    /// A unit of times is named for what is no field of times.
    #[error("--times names {field:?}, which is {got} in the schema; a unit is for a timestamp")]
    NoTimes {
        /// The name.
        field: String,
        /// Its type, or `missing`.
        got: String,
    },
    /// The rows lack fields of the schema.
    #[error("{file} lacks {} of the schema", named(fields))]
    MissingFields {
        /// The file; for JSON lines, all files together.
        file: Arc<str>,
        /// Never empty.
        fields: Vec<String>,
    },
    /// There are columns other than key and value.
    #[error("{file} has columns besides key and value ({}): name the value with --value-field to leave them out", columns.join(", "))]
    ExtraColumns {
        file: Arc<str>,
        /// All columns of the file.
        columns: Vec<String>,
    },
    /// A column has a type that no field can have.
    #[error("column {column:?} of {file} is of type {got}, which cannot be stored")]
    ColumnType {
        file: Arc<str>,
        column: String,
        /// The type, as Arrow names it.
        got: String,
    },
    /// It is unclear whether the first line is a header.
    #[error(
        "{file} has no column \"key\" in its first line, which may be a header or a row: say --header yes or no, or --key-field"
    )]
    HeaderUnclear { file: Arc<str> },
    /// Columns need names, but the file has no header.
    #[error("{file} has no header: columns need names, or the store a schema")]
    NoHeader { file: Arc<str> },
    /// Raw vectors do not fit the other settings.
    #[error("raw f32 rows {why}")]
    Vectors {
        /// The missing or wrong part.
        why: String,
    },
    /// A file of raw vectors ends inside a row.
    #[error(
        "{file} is {bytes} bytes long, not a multiple of the {row_bytes} of a row of {dimensions} dimensions"
    )]
    NotWhole {
        file: Arc<str>,
        /// The decompressed length of the file.
        bytes: u64,
        /// The size of a row in bytes.
        row_bytes: u64,
        /// The number of `f32` values of a row.
        dimensions: u32,
    },
    /// More rows are wrong than allowed.
    #[error("{}{} row(s) are wrong, {max} allowed; the first: {}", at_least(errors.total(), *max), errors.total(), errors.first[0])]
    BadRows {
        /// The allowed number.
        max: u64,
        /// The first ten, and the counts by reason of those found; never empty. Reading ends at the tenth beyond the allowed
        /// number.
        errors: RowErrors,
    },
    /// Every row is wrong. That many are allowed, but there is no row to store.
    #[error("all {} row(s) are wrong; the first: {}", errors.total(), errors.first[0])]
    NoGoodRows {
        /// The first ten, and the counts of all by reason; never empty.
        errors: RowErrors,
    },
    /// A schema cannot be inferred.
    #[error(transparent)]
    Infer(Box<InferError<RowLocation>>),
    /// A schema is invalid.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// The end of a message about a file that also lacks these fields.
fn lacking(fields: &[String]) -> String {
    if fields.is_empty() { String::new() } else { format!("; it lacks {} of the schema", named(fields)) }
}

/// Fields as text for messages.
fn named(fields: &[String]) -> String {
    let names: Vec<String> = fields.iter().map(|field| format!("{field:?}")).collect();
    format!("{} {}", if names.len() == 1 { "field" } else { "fields" }, names.join(", "))
}

/// The prefix of a count if reading ended before all wrong rows were counted.
fn at_least(wrong: u64, max: u64) -> &'static str {
    if ends_reading(wrong, max) { "at least " } else { "" }
}

/// Whether this many wrong rows end the reading: the allowed number, and as many as are shown.
pub(crate) fn ends_reading(wrong: u64, max: u64) -> bool {
    max.saturating_add(ROW_ERRORS_SHOWN as u64) <= wrong
}

impl From<InferError<RowLocation>> for RowsError {
    fn from(error: InferError<RowLocation>) -> Self {
        RowsError::Infer(Box::new(error))
    }
}
