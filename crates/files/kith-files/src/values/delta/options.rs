//! The options and the summary of a delta.

use super::super::options::Duplicates;
use crate::MEMORY_BYTES_DEFAULT;
use kith_types::StoreVersion;
use std::path::PathBuf;

/// The options of a delta.
#[derive(Clone, Debug)]
pub struct DeltaOptions {
    /// The number of the new version.
    pub version: StoreVersion,
    /// The treatment of two changes of one key.
    pub duplicates: Duplicates,
    /// The most bytes of buffers.
    pub memory_bytes: usize,
    /// The folder for sorted runs that do not fit into memory.
    pub scratch_dir: PathBuf,
    /// The store's folder.
    pub out_dir: PathBuf,
    /// The number of threads. With 2 or more, sorting runs in parallel to the caller's thread.
    pub threads: usize,
}

impl DeltaOptions {
    /// Two changes of one key are refused, and scratch files lie in the store's folder.
    pub fn new(version: StoreVersion, out_dir: PathBuf) -> Self {
        Self {
            version,
            duplicates: Duplicates::Refuse,
            memory_bytes: MEMORY_BYTES_DEFAULT,
            scratch_dir: out_dir.join(".scratch"),
            out_dir,
            threads: 1,
        }
    }
}

/// The result of a delta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeltaSummary {
    /// The number of keys that did not exist before.
    pub added: u64,
    /// The number of keys with a new value.
    pub replaced: u64,
    /// The number of keys that were deleted.
    pub deleted: u64,
    /// The number of keys to delete that did not exist.
    pub absent: u64,
    /// The number of partitions that were written.
    pub partitions: u32,
    /// The size of logical files that are not in the base, in bytes.
    pub bytes_changed: u64,
    /// The bytes that a replica with the whole base must move: the patch, and files that the patch does not produce.
    pub bytes_moved: u64,
}
