//! Packs hold many logical files in few physical ones. Drawn in `docs/formats/pack.md`.
//!
//! Checksums, readers and moves of partitions work with logical files; the disk, the object store and the mappings of the
//! process work with packs. Voldemort kept a pair of files per bucket of each store (Voldemort §5.1), so that many small
//! stores over many partitions reached the limits of the system.

mod folder;
mod layout;
mod rule;
mod write;

pub use folder::VersionFolder;
pub use layout::{LAYOUT_NAME, Layout};
pub use rule::{FILE_BYTES_MAX, PackPlace, place};
pub use write::seal_version;
pub use write::{Piece, sync, write_packs};

/// The name of a pack of a built version.
pub fn pack_name(number: u32) -> String {
    format!("{number:05}.pack")
}

/// The name of a pack that a node has laid out itself.
pub fn local_pack_name(number: u32) -> String {
    format!("local-{number:05}.pack")
}

/// The number in the name of a node's own pack.
pub fn local_pack_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("local-")?.strip_suffix(".pack")?.parse().ok()?;
    (local_pack_name(number) == name).then_some(number)
}

/// Whether a pack may have this name: each name has one spelling, and none leads out of the folder.
fn is_pack_name(name: &str) -> bool {
    let built = || name.strip_suffix(".pack")?.parse().ok().map(pack_name);
    local_pack_number(name).is_some() || built().is_some_and(|spelt| spelt == name)
}
