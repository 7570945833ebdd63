//! The read-only storage engine: immutable files of one component version per
//! folder, mapped and served; their writers; fetching and verifying them; bulk load.
//!
//! The foundation is Voldemort's read-only storage (Voldemort §5.1–5.5): chunk sets
//! built once elsewhere, pulled, swapped in whole. Unlike there, a missing or damaged
//! byte is an error, never "not found".

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
