//! Fetching: a replica pulls the partitions that it hosts (Voldemort §5.4), from any [`Source`].
//!
//! Ranges of packs are pulled, the tail of a large file first, so that each of its blocks is proven as it arrives and
//! a fetch that was killed goes on at the block where it stopped; data before indexes, so that these stay in the
//! page cache. Files gather in a hidden folder beside the target, laid out in packs of the node's own, reach the disk, and
//! appear under their final name in one rename: what is half fetched cannot be opened. Voldemort wrote into the
//! version's own folder, so that a failed fetch blocked its version, never synced, and began each file anew.

mod error;
mod held;
mod local;
mod plan;
mod prove;
mod pull;
mod rebuild;
mod release;
mod reuse;
mod space;
mod spliced;
mod staging;
mod worker;

use crate::errors::{Damage, Fault, OpenError};
use crate::files::{FileId, FileKind, MANIFEST_NAME};
use crate::manifest::{Content, FileEntry, Manifest};
use crate::pack::Layout;
use crate::source::{FolderSource, Source};
pub use error::FetchError;
pub use held::HeldSource;
use kith_types::PartitionId;
use local::{local_layout, present};
use plan::{Plan, Wanted};
pub use prove::{OnPiece, PackReport, prove_pack};
use pull::Pull;
pub use release::{release_partitions, repair};
use reuse::Held;
pub use spliced::SplicedSource;
use staging::Staging;
pub use staging::staging_of;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The longest manifest that is read: more than a million files.
const MANIFEST_BYTES_MAX: u64 = 512 << 20;

/// How to fetch.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// Requests to the source under way at a time, each by a thread of its own.
    pub threads: usize,
    /// Only the version with this manifest ([`Manifest::hash`]) is wanted.
    pub manifest_hash: Option<String>,
    /// The most bytes that the version may take here, what is here already included.
    pub quota_bytes: Option<u64>,
    /// Folders of other versions on this disk: files with the same content are taken from there.
    pub held: Vec<PathBuf>,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self { threads: 1, manifest_hash: None, quota_bytes: None, held: Vec::new() }
    }
}

/// How far a fetch is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchProgress {
    /// Logical files that are in place, those that were there before included.
    pub files_done: u64,
    /// Logical files wanted.
    pub files: u64,
    /// Bytes that are in place or copied.
    pub bytes_done: u64,
    /// Bytes wanted.
    pub bytes: u64,
    /// Bytes read from the source so far: of wanted files, and of a patch.
    pub bytes_copied: u64,
    /// Bytes of wanted files that were taken from other versions on this disk, or made of them.
    pub bytes_reused: u64,
}

/// Told of each piece. It may wait, to throttle, or `Break`, to cancel.
pub type OnFetch<'a> = dyn FnMut(&FetchProgress) -> ControlFlow<()> + 'a;

/// [`fetch`] from a folder, with nothing special.
///
/// # Errors
/// As [`fetch`].
pub fn fetch_component(
    source: &Path,
    target: &Path,
    partitions: &[PartitionId],
    progress: &mut OnFetch<'_>,
) -> Result<Manifest, FetchError> {
    fetch(&FolderSource::new(source), target, partitions, &FetchOptions::default(), progress)
}

/// Copies the given partitions of the version in `source` to the folder `target`, which appears whole or
/// not at all. What is there already is kept; what an earlier attempt left is used again once it is proven.
///
/// # Errors
/// See [`FetchError`]. After an error `target` is as before, and the fetch can be run again.
pub fn fetch(
    source: &dyn Source,
    target: &Path,
    partitions: &[PartitionId],
    options: &FetchOptions,
    progress: &mut OnFetch<'_>,
) -> Result<Manifest, FetchError> {
    let manifest = read_manifest(source, options.manifest_hash.as_deref())?;
    let wanted = wanted_files(&manifest, partitions)?;
    let layout = local_layout(&manifest, target)?;
    let is_present = |entry: &FileEntry| layout.as_ref().is_some_and(|layout| present(target, layout, entry));
    let missing: Vec<&FileEntry> = wanted.iter().copied().filter(|entry| !is_present(entry)).collect();
    let bytes = |entries: &[&FileEntry]| entries.iter().map(|entry| entry.bytes).sum::<u64>();
    let state = FetchProgress {
        files: wanted.len() as u64,
        files_done: (wanted.len() - missing.len()) as u64,
        bytes: bytes(&wanted),
        bytes_done: bytes(&wanted) - bytes(&missing),
        ..FetchProgress::default()
    };
    if let Some(allowed) = options.quota_bytes.filter(|&allowed| allowed < state.bytes) {
        return Err(FetchError::Quota { needed: state.bytes, allowed });
    }
    let mut pull = Pull { source, progress, state, threads: options.threads, resumes: false };
    if layout.is_some() && missing.is_empty() {
        pull.report()?;
        return Ok(manifest);
    }
    gather(&manifest, target, layout, &missing, &options.held, &mut pull)?;
    Ok(manifest)
}

