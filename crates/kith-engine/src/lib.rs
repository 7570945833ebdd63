//! The read-only storage engine: immutable files of one component version per
//! folder, mapped and served; their writers; fetching and verifying them; bulk load.
//!
//! The foundation is Voldemort's read-only storage (Voldemort §5.1–5.5): chunk sets
//! built once elsewhere, pulled, swapped in whole. Unlike there, a missing or damaged
//! byte is an error, never "not found".
//!
//! ```
//! use kith_engine::{ChunkSetReader, ChunkSetWriter, Counts, Manifest};
//! use kith_types::{PartitionCount, PartitionId, StoreVersion};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (dir, partition) = (tempfile::tempdir()?, PartitionId(0));
//! let mut writer = ChunkSetWriter::create(dir.path(), partition, None)?;
//! writer.append(b"member:1005", b"a value")?; // more keys follow in the order of `position_of_key`
//! let mut manifest = Manifest {
//!     component: "people".to_owned(),
//!     version: StoreVersion(1),
//!     role: kith_ops::KindRole::MembersOnly,
//!     partition_count: PartitionCount::new(1).ok_or("one is a count")?,
//!     columns: Vec::new(),
//!     counts: Counts::default(),
//!     files: writer.finish()?.files,
//! };
//! manifest.write(dir.path())?; // puts the files in order, seals, and waits for the disk
//! let reader = ChunkSetReader::open(dir.path(), &Manifest::read(dir.path())?, partition, None)?;
//! assert_eq!(reader.get(b"member:1005")?, Some(b"a value".as_slice()));
//! assert_eq!(reader.get(b"member:1006")?, None); // proven by checksums
//! # Ok(())
//! # }
//! ```

mod adjacency;
mod chunk;
mod component;
mod errors;
mod fetch;
mod files;
mod graph;
pub mod load;
mod manifest;
mod map;
mod members;
mod postings;
mod sealed;
mod verify;

pub use adjacency::{ColumnFilter, count as list_count, decode as decode_list, encode as encode_list};
pub use chunk::{ChunkSetReader, ChunkSetSummary, ChunkSetWriter, KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use component::{ComponentReader, ListReader, PartitionReader};
pub use errors::{Damage, Fault, OpenError, ReadError, WriteError};
pub use fetch::{FetchError, FetchProgress, fetch_component};
pub use files::{FileId, FileKind, MANIFEST_NAME, list_name, lists_of};
pub use graph::GraphReader;
pub use manifest::{Counts, FileEntry, Manifest};
pub use members::{MemberTableReader, MemberTableWriter};
pub use postings::{PostingsKeys, PostingsReader, PostingsWriter};
pub use sealed::FORMAT_VERSION;
pub use verify::{VerifyReport, verify_component};
