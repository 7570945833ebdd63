//! Patches: what changed from one version of a store to the next, record by record (Voldemort §7). Drawn in `docs/formats/patch.md`.
//!
//! The files of a version are a function of its records, so a node that holds the version before makes the files of the new
//! one out of its own and the patch. Changed bytes would not do: a value that becomes longer moves every record behind it, and
//! with them their checksums and the offsets in the index.
//!
//! A patch is a hint. It is not in the manifest, and nothing trusts it: what is made with it is proven against the manifest, and a
//! partition for which that fails is pulled.

mod bytes;
mod head;
mod merge;
mod section;
mod writer;

pub use bytes::PatchBytes;
pub use head::Head;
pub use merge::{Merging, merge};
pub use section::{Change, SectionReader};
pub use writer::PatchWriter;

/// The name of the patch beside the packs of a built version.
pub const PATCH_NAME: &str = "changes.patch";

/// A patch that is not one, or not that of this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unusable;

#[cfg(test)]
mod tests;