/// Brings files into a hidden folder, then into the target.
fn gather(
    manifest: &Manifest,
    target: &Path,
    layout: Option<Layout>,
    missing: &[&FileEntry],
    held: &[PathBuf],
    pull: &mut Pull<'_, '_>,
) -> Result<(), FetchError> {
    let staging = Staging::open(target)?;
    let first_pack = layout.as_ref().map_or(Ok(0), |_| local::next_pack_number(target))?;
    let plan = Plan::new(missing, first_pack);
    pull.resumes = staging.prepare(&plan, manifest)?;
    let mut left = plan.files(missing);
    staging.keep_whole(&mut left, &mut |file| pull.done(file.entry.bytes, 0))?;
    let mut reused = |file: &Wanted<'_>| pull.done(file.entry.bytes, file.entry.bytes);
    Held::open(held).take(&staging, &plan, &mut left, &mut reused)?;
    let space = staging.promise_space(left.iter().map(|file| file.entry.bytes).sum())?;
    rebuild::rebuild(manifest, held, &staging, &space, &mut left, pull)?;
    pull.run(&staging, &space, &left)?;
    staging.sync(&plan)?;
    match layout {
        None => staging.publish(manifest, &plan),
        Some(layout) => staging.merge(manifest, &plan, layout),
    }
}

/// Reads and proves the manifest of the version in `source`; with `wanted`, only if it is the one of this hash.
///
/// # Errors
/// If there is none, it cannot be read, or it is another one.
pub fn read_manifest(source: &dyn Source, wanted: Option<&str>) -> Result<Manifest, FetchError> {
    let mut bytes = Vec::new();
    let mut piece = 1 << 20;
    loop {
        let start = bytes.len();
        bytes.resize(start + piece, 0);
        let count = source.read(MANIFEST_NAME, start as u64, &mut bytes[start..])?;
        bytes.truncate(start + count);
        if count < piece {
            break;
        }
        // Long ones are rare: they alone cost a question.
        let known = if start == 0 { source.object_bytes(MANIFEST_NAME)? } else { None };
        let size = known.unwrap_or_default().max(bytes.len() as u64);
        if MANIFEST_BYTES_MAX < size {
            let fault = Fault::Content { what: "size", offset: size };
            return Err(Damage { file: MANIFEST_NAME.to_owned(), fault }.into());
        }
        piece = bytes.len();
    }
    let manifest = Manifest::decode(&bytes)?;
    let got = manifest.hash();
    match wanted {
        Some(expected) if expected != got => {
            let (path, expected) = (MANIFEST_NAME.into(), expected.to_owned());
            Err(OpenError::OtherVersion { path, expected, got }.into())
        }
        _ => Ok(manifest),
    }
}

/// The files of the partitions; each must be a partition of the version.
fn wanted_files<'a>(
    manifest: &'a Manifest,
    partitions: &[PartitionId],
) -> Result<Vec<&'a FileEntry>, FetchError> {
    for &partition in partitions {
        manifest.entry(match &manifest.content {
            Content::Graph(_) => FileId::members(partition),
            Content::Values(_) => FileId { partition, list: None, kind: FileKind::Data, set: 0 },
        })?;
    }
    let wanted: BTreeSet<&str> = manifest.files_of(partitions).map(|entry| entry.name.as_str()).collect();
    Ok(manifest.files.iter().filter(|entry| wanted.contains(entry.name.as_str())).collect())
}
