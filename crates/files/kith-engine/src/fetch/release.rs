//! Changes to a version that a node holds: repairs of files, and releases of partitions.

use super::staging::{Staging, replace_layout};
use super::{FetchError, OnFetch, gather, read_manifest};
use super::{FetchProgress, local, pull::Pull};
use crate::errors::OpenError;
use crate::files::{FileId, FileKind};
use crate::manifest::{FileEntry, Manifest};
use crate::pack::Layout;
use crate::source::Source;
use kith_types::PartitionId;
use std::collections::BTreeSet;
use std::path::Path;

/// Pulls the named logical files of a version again, verifies them, and replaces the present ones in one step. Open readers
/// keep the old files; open the version again to read the new ones. The space of the old files is freed when nothing else
/// lies in their pack.
///
/// # Errors
/// If the source does not hold this version, or cannot be read. Nothing has changed then.
pub fn repair(
    dir: &Path,
    source: &dyn Source,
    files: &[FileId],
    progress: &mut OnFetch<'_>,
) -> Result<(), FetchError> {
    let manifest = Manifest::read(dir)?;
    read_manifest(source, Some(&manifest.hash()))?;
    // A damaged layout does not tell what is here.
    let layout = Layout::read(dir, &manifest)?;
    let names: BTreeSet<String> = files.iter().map(FileId::to_string).collect();
    for id in files {
        manifest.entry(*id)?;
    }
    let wanted: Vec<&FileEntry> = manifest.files.iter().filter(|entry| names.contains(&entry.name)).collect();
    let state = FetchProgress {
        files: wanted.len() as u64,
        bytes: wanted.iter().map(|entry| entry.bytes).sum(),
        ..FetchProgress::default()
    };
    if wanted.is_empty() {
        return Ok(());
    }
    let mut pull = Pull { source, progress, state, threads: 1, resumes: false };
    gather(&manifest, dir, Some(layout), &wanted, &[], &mut pull)
}

/// Releases every partition except `keep`. Their files can no longer be found, and packs that hold nothing else are
/// removed. Returns the number of freed bytes. Open readers are not disturbed.
///
/// # Errors
/// If the folder cannot be read or written. The layout is then either the old one or the new one.
pub fn release_partitions(dir: &Path, keep: &[PartitionId]) -> Result<u64, FetchError> {
    let staging = Staging::open(dir)?;
    let manifest = Manifest::read(dir)?;
    let Some(mut layout) = local::local_layout(&manifest, dir)? else {
        return Err(OpenError::NoComponent { path: dir.to_owned() }.into());
    };
    let kept: BTreeSet<PartitionId> = keep.iter().copied().collect();
    layout.retain(|name| {
        FileId::parse(name).is_some_and(|id| id.kind == FileKind::Dictionary || kept.contains(&id.partition))
    });
    let freed = replace_layout(dir, &manifest, &layout)?;
    staging.discard()?;
    Ok(freed)
}
