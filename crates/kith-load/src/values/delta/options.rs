//! How changes are applied, and what came of them.

use super::super::options::Duplicates;
use crate::MEMORY_BYTES_DEFAULT;
use kith_types::StoreVersion;
use std::path::PathBuf;

/// How to apply changes.
#[derive(Clone, Debug)]
pub struct DeltaOptions {
    /// The number of the new version.
    pub version: StoreVersion,
    /// What to do about two changes of one key.
    pub duplicates: Duplicates,
    /// The most bytes that buffers may take.
    pub memory_bytes: usize,
    /// Where sorted runs go that do not fit in memory.
    pub scratch_dir: PathBuf,
    /// The store's folder.
    pub out_dir: PathBuf,
    /// 1, or 2 and more to sort beside the caller's thread.
    pub threads: usize,
}

impl DeltaOptions {
    /// Two changes of one key refused, scratch files in the store's folder.
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

/// What a delta did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeltaSummary {
    /// Keys that were not there before.
    pub added: u64,
    /// Keys with a new value.
    pub replaced: u64,
    /// Keys that are gone.
    pub deleted: u64,
    /// Keys to delete that were not there.
    pub absent: u64,
    /// Partitions written anew.
    pub partitions: u32,
    /// Bytes of logical files that the base does not have.
    pub bytes_changed: u64,
    /// What a replica with all of the base must move: the patch, and files that the patch does not make.
    pub bytes_moved: u64,
}
