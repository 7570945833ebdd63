//! The options and the summary of a build of a store.

use super::ValuesBuildError;
use crate::MEMORY_BYTES_DEFAULT;
use crate::builder::BuildError;
use kith_engine::KEY_BYTES_MAX;
use kith_engine::{Compression, KeyType, ValueCounts, ValueType};
use kith_schema::VALUE_BYTES_MAX;
use kith_types::{PartitionCount, PartitionId, StoreVersion, check_component_name};
use std::path::PathBuf;

/// The treatment of rows with the same key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// Ends the build with an error that names the key.
    #[default]
    Refuse,
    /// Keeps the first in the order of input.
    First,
    /// Keeps the last in the order of input.
    Last,
}

/// Compression of values, each on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZstdOptions {
    /// The compression level, from 1 to 19.
    pub level: i32,
    /// The dictionary that values share; empty for none. With `None` the builder trains one.
    pub dictionary: Option<Vec<u8>>,
}

impl ZstdOptions {
    pub(super) fn compression(&self) -> Compression {
        Compression::Zstd(self.level)
    }
}

/// The options of a build.
#[derive(Clone, Debug)]
pub struct ValuesOptions {
    /// The name of the store: 1 to 64 letters, digits, `.`, `_` or `-`, with no dot at the beginning.
    pub name: String,
    /// The version number.
    pub version: StoreVersion,
    /// The number of the cluster's partitions.
    pub partitions: PartitionCount,
    /// The type of keys.
    pub key: KeyType,
    /// The type of values.
    pub value: ValueType,
    /// The schema of records, as canonical JSON text.
    pub schema: Option<String>,
    /// The compression of values; `None` for no compression.
    pub compression: Option<ZstdOptions>,
    /// The treatment of rows with the same key.
    pub duplicates: Duplicates,
    /// The most bytes of buffers; at least 1 MiB.
    pub memory_bytes: usize,
    /// The folder for sorted runs that do not fit into memory.
    pub scratch_dir: PathBuf,
    /// The store's folder. The version is built in its [`version_dir`](crate::version_dir).
    pub out_dir: PathBuf,
    /// The number of threads. With 2 or more, sorting runs in parallel to the caller's thread.
    pub threads: usize,
}

impl ValuesOptions {
    /// Keys and values are bytes without compression, duplicates are refused, and scratch files lie in the store's folder.
    pub fn new(name: &str, version: StoreVersion, partitions: PartitionCount, out_dir: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            version,
            partitions,
            key: KeyType::Bytes,
            value: ValueType::Bytes,
            schema: None,
            compression: None,
            duplicates: Duplicates::Refuse,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            scratch_dir: out_dir.join(".scratch"),
            out_dir,
            threads: 1,
        }
    }

    pub(super) fn check(&self) -> Result<(), ValuesBuildError> {
        // Names of stores and graphs may contain dots, but not begin with one: such folders belong to the builder.
        if self.name.starts_with('.') || check_component_name(&self.name.replace('.', "-")).is_err() {
            return Err(BuildError::Name { name: self.name.clone() }.into());
        }
        match &self.compression {
            Some(zstd) if !(1..=19).contains(&zstd.level) => Err(ValuesBuildError::Level { got: zstd.level }),
            _ => Ok(()),
        }
    }

    /// The partition of a row, after checking that it can be stored.
    #[inline]
    pub(super) fn check_row(&self, key: &[u8], value: &[u8]) -> Result<PartitionId, ValuesBuildError> {
        for (what, got, max) in [("key", key.len(), KEY_BYTES_MAX), ("value", value.len(), VALUE_BYTES_MAX)] {
            if got > max {
                return Err(ValuesBuildError::TooLarge { key: shown(self.key, key), what, got, max });
            }
        }
        self.key.partition(key, self.partitions).ok_or(ValuesBuildError::KeyLength { got: key.len() })
    }
}

/// The progress of the second half of a build, which writes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuesProgress {
    /// The number of rows that were written, or dropped as duplicates.
    pub rows_done: u64,
    /// The number of all rows.
    pub rows_total: u64,
}

/// The result of a build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValuesSummary {
    /// The number of keys, and the size of keys and values.
    pub counts: ValueCounts,
    /// The number of rows that were dropped because another row with the same key was kept.
    pub duplicates: u64,
    /// The size of all logical files in bytes.
    pub bytes: u64,
    /// The number of runs that were written to the scratch folder because they did not fit into memory.
    pub spilled_runs: usize,
}

/// A key in messages: an id as a number, other keys as text if they are text, else as hexadecimal; cut at 64 bytes.
pub(super) fn shown(kind: KeyType, key: &[u8]) -> String {
    if let (KeyType::Id, Ok(id)) = (kind, key.try_into()) {
        return u64::from_le_bytes(id).to_string();
    }
    let cut = &key[..key.len().min(64)];
    let dots = if cut.len() < key.len() { "…" } else { "" };
    match std::str::from_utf8(cut) {
        Ok(text) if !text.is_empty() && !text.contains(char::is_control) => format!("{text:?}{dots}"),
        _ => {
            let hex: String = cut.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("0x{hex}{dots}")
        }
    }
}
