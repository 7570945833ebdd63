//! Finds out what the target already contains.

use super::FetchError;
use super::error::IoContext;
use crate::files::MANIFEST_NAME;
use crate::manifest::{FileEntry, Manifest};
use crate::pack::{Layout, local_pack_number};
use std::fs;
use std::path::Path;

/// The layout of a target that already holds this version; `None` if it holds nothing.
pub(super) fn local_layout(manifest: &Manifest, target: &Path) -> Result<Option<Layout>, FetchError> {
    if !target.join(MANIFEST_NAME).exists() {
        // A rename may replace an empty folder, but nothing else.
        return match fs::read_dir(target).map(Iterator::count) {
            Ok(1..) => Err(FetchError::Occupied { path: target.to_owned() }),
            Ok(0) | Err(_) => Ok(None),
        };
    }
    if Manifest::read(target)? == *manifest {
        return Ok(Some(Layout::read(target, manifest)?));
    }
    Err(FetchError::Occupied { path: target.to_owned() })
}

/// Whether a file is laid out and its pack is complete.
pub(super) fn present(target: &Path, layout: &Layout, entry: &FileEntry) -> bool {
    layout.find(&entry.name).is_some_and(|(pack, _)| {
        fs::metadata(target.join(&pack.name))
            .is_ok_and(|metadata| metadata.is_file() && metadata.len() == pack.bytes)
    })
}

/// A number above those of all local packs in the folder, including packs that no layout names.
pub(super) fn next_pack_number(target: &Path) -> Result<u32, FetchError> {
    let mut next = 0;
    for entry in fs::read_dir(target).at(target)? {
        let number = entry.at(target)?.file_name().to_str().and_then(local_pack_number);
        next = next.max(number.map_or(0, |number| number.saturating_add(1)));
    }
    Ok(next)
}
