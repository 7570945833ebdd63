//! Patches: the changes from one version of a store to the next, record by record (Voldemort §7). Drawn in
//! `docs/formats/patch.md`.
//!
//! The files of a version are a function of its records, so a node that holds the earlier version makes the files of the
//! new one from its own files and the patch. A list of changed bytes would not work: a value that becomes longer moves
//! every record after it, and with them their checksums and the offsets in the index.
//!
//! A patch is a hint. It is not in the manifest, and nothing trusts it: files that are made with it are checked against the
//! manifest, and a partition that fails the check is pulled.

mod bytes;
mod head;
mod merge;
mod section;
mod writer;

pub use bytes::PatchBytes;
pub use head::Head;
pub use merge::{MergeSink, merge};
pub use section::{Change, SectionReader};
pub use writer::PatchWriter;

/// The name of the patch, which lies beside the packs of a built version.
pub const PATCH_NAME: &str = "changes.patch";

/// The bytes are not a patch, or the patch of another version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnusablePatch;

#[cfg(test)]
mod tests;
