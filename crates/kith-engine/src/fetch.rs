//! Fetching: a replica pulls the partitions that it hosts (Voldemort §5.4).
//!
//! Every byte is verified while it is copied. Files gather in a hidden folder beside
//! the target, reach the disk, and appear under their final name in one rename:
//! what is half fetched cannot be opened. Voldemort wrote into the version's own
//! folder, so that a failed fetch blocked its version, and never synced.

mod copy;
mod error;

use crate::files::{FileId, MANIFEST_NAME};
use crate::manifest::{FileEntry, Manifest};
use crate::verify::verify_file;
use copy::{copy_verified, sync_files, sync_folder};
pub use error::FetchError;
use error::IoContext;
use kith_types::PartitionId;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// How far a fetch is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchProgress {
    /// Files that are in place, those that were there before included.
    pub files_done: u64,
    /// Files wanted.
    pub files: u64,
    /// Bytes that are in place or copied.
    pub bytes_done: u64,
    /// Bytes wanted.
    pub bytes: u64,
    /// Bytes read from the source so far.
    pub bytes_copied: u64,
}

/// Copies the given partitions of the component version in `source` to the folder `target`, which appears whole or
/// not at all. What is there already is kept; files of an earlier attempt are used again once they are verified.
/// `progress` is called after each piece; it may wait, to throttle, or `Break`, to cancel.
///
/// # Errors
/// See [`FetchError`]. After an error `target` is as before, and the fetch can be run again.
pub fn fetch_component(
    source: &Path,
    target: &Path,
    partitions: &[PartitionId],
    progress: &mut dyn FnMut(&FetchProgress) -> ControlFlow<()>,
) -> Result<Manifest, FetchError> {
    let manifest = Manifest::read(source)?;
    let wanted = wanted_files(&manifest, partitions)?;
    let exists = same_version(&manifest, target)?;
    let missing: Vec<&FileEntry> = wanted
        .iter()
        .copied()
        .filter(|entry| !(exists && has_size(&target.join(&entry.name), entry)))
        .collect();
    let mut fetch =
        Fetch { source, staging: staging_folder(target)?, progress, state: FetchProgress::default() };
    fetch.state.files = wanted.len() as u64;
    fetch.state.bytes = wanted.iter().map(|entry| entry.bytes).sum();
    fetch.state.files_done = (wanted.len() - missing.len()) as u64;
    fetch.state.bytes_done = fetch.state.bytes - missing.iter().map(|entry| entry.bytes).sum::<u64>();
    if exists && missing.is_empty() {
        fetch.report()?;
        return Ok(manifest);
    }
    let lock = fetch.prepare(&missing)?;
    fetch.gather(&missing)?;
    if exists { fetch.merge(&missing, target) } else { fetch.publish(&manifest, target) }?;
    drop(lock);
    Ok(manifest)
}

/// A fetch on its way.
struct Fetch<'a> {
    source: &'a Path,
    staging: PathBuf,
    progress: &'a mut dyn FnMut(&FetchProgress) -> ControlFlow<()>,
    state: FetchProgress,
}

