//! Changes to a version that is here: files pulled anew, partitions given away.

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

/// Pulls the named logical files of a version anew, proven, and puts them in the place of what is there, in one
/// step. Readers that are open keep what they have; open the version again to read the new files. The space of the old
/// ones is freed when nothing else lies in their pack.
///
/// # Errors
/// If the source does not hold this version, or cannot be read; nothing has changed then.
pub fn repair(
    dir: &Path,
    source: &dyn Source,
    files: &[FileId],
    progress: &mut OnFetch<'_>,
) -> Result<(), FetchError> {
    let manifest = Manifest::read(dir)?;
    read_manifest(source, Some(&manifest.hash()))?;
    // A layout that is damaged says nothing of what is here.
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

/// Gives away every partition but `keep`: their files are no longer found, and packs that hold nothing else
/// are removed. Gives the bytes freed. Readers that are open are not disturbed.
///
/// # Errors
/// If the folder cannot be read or written; the layout is then the old one or the new one.
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
