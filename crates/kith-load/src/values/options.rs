//! What to build and how.

use super::ValuesBuildError;
use crate::MEMORY_BYTES_DEFAULT;
use crate::builder::BuildError;
use kith_engine::KEY_BYTES_MAX;
use kith_engine::{Compression, KeyType, ValueCounts, ValueType};
use kith_schema::VALUE_BYTES_MAX;
use kith_types::{PartitionCount, PartitionId, StoreVersion, check_component_name};
use std::path::PathBuf;

/// What to do about rows with one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// End the build; the error names the key.
    #[default]
    Refuse,
    /// Keep the first in the order of input.
    First,
    /// Keep the last in the order of input.
    Last,
}

/// Compression of values, each by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZstdOptions {
    /// 1 to 19: how hard to try.
    pub level: i32,
    /// What values have in common; empty for none. `None` has the builder train one.
    pub dictionary: Option<Vec<u8>>,
}

impl ZstdOptions {
    pub(super) fn compression(&self) -> Compression {
        Compression::Zstd(self.level)
    }
}

/// What to build and how.
#[derive(Clone, Debug)]
pub struct ValuesOptions {
    /// Name of the store: 1 to 64 letters, digits, `.`, `_` or `-`, no dot in front.
    pub name: String,
    /// Which build of it.
    pub version: StoreVersion,
    /// How many partitions the cluster has.
    pub partitions: PartitionCount,
    /// What keys are.
    pub key: KeyType,
    /// What values are.
    pub value: ValueType,
    /// The schema of records, as canonical JSON text.
    pub schema: Option<String>,
    /// How values are compressed, if they are.
    pub compression: Option<ZstdOptions>,
    /// What to do about rows with one key.
    pub duplicates: Duplicates,
    /// The most bytes that buffers may take; 1 MiB at least.
    pub memory_bytes: usize,
    /// Where sorted runs go that do not fit in memory.
    pub scratch_dir: PathBuf,
    /// The store's folder; the build ends up in [`version_dir`](crate::version_dir) of it.
    pub out_dir: PathBuf,
    /// 1, or 2 and more to sort beside the caller's thread.
    pub threads: usize,
}

impl ValuesOptions {
    /// Byte keys and values, not compressed, duplicates refused, scratch files in the store's folder.
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
        // Dots are for stores and graphs, and not in front: such folders belong to the builder.
        if self.name.starts_with('.') || check_component_name(&self.name.replace('.', "-")).is_err() {
            return Err(BuildError::Name { name: self.name.clone() }.into());
        }
        match &self.compression {
            Some(zstd) if !(1..=19).contains(&zstd.level) => Err(ValuesBuildError::Level { got: zstd.level }),
            _ => Ok(()),
        }
    }

    /// The partition of a row that may be stored.
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

/// How far the second half of a build, the writing of files, is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValuesProgress {
    /// Rows written or dropped as duplicates.
    pub rows_done: u64,
    /// Rows in all.
    pub rows_total: u64,
}

/// What a build did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValuesSummary {
    /// Keys, and bytes of keys and values.
    pub counts: ValueCounts,
    /// Rows dropped because another with their key was kept.
    pub duplicates: u64,
    /// Bytes of all logical files.
    pub bytes: u64,
    /// Runs that were written to scratch because they did not fit in memory.
    pub spilled_runs: usize,
}

/// A key as messages show it: an id as its number, others as text if they are, else hexadecimal, cut at 64 bytes.
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
