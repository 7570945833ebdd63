//! The settings for reading rows that the store's definition does not determine.

use crate::rows::{FieldTimes, FormatChoice, HeaderMode, RowOptions};
use kith_files::{Duplicates, MEMORY_BYTES_DEFAULT, Stop};
use kith_schema::Schema;
use std::path::PathBuf;

/// The source of the schema of records.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaFrom {
    /// A file with the JSON text of a schema.
    File(PathBuf),
    /// A schema that the program gives.
    Given(Schema),
}

/// The settings for reading and writing rows. The default detects the format of files, allows neither wrong rows nor
/// duplicate keys, does not compress, and sorts within 256 MiB on all cores.
#[derive(Clone, Debug)]
pub struct RowSettings {
    /// The format of the files.
    pub format: FormatChoice,
    /// Whether CSV files have a header line.
    pub header: HeaderMode,
    /// The delimiter of CSV columns; `None` detects it.
    pub delimiter: Option<u8>,
    /// For raw vectors: the number of values per row.
    pub dimensions: Option<u32>,
    /// The column or member that is the key; `None` uses the store's, else `key`.
    pub key_field: Option<String>,
    /// The column or member that is the value; `None` uses `value`.
    pub value_field: Option<String>,
    /// The schema of records. `None` uses the schema of the version that is served, or else infers one from the files,
    /// which costs a pass over them.
    pub schema: Option<SchemaFrom>,
    /// The treatment of rows with the same key.
    pub duplicates: Duplicates,
    /// The zstd level for compressing values, 1 to 19; `None` does not compress.
    pub compress: Option<i32>,
    /// The number of wrong rows that are dropped before the rows are refused.
    pub errors_max: u64,
    /// Whether the rows may lack fields of the schema, which then get their default or null in every record.
    pub fill_missing: bool,
    /// The units of times that are plain numbers, by field ([`RowOptions::times`]).
    pub times: Vec<FieldTimes>,
    /// The memory for sorting in bytes; at least 16 MiB. Decoding Parquet and Arrow files may take as much again.
    pub memory_bytes: usize,
    /// The most bytes of all rows, decoded ([`RowOptions::unpacked_max`]).
    pub unpacked_max: Option<u64>,
    /// The number of threads for sorting.
    pub threads: usize,
    /// Stops the reading of rows.
    pub stop: Stop,
}

impl Default for RowSettings {
    fn default() -> Self {
        Self {
            format: FormatChoice::Detect,
            header: HeaderMode::Detect,
            delimiter: None,
            dimensions: None,
            key_field: None,
            value_field: None,
            schema: None,
            duplicates: Duplicates::Refuse,
            compress: None,
            errors_max: 0,
            fill_missing: false,
            times: Vec::new(),
            memory_bytes: MEMORY_BYTES_DEFAULT,
            unpacked_max: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            stop: Stop::default(),
        }
    }
}

impl RowSettings {
    /// Applies the settings to `options`, which have the store's defaults. They may replace the store's key field.
    pub(super) fn apply(&self, options: &mut RowOptions) {
        options.format = self.format;
        options.header = self.header;
        options.delimiter = self.delimiter;
        options.dimensions = self.dimensions;
        options.errors_max = self.errors_max;
        options.fill_missing = self.fill_missing;
        options.times.clone_from(&self.times);
        options.memory_bytes = self.memory_bytes;
        options.unpacked_max = self.unpacked_max;
        options.value_field.clone_from(&self.value_field);
        if self.key_field.is_some() {
            options.key_field.clone_from(&self.key_field);
        }
    }
}