impl Fetch<'_> {
    /// Makes the hidden folder, keeps others out, and drops what does not belong there. The lock holds until dropped.
    fn prepare(&self, missing: &[&FileEntry]) -> Result<File, FetchError> {
        fs::create_dir_all(&self.staging).at(&self.staging)?;
        let lock = File::open(&self.staging).at(&self.staging)?;
        lock.try_lock().map_err(|_| FetchError::Busy { path: self.staging.clone() })?;
        let names: BTreeSet<&str> = missing.iter().map(|entry| entry.name.as_str()).collect();
        for entry in fs::read_dir(&self.staging).at(&self.staging)? {
            let entry = entry.at(&self.staging)?;
            if !entry.file_name().to_str().is_some_and(|name| names.contains(name)) {
                fs::remove_file(entry.path()).at(&entry.path())?;
            }
        }
        Ok(lock)
    }

    /// Brings every file into the hidden folder, verified and on the disk.
    fn gather(&mut self, missing: &[&FileEntry]) -> Result<(), FetchError> {
        let mut absent = Vec::new();
        for &entry in missing {
            let path = self.staging.join(&entry.name);
            if has_size(&path, entry) && verify_file(&path, entry).is_ok() {
                self.state.files_done += 1;
                self.state.bytes_done += entry.bytes;
                self.report()?;
            } else {
                absent.push(entry);
            }
        }
        self.check_space(&absent)?;
        for entry in absent {
            let (source, target) = (self.source.join(&entry.name), self.staging.join(&entry.name));
            copy_verified(&source, &target, entry, &mut |bytes| {
                self.state.bytes_done += bytes;
                self.state.bytes_copied += bytes;
                self.report()
            })?;
            self.state.files_done += 1;
            self.report()?;
        }
        let paths: Vec<PathBuf> = missing.iter().map(|entry| self.staging.join(&entry.name)).collect();
        sync_files(&paths)
    }

    fn check_space(&self, absent: &[&FileEntry]) -> Result<(), FetchError> {
        let needed = absent.iter().map(|entry| entry.bytes).sum();
        let disk = rustix::fs::statvfs(&self.staging).map_err(std::io::Error::from).at(&self.staging)?;
        let available = disk.f_bavail.saturating_mul(disk.f_frsize);
        if available < needed {
            return Err(FetchError::NoSpace { path: self.staging.clone(), needed, available });
        }
        Ok(())
    }

    /// Turns the hidden folder into the target.
    fn publish(&self, manifest: &Manifest, target: &Path) -> Result<(), FetchError> {
        let path = self.staging.join(MANIFEST_NAME);
        fs::write(&path, manifest.encode()).at(&path)?;
        File::open(&path).and_then(|file| file.sync_all()).at(&path)?;
        sync_folder(&self.staging)?;
        fs::rename(&self.staging, target).at(target)?;
        sync_folder(parent(target))
    }

    /// Adds the files to a target that holds other partitions of the same version.
    fn merge(&self, missing: &[&FileEntry], target: &Path) -> Result<(), FetchError> {
        for entry in missing {
            let path = target.join(&entry.name);
            fs::rename(self.staging.join(&entry.name), &path).at(&path)?;
        }
        sync_folder(target)?;
        fs::remove_dir(&self.staging).at(&self.staging)
    }

    fn report(&mut self) -> Result<(), FetchError> {
        match (self.progress)(&self.state) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(FetchError::Cancelled),
        }
    }
}

/// The files of the partitions; each must be a partition of the component.
fn wanted_files<'a>(
    manifest: &'a Manifest,
    partitions: &'a [PartitionId],
) -> Result<Vec<&'a FileEntry>, FetchError> {
    for &partition in partitions {
        manifest.entry(FileId::members(partition))?;
    }
    Ok(manifest.files_of(partitions).collect())
}

/// Whether the target holds this version already.
fn same_version(manifest: &Manifest, target: &Path) -> Result<bool, FetchError> {
    if !target.join(MANIFEST_NAME).exists() {
        // An empty folder may be replaced by a rename, anything else may not.
        return match fs::read_dir(target).map(Iterator::count) {
            Ok(1..) => Err(FetchError::Occupied { path: target.to_owned() }),
            Ok(0) | Err(_) => Ok(false),
        };
    }
    if Manifest::read(target)? == *manifest {
        return Ok(true);
    }
    Err(FetchError::Occupied { path: target.to_owned() })
}

fn has_size(path: &Path, entry: &FileEntry) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == entry.bytes)
}

/// The hidden folder beside the target: on the same disk, or a rename could not be atomic.
fn staging_folder(target: &Path) -> Result<PathBuf, FetchError> {
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else {
        return Err(FetchError::Occupied { path: target.to_owned() });
    };
    Ok(target.with_file_name(format!(".{name}.fetching")))
}

fn parent(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
