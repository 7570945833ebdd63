//! Options for reading files.

use crate::rows::error::RowsError;
use crate::rows::format::Format;
use kith_schema::{FieldType, KeyType, RecordWriter, ScalarType, Schema, TimeUnit, ValueType};
use std::str::FromStr;
use thiserror::Error;

/// How the format of the files is determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FormatChoice {
    /// The first bytes of each file determine its format. Raw vectors cannot be detected, so their format must be given.
    #[default]
    Detect,
    /// All files have this format. A file with another format is an error.
    Given(Format),
}

/// Whether the first line of a file of delimited text names its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderMode {
    /// The first line is examined. [`RowOptions::header`] and [`FileOptions::header`](crate::rows::graph::FileOptions::header)
    /// describe how.
    #[default]
    Detect,
    /// The first line is a header.
    Present,
    /// The first line is data.
    Absent,
}

/// The type of the values to produce.
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

/// The unit of the times of a field that are plain numbers, written `FIELD:UNIT` with the units `time-s`, `time-us` and
/// `time-ns` (or `time`, milliseconds).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTimes {
    /// The field of the records.
    pub field: String,
    /// Its unit.
    pub unit: TimeUnit,
}

/// A unit of times is not written as it should be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{text:?} is not FIELD:UNIT (time-s, time-us or time-ns)")]
pub struct WrongTimes {
    /// The text as written.
    pub text: String,
}

impl FromStr for FieldTimes {
    type Err = WrongTimes;

    fn from_str(text: &str) -> Result<Self, WrongTimes> {
        let parsed = text.rsplit_once(':').and_then(|(field, kind)| Some((field, TimeUnit::of_kind(kind)?)));
        let (field, unit) = parsed.ok_or_else(|| WrongTimes { text: text.to_owned() })?;
        Ok(FieldTimes { field: field.to_owned(), unit })
    }
}

/// Options for reading rows.
#[derive(Clone, Debug)]
pub struct RowOptions {
    /// The type of keys.
    pub key: KeyType,
    /// The type of the values to produce.
    pub value: ValueShape,
    /// The format of the files.
    pub format: FormatChoice,
    /// The column or member that is the key; `key` by default. If it is given for JSON lines, the whole object is the
    /// value. For a record the key is left out of the value, unless the schema has it.
    pub key_field: Option<String>,
    /// The column or member that is a text, bytes or JSON value; `value` by default. If it is given, a row may have further
    /// columns, which are ignored.
    pub value_field: Option<String>,
    /// Whether CSV files name their columns. With [`HeaderMode::Detect`], a file does if its first line contains the key
    /// column's name. Otherwise a file of ids is read as data, and a file of other keys is refused, because its header
    /// would look like a row. Without names, the columns are the key, then the value, or the fields in the order of the
    /// schema.
    pub header: HeaderMode,
    /// The delimiter of CSV columns. By default it is a tab if the first line has at least as many tabs as commas, else a
    /// comma.
    pub delimiter: Option<u8>,
    /// For raw vectors: the number of `f32` values of a row.
    pub dimensions: Option<u32>,
    /// How many rows may be wrong; they are left out.
    pub errors_max: u64,
    /// Whether the rows may lack fields of the schema, which then get their default or null in every record. Otherwise such
    /// rows are refused.
    pub fill_missing: bool,
    /// The units of times that are plain numbers, by field. Other fields are in milliseconds.
    pub times: Vec<FieldTimes>,
    /// The most decoded bytes of a Parquet or Arrow file at a time. A file that needs more is refused.
    pub memory_bytes: usize,
    /// The most bytes of all rows, decoded. `None` allows [`UNPACKED_FACTOR`](crate::rows::UNPACKED_FACTOR) times the size of the
    /// sources, and at least [`UNPACKED_MIN`](crate::rows::UNPACKED_MIN): a small file must not fill a disk.
    pub unpacked_max: Option<u64>,
}

/// Enough for files of all common writers.
pub(crate) const MEMORY_BYTES_DEFAULT: usize = 256 << 20;
/// The name of the key column by default.
pub(crate) const KEY_FIELD: &str = "key";
/// The name of the value column by default.
pub(crate) const VALUE_FIELD: &str = "value";
/// The name that `kith mget` gives a value in base64. JSON lines accept it for `value`, so that output can be input.
pub(crate) const VALUE_BASE64_FIELD: &str = "value_base64";
/// The field of a record that raw vectors fill.
pub(crate) const VECTOR_FIELD: &str = "vector";

impl RowOptions {
    /// Everything is detected, and no row may be wrong.
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
            fill_missing: false,
            times: Vec::new(),
            memory_bytes: MEMORY_BYTES_DEFAULT,
            unpacked_max: None,
        }
    }

    /// A writer of records that reads times as the options say. Names that are no field are refused before: see
    /// [`RowOptions::check_times`].
    pub(crate) fn writer(&self, schema: &Schema) -> RecordWriter {
        let mut writer = RecordWriter::new(schema);
        for FieldTimes { field, unit } in &self.times {
            if let Some(index) = schema.index_of(field) {
                writer.set_unit(index, *unit);
            }
        }
        writer
    }

    /// Refuses units for what is no field of times of the records.
    ///
    /// # Errors
    /// [`RowsError::NoTimes`].
    pub fn check_times(&self) -> Result<(), RowsError> {
        for FieldTimes { field, .. } in &self.times {
            let got = match &self.value {
                ValueShape::Record(schema) => {
                    schema.fields().iter().find(|it| it.name() == field).map(|it| it.field_type())
                }
                ValueShape::Text | ValueShape::Bytes | ValueShape::Json => None,
            };
            let is_time = got.is_some_and(|it| {
                matches!(it, FieldType::Scalar(scalar) | FieldType::List(scalar) | FieldType::Map(scalar)
                    if scalar == ScalarType::Timestamp)
            });
            if !is_time {
                let got = got.map_or("missing".to_owned(), |it| it.to_string());
                return Err(RowsError::NoTimes { field: field.clone(), got });
            }
        }
        Ok(())
    }

    pub(crate) fn key_name(&self) -> &str {
        self.key_field.as_deref().unwrap_or(KEY_FIELD)
    }

    pub(crate) fn value_name(&self) -> &str {
        self.value_field.as_deref().unwrap_or(VALUE_FIELD)
    }
}

impl ValueShape {
    /// The value type in a store's definition.
    pub fn value_type(&self) -> ValueType {
        match self {
            ValueShape::Text => ValueType::Text,
            ValueShape::Bytes => ValueType::Bytes,
            ValueShape::Json => ValueType::Json,
            ValueShape::Record(_) => ValueType::Record,
        }
    }
}
