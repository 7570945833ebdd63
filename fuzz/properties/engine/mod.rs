//! The files of stores and graphs.
//!
//! A fuzzer cannot guess the checksums that seal most of them. There are two kinds of targets: `damage` changes files and leaves
//! their checksums, which must detect the change. The others compute valid checksums for the input, as an attacker would: there an
//! answer may be wrong, but a look-up must end without a panic.

pub mod chunk_set;
pub mod damage;
pub mod lists;
pub mod manifest;
pub mod members;
pub mod patch;
mod sealed;
pub mod values;

use kith_types::{PartitionCount, PartitionId};
use std::path::Path;
use tempfile::TempDir;

const PARTITION: PartitionId = PartitionId(0);

fn one_partition() -> PartitionCount {
    PartitionCount::new(1).expect("one is a count")
}

/// A temporary folder for one input; in memory if the system has `/dev/shm`.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary folder can be made")
}
