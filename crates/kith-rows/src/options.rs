//! What the caller says about its files.

use kith_schema::{KeyType, Schema, ValueType, nearest};
use std::fmt;
use std::str::FromStr;
use strum::IntoStaticStr;
use thiserror::Error;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Format {
    /// Comma- or tab-separated text, quoted as in RFC 4180.
    Csv,
    /// One JSON object a line.
    Json,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, with a footer (a file) or without (a stream).
    Arrow,
    /// Vectors of `f32`, little-endian, end to end.
    F32le,
}

/// What the files are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatChoice {
    /// Each as its first bytes say. Raw vectors have none, they must be told.
    #[default]
    Detect,
    /// All of one format; a file of another is an error.
    Told(Format),
}

/// Whether the first line of a file of delimited text names its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderMode {
    /// It does if it looks like it; [`RowOptions::header`] and [`FileOptions::header`](crate::graph::FileOptions::header) say how
    /// that is told.
    #[default]
    Detect,
    /// It does.
    Present,
    /// It is data.
    Absent,
}

/// What values become.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueShape {
    /// UTF-8 text.
    Text,
    /// Bytes; base64 in text formats.
    Bytes,
    /// Compact JSON text.
    Json,
    /// A record of this schema.
    Record(Schema),
}

/// How rows are read.
#[derive(Clone, Debug)]
pub struct RowOptions {
    /// What keys are.
    pub key: KeyType,
    /// What values become.
    pub value: ValueShape,
    /// What the files are.
    pub format: FormatChoice,
    /// The column or member that is the key; `key` if not told. In JSON lines, telling it makes the whole object the
    /// value (of a record, without the key unless the schema has it).
    pub key_field: Option<String>,
    /// The column or member that is a text, bytes or JSON value; `value` if not told. Telling it lets a row have
    /// more columns, which are not read.
    pub value_field: Option<String>,
    /// Whether CSV files name their columns. [`HeaderMode::Detect`]: a file does if its first line has the key column's name.
    /// Without, a file of ids is data; a file of other keys is refused, because its header would look like a row. Without names,
    /// the columns are the key, then the value, or the fields in the order of the schema.
    pub header: HeaderMode,
    /// What separates CSV columns; if not told, a tab if the first line has as many tabs as commas, else a comma.
    pub delimiter: Option<u8>,
    /// Of raw vectors: how many `f32` a row has.
    pub dimensions: Option<u32>,
    /// How many rows may be wrong (and are left out).
    pub errors_max: u64,
    /// Bytes that what is decoded of a Parquet or Arrow file may take at a time; a file that needs more is refused.
    pub memory_bytes: usize,
}

/// Enough for files of all common writers.
pub(crate) const MEMORY_BYTES_DEFAULT: usize = 256 << 20;
/// The name of the key column if none is told.
pub(crate) const KEY_FIELD: &str = "key";
/// The name of the value column if none is told.
pub(crate) const VALUE_FIELD: &str = "value";
/// What `kith mget` calls a value in base64; taken for `value` in JSON lines, so that output is input.
pub(crate) const VALUE_BASE64_FIELD: &str = "value_base64";
/// The field of a record that raw vectors fill.
pub(crate) const VECTOR_FIELD: &str = "vector";

impl RowOptions {
    /// Everything detected, no wrong row allowed.
    pub fn new(key: KeyType, value: ValueShape) -> Self {
        RowOptions {
            key,
            value,
            format: FormatChoice::Detect,
            key_field: None,
            value_field: None,
            header: HeaderMode::Detect,
            delimiter: None,
            dimensions: None,
            errors_max: 0,
            memory_bytes: MEMORY_BYTES_DEFAULT,
        }
    }

    pub(crate) fn key_name(&self) -> &str {
        self.key_field.as_deref().unwrap_or(KEY_FIELD)
    }

    pub(crate) fn value_name(&self) -> &str {
        self.value_field.as_deref().unwrap_or(VALUE_FIELD)
    }
}

impl ValueShape {
    /// The word for it in a store's definition.
    pub fn value_type(&self) -> ValueType {
        match self {
            ValueShape::Text => ValueType::Text,
            ValueShape::Bytes => ValueType::Bytes,
            ValueShape::Json => ValueType::Json,
            ValueShape::Record(_) => ValueType::Record,
        }
    }
}

impl Format {
    /// All, in the order in which help lists them.
    pub const ALL: [Format; 5] = [Format::Csv, Format::Json, Format::Parquet, Format::Arrow, Format::F32le];

    /// The word users type.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no format.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("format {text:?} is unknown (csv, json, parquet, arrow or f32le){}", near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
pub struct UnknownFormat {
    /// What was given.
    pub text: String,
    /// The known word that is nearest, if one is near.
    pub near: Option<String>,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| UnknownFormat {
            text: text.to_owned(),
            near: nearest(text, Format::ALL.map(Format::name)),
        })
    }
}
