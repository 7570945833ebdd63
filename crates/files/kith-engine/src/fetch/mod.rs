//! Fetching: a replica pulls the partitions that it hosts (Voldemort §5.4) from any [`Source`].
//!
//! Ranges of packs are pulled. The tail of a large file comes first, so that each of its blocks can be checked when it
//! arrives, and a fetch that was killed resumes at the block where it stopped. Data comes before indexes, so that the
//! indexes stay in the page cache. Files gather in a hidden folder next to the target, laid out in packs of the node's own.
//! They are synced and get their final name in one rename, so that a partial fetch cannot be opened. Voldemort wrote into
//! the folder of the version itself, so that a failed fetch blocked its version; it never synced, and began each file from
//! the start.

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
use plan::{Plan, WantedFile};
pub use prove::{OnPiece, PackReport, prove_pack};
use pull::Pull;
pub use release::{release_partitions, repair};
use reuse::HeldFiles;
pub use spliced::SplicedSource;
use staging::Staging;
pub use staging::staging_of;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The longest manifest that is read. It has room for more than a million files.
const MANIFEST_BYTES_MAX: u64 = 512 << 20;

/// The options of a fetch.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// The number of concurrent requests to the source, each by its own thread.
    pub threads: usize,
    /// The hash of the wanted version's manifest ([`Manifest::hash`]). Any other version is refused.
    pub manifest_hash: Option<String>,
    /// The most bytes that the version may take here, including those that are here already.
    pub quota_bytes: Option<u64>,
    /// Folders of other versions on this disk. Files with the same content are taken from there.
    pub held: Vec<PathBuf>,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self { threads: 1, manifest_hash: None, quota_bytes: None, held: Vec::new() }
    }
}

/// The progress of a fetch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchProgress {
    /// The number of logical files in place, including those that were there before.
    pub files_done: u64,
    /// The number of wanted logical files.
    pub files: u64,
    /// Bytes that are in place or copied.
    pub bytes_done: u64,
    /// The number of wanted bytes.
    pub bytes: u64,
    /// The number of bytes read from the source so far: those of wanted files, and of a patch.
    pub bytes_copied: u64,
    /// Bytes of wanted files that were taken from other versions on this disk, or derived from them.
    pub bytes_reused: u64,
}

/// The callback that gets the progress after each piece. It may wait, to throttle the fetch, or return `Break`, to
/// cancel it.
pub type OnFetch<'a> = dyn FnMut(&FetchProgress) -> ControlFlow<()> + 'a;

/// Calls [`fetch`] for a folder, with default options.
///
/// # Errors
/// Those of [`fetch`].
pub fn fetch_component(
    source: &Path,
    target: &Path,
    partitions: &[PartitionId],
    progress: &mut OnFetch<'_>,
) -> Result<Manifest, FetchError> {
    fetch(&FolderSource::new(source), target, partitions, &FetchOptions::default(), progress)
}

/// Copies the given partitions of the version in `source` to the folder `target`, which appears complete or not at all.
/// Files that are there already are kept. Files that an earlier attempt left are reused after they were checked.
///
/// # Errors
/// [`FetchError`]. After an error `target` is unchanged, and the fetch can be repeated.
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

/// Brings files into a hidden folder, and then into the target.
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
    let mut reused = |file: &WantedFile<'_>| pull.done(file.entry.bytes, file.entry.bytes);
    HeldFiles::open(held).take(&staging, &plan, &mut left, &mut reused)?;
    let space = staging.promise_space(left.iter().map(|file| file.entry.bytes).sum())?;
    rebuild::rebuild(manifest, held, &staging, &space, &mut left, pull)?;
    pull.run(&staging, &space, &left)?;
    staging.sync(&plan)?;
    match layout {
        None => staging.publish(manifest, &plan),
        Some(layout) => staging.merge(manifest, &plan, layout),
    }
}

/// Reads the manifest of the version in `source` and checks its seal. With `wanted`, its hash must match.
///
/// # Errors
/// If there is no manifest, it cannot be read, or it is another one.
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
        // Only long manifests, which are rare, cost a request for the size.
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

/// The files of the partitions, each of which must be a partition of the version.
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
