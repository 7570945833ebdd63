//! What a caller says about rows, beside what the store is.

use kith_engine::load::{Duplicates, MEMORY_BYTES_DEFAULT, Stop};
use kith_rows::{FormatChoice, HeaderMode, RowOptions};
use kith_schema::Schema;
use std::path::PathBuf;

/// Where the schema of records comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaFrom {
    /// A file with a schema's JSON text.
    File(PathBuf),
    /// The program.
    Given(Schema),
}

/// How rows are read and written. The default detects what files are, allows no wrong row and no key twice, compresses nothing, and
/// sorts within 256 MiB on all cores.
#[derive(Clone, Debug)]
pub struct RowSettings {
    /// What the files are.
    pub format: FormatChoice,
    /// Whether CSV files have a header line.
    pub header: HeaderMode,
    /// What separates CSV columns; `None`: detected.
    pub delimiter: Option<u8>,
    /// Of raw vectors: numbers per row.
    pub dimensions: Option<u32>,
    /// The column or member that is the key; `None`: the store's, else `key`.
    pub key_field: Option<String>,
    /// The column or member that is the value; `None`: `value`.
    pub value_field: Option<String>,
    /// The schema of records; `None`: that of the version that is served, else inferred from the files, which costs a pass over them.
    pub schema: Option<SchemaFrom>,
    /// What to do about rows with one key.
    pub duplicates: Duplicates,
    /// Compress values with zstd at this level, 1 to 19.
    pub compress: Option<i32>,
    /// How many wrong rows are dropped before the rows are refused.
    pub errors_max: u64,
    /// Bytes to sort in, 16 MiB at least; decoding Parquet and Arrow files may take as much again.
    pub memory_bytes: usize,
    /// Threads to sort with.
    pub threads: usize,
    /// Ends the reading of rows.
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
            memory_bytes: MEMORY_BYTES_DEFAULT,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            stop: Stop::default(),
        }
    }
}

impl RowSettings {
    /// Into `options` of the store, whose key field these may replace.
    pub(super) fn apply(&self, options: &mut RowOptions) {
        options.format = self.format;
        options.header = self.header;
        options.delimiter = self.delimiter;
        options.dimensions = self.dimensions;
        options.errors_max = self.errors_max;
        options.memory_bytes = self.memory_bytes;
        options.value_field.clone_from(&self.value_field);
        if self.key_field.is_some() {
            options.key_field.clone_from(&self.key_field);
        }
    }
}
