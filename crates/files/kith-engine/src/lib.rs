//! The read-only storage engine: one folder of immutable files for each version of a component. This crate writes,
//! fetches, verifies, maps and reads them. Nodes serve from it; builders write through it. What the bytes of a version
//! are built from is the business of `kith-files`, and who may serve a version is decided elsewhere. It follows
//! Voldemort's read-only storage (Voldemort §5.1 to §5.5).
//!
//! ```text
//! Source (folder, bucket, peer) ──► fetch: pull, verify, sync, rename ──► packs ──► map ──► GraphReader, ValuesReader
//! ```
//!
//! - `manifest`, `files`, `pack`: which logical files a version has, and the few physical ones that hold them.
//! - `sealed`: the frame of each file, how many bytes one checksum covers (`header`), and the check of a block
//!   (`reader`). `proof`: the check of whole files.
//! - `chunk`, `adjacency`, `postings`, `members`, `values`: the formats inside, which `docs/formats` draws.
//! - `graph`, `component`: the readers that operators use.
//! - `fetch`, `source`, `patch`: bringing a version to this disk, also as changes of another version.
//! - `verify`, `residency`: rereading a version, and how much of it is in memory.
//! - `map`: memory-mapped files, the only module here with `unsafe`.
//!
//! A missing or damaged byte is an error, never "not found". A version appears under its name only when all of it is on
//! disk.
//!
//! To add a kind of file, begin with [`FileKind`]. To add a place to fetch from, implement [`Source`].

mod adjacency;
mod chunk;
mod component;
mod document;
mod errors;
mod fetch;
mod files;
mod graph;
mod manifest;
mod map;
mod members;
mod pack;
mod patch;
mod postings;
mod proof;
mod residency;
mod sealed;
mod source;
mod values;
mod verify;

pub use adjacency::{ColumnFilter, count as list_count, decode as decode_list, encode as encode_list};
pub use chunk::{ChunkSetReader, ChunkSetSummary, ChunkSetWriter, KEY_BYTES_MAX, RECORD_VALUE_BYTES_MAX};
pub use component::{ComponentReader, ListReader, PartitionReader};
pub use errors::{Damage, Fault, OpenError, ReadError, WriteError};
pub use fetch::{
    FetchError, FetchOptions, FetchProgress, HeldSource, OnFetch, OnPiece, PackReport, SplicedSource, fetch,
    fetch_component, prove_pack, read_manifest, release_partitions, repair, staging_of,
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
pub use proof::OnVerify;
pub use residency::{MappedPacks, Residency};
pub use sealed::FORMAT_VERSION;
pub use source::{FolderSource, ObjectError, REMOTE_PIECE_BYTES, Source};
pub use values::{RecordLocation, ValueError, ValuesReader};
pub use verify::{VerifyDepth, VerifyReport, verify_again, verify_component, verify_slowly, verify_version};

/// The writers of a version's files, for `kith-files`.
pub mod writing {
    pub use crate::chunk::FoundRecord;
    pub use crate::document::{json_text, seal_of};
    pub use crate::pack::{FILE_BYTES_MAX, Piece, pack_name, sync, write_packs};
    pub use crate::patch::{MergeSink, PatchWriter, merge};
    pub use crate::proof::prove_at;
    pub use crate::sealed::SealedWriter;
    pub use crate::values::{Compressor, frame_value_bytes, read_dictionary};
}
