//! The read-only storage engine: immutable files of one component version per
//! folder, mapped and served; their writers; fetching and verifying them; bulk load.
//!
//! The foundation is Voldemort's read-only storage (Voldemort §5.1–5.5): chunk sets
//! built once elsewhere, pulled, swapped in whole. Unlike there, a missing or damaged
//! byte is an error, never "not found".
//!
//! ```
//! use kith_engine::load::{ValuesBuilder, ValuesOptions};
//! use kith_engine::{KeyType, ValueType, ValuesReader};
//! use kith_types::{PartitionCount, StoreVersion};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let partitions = PartitionCount::new(4).ok_or("four is a count")?;
//! let options = ValuesOptions::new("people", StoreVersion(1), partitions, dir.path().join("people"));
//! let mut builder = ValuesBuilder::new(ValuesOptions { key: KeyType::String, value: ValueType::Text, ..options })?;
//! builder.row(b"member:1005", b"a value")?; // more rows follow, in any order
//! let (manifest, _) = builder.finish(&mut |_| {})?;
//! let all: Vec<_> = partitions.iter().collect();
//! let reader = ValuesReader::open(&dir.path().join("people/1"), &all)?;
//! assert_eq!(reader.get(b"member:1005")?, Some(b"a value".to_vec()));
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
mod pack;
mod patch;
mod postings;
mod residency;
mod sealed;
mod values;
mod verify;

pub use adjacency::{ColumnFilter, count as list_count, decode as decode_list, encode as encode_list};
pub use chunk::{ChunkSetReader, ChunkSetSummary, ChunkSetWriter, KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use component::{ComponentReader, ListReader, PartitionReader};
pub use errors::{Damage, Fault, OpenError, ReadError, WriteError};
pub use fetch::{
    FetchError, FetchOptions, FetchProgress, FolderSource, HeldSource, ObjectError, OnFetch, OnPiece,
    PackReport, REMOTE_PIECE_BYTES, Source, SplicedSource, fetch, fetch_component, prove_pack, read_manifest,
    release_partitions, repair, staging_of,
};
pub use files::{FileId, FileKind, MANIFEST_NAME, list_name, lists_of};
pub use graph::GraphReader;
pub use manifest::{
    Compression, Content, Counts, FileEntry, GraphContent, KeyType, Manifest, PackEntry, VALUES_COMPONENT,
    ValueCounts, ValueType, ValuesContent,
};
pub use members::{MemberTableReader, MemberTableWriter};
pub use pack::{VersionFolder, seal_version};
pub use patch::PATCH_NAME;
pub use postings::{PostingsKeys, PostingsReader, PostingsWriter};
pub use residency::{Mapped, Residency};
pub use sealed::FORMAT_VERSION;
pub use values::{Place, ValueError, ValuesReader};
pub use verify::{
    OnVerify, VerifyDepth, VerifyReport, verify_again, verify_component, verify_slowly, verify_version,
};
