//! The flags of `kith store build`, and the flags about rows that `kith store push` shares with it.

use super::delta::DeleteFlags;
use crate::{
    names::{delimiter, size, store_name},
    publish::location,
};
use clap::{Args, ValueEnum};
use kith_build::rows::{FieldTimes, Format, FormatChoice, HeaderMode, KeyType, ValueType};
use kith_build::{Duplicates, Location, MEMORY_BYTES_DEFAULT, RowSettings, SchemaFrom};
use kith_types::{PartitionCount, StoreVersion};
use std::path::PathBuf;

/// The smallest memory that can hold the buffers of a merge.
const MEMORY_BYTES_MIN: usize = 16 << 20;

/// A version of a store to build into a folder.
#[derive(Clone, Debug, Args)]
pub struct BuildFlags {
    /// The store
    #[arg(value_parser = store_name)]
    pub store: String,
    /// Files, folders or glob patterns, also as s3://BUCKET/…
    #[arg(value_name = "INPUT", required_unless_present = "delete")]
    pub inputs: Vec<String>,
    /// Apply the rows as changes to this version, the folder or URL of an earlier build; needs no cluster
    #[arg(long, value_name = "URL", conflicts_with_all = ["partitions", "key", "value", "schema", "compress"])]
    pub base: Option<String>,
    /// The keys to delete from the base.
    #[command(flatten)]
    pub delete: DeleteFlags,
    /// Folder or URL that versions are built into, each under its number, such as s3://BUCKET/PREFIX
    #[arg(long, value_name = "URL", required_unless_present = "dry_run", value_parser = location)]
    pub out: Option<Location>,
    /// The version's number [default: the time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=StoreVersion::MAX.0))]
    pub version: Option<u64>,
    /// Number of partitions of the cluster, to build without asking it
    #[arg(long, value_name = "N", value_parser = partitions)]
    pub partitions: Option<PartitionCount>,
    /// Without a cluster: type of the keys, id, string or bytes [default: string]
    #[arg(long, value_name = "TYPE", requires = "partitions")]
    pub key: Option<KeyType>,
    /// Without a cluster: type of the values, text, bytes, json or record [default: text]
    #[arg(long, value_name = "TYPE", requires = "partitions")]
    pub value: Option<ValueType>,
    /// Read and check the rows, but build nothing; duplicate keys are not detected
    #[arg(long)]
    pub dry_run: bool,
    /// How rows are read and written.
    #[command(flatten)]
    pub rows: RowFlags,
}

/// How rows are read and written.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct RowFlags {
    /// Format of the files: csv, json, parquet, arrow or f32le [default: detected from their first bytes]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Numbers per row, for f32le
    #[arg(long, value_name = "N")]
    dims: Option<u32>,
    /// Whether CSV files have a header line [default: detected]
    #[arg(long, value_enum)]
    header: Option<Header>,
    /// What separates CSV columns: a character, or tab, comma, semicolon, pipe, space [default: detected]
    #[arg(long, value_parser = delimiter)]
    delimiter: Option<u8>,
    /// Which column or member is the key [default: the store's, else key]
    #[arg(long, value_name = "NAME")]
    key_field: Option<String>,
    /// Which column or member is the value [default: value]
    #[arg(long, value_name = "NAME")]
    value_field: Option<String>,
    /// The schema of records [default: the current version's, else inferred]
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// What to do with rows that have the same key
    #[arg(long, value_enum, default_value_t)]
    duplicates: KeepOf,
    /// Compress values with zstd, at a level from 1 to 19 [default: 3]
    #[arg(long, value_name = "LEVEL", num_args = 0..=1, require_equals = true, default_missing_value = "3",
        value_parser = clap::value_parser!(i32).range(1..=19))]
    pub compress: Option<i32>,
    /// Drop up to this many invalid rows instead of refusing them
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_errors: u64,
    /// Accept rows, or a built version, that lack fields of the store's records. Fields that rows lack get their default,
    /// or null, in every record
    #[arg(long)]
    pub fill_missing: bool,
    /// The unit of times that are numbers but not milliseconds: a field of type timestamp, with `:time-s` (seconds), `:time-us`
    /// or `:time-ns`
    #[arg(long, value_name = "FIELD:UNIT", value_delimiter = ',')]
    times: Vec<FieldTimes>,
    /// Memory for sorting, such as 512MiB; decoding Parquet and Arrow files may take as much again
    #[arg(long, value_name = "SIZE", value_parser = memory, default_value_t = MEMORY_BYTES_DEFAULT, hide_default_value = true)]
    pub memory: usize,
    /// The most bytes that the rows may take once they are read, such as 20GiB [default: 1000 times the size of the files, and at
    /// least 1 GiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    unpacked_max: Option<usize>,
    /// Threads to sort with [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

impl Default for RowFlags {
    fn default() -> Self {
        Self {
            format: None,
            dims: None,
            header: None,
            delimiter: None,
            key_field: None,
            value_field: None,
            schema: None,
            duplicates: KeepOf::default(),
            compress: None,
            max_errors: 0,
            fill_missing: false,
            times: Vec::new(),
            memory: MEMORY_BYTES_DEFAULT,
            unpacked_max: None,
            threads: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Header {
    /// They have one
    Yes,
    /// They begin with data
    No,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum KeepOf {
    /// Refuse them
    #[default]
    Refuse,
    /// Keep the first
    First,
    /// Keep the last
    Last,
}

impl RowFlags {
    /// Whether one of the flags is about rows alone, and has no meaning for a built version.
    pub fn describe_rows(&self) -> bool {
        *self != Self { fill_missing: self.fill_missing, ..Self::default() }
    }

    /// Returns the flags as settings of the library.
    pub fn settings(&self) -> RowSettings {
        let usual = RowSettings::default();
        RowSettings {
            format: self.format.map_or(FormatChoice::Detect, FormatChoice::Given),
            header: match self.header {
                None => HeaderMode::Detect,
                Some(Header::Yes) => HeaderMode::Present,
                Some(Header::No) => HeaderMode::Absent,
            },
            delimiter: self.delimiter,
            dimensions: self.dims,
            key_field: self.key_field.clone(),
            value_field: self.value_field.clone(),
            schema: self.schema.clone().map(SchemaFrom::File),
            duplicates: match self.duplicates {
                KeepOf::Refuse => Duplicates::Refuse,
                KeepOf::First => Duplicates::First,
                KeepOf::Last => Duplicates::Last,
            },
            compress: self.compress,
            errors_max: self.max_errors,
            fill_missing: self.fill_missing,
            times: self.times.clone(),
            memory_bytes: self.memory,
            unpacked_max: self.unpacked_max.map(|most| most as u64),
            threads: self.threads.map_or(usual.threads, usize::from),
            stop: usual.stop,
        }
    }
}

pub fn partitions(text: &str) -> Result<PartitionCount, String> {
    let count = text.parse().ok().and_then(PartitionCount::new);
    count.ok_or_else(|| "expected the number of partitions that `kith cluster status` shows".to_owned())
}

fn memory(text: &str) -> Result<usize, String> {
    match size(text)? {
        bytes if bytes < MEMORY_BYTES_MIN => Err("too little to sort with: at least 16MiB".to_owned()),
        bytes => Ok(bytes),
    }
}
