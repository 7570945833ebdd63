//! Copies one file, proving it on the way.

use super::error::{FetchError, IoContext};
use crate::errors::{Damage, Fault};
use crate::manifest::FileEntry;
use crate::verify::{CHUNK_BYTES, Proof};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Copies a file and verifies it as it passes. A damaged copy is removed.
/// `copied` is told of each piece.
pub(super) fn copy_verified(
    source: &Path,
    target: &Path,
    entry: &FileEntry,
    copied: &mut dyn FnMut(u64) -> Result<(), FetchError>,
) -> Result<(), FetchError> {
    let mut from = match File::open(source) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Damage { file: entry.name.clone(), fault: Fault::Missing }.into());
        }
        Err(error) => return Err(error).at(source),
    };
    let got = from.metadata().at(source)?.len();
    if got != entry.bytes {
        return Err(
            Damage { file: entry.name.clone(), fault: Fault::Size { expected: entry.bytes, got } }.into()
        );
    }
    let mut to = File::create(target).at(target)?;
    let mut proof = Proof::new(entry)?;
    let mut buffer = vec![0; CHUNK_BYTES.min(entry.bytes as usize).max(1)];
    // Never more than stated: a source that grows meanwhile cannot fill the disk.
    let mut left = entry.bytes;
    while left > 0 {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count.min(usize::try_from(left).unwrap_or(usize::MAX)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).at(source),
        };
        proof.push(&buffer[..count]);
        to.write_all(&buffer[..count]).at(target)?;
        left -= count as u64;
        copied(count as u64)?;
    }
    if let Err(damage) = proof.finish() {
        fs::remove_file(target).at(target)?;
        return Err(damage.into());
    }
    Ok(())
}

/// Files synced at a time: they wait for the disk, not for a processor, and a journaling file system commits all that
/// wait together.
const SYNC_THREADS: usize = 16;

/// Waits until the files are on the disk.
pub(super) fn sync_files(paths: &[PathBuf]) -> Result<(), FetchError> {
    let share = paths.len().div_ceil(SYNC_THREADS).max(1);
    let sync = |path: &PathBuf| File::open(path).and_then(|file| file.sync_all()).at(path);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            paths.chunks(share).map(|paths| scope.spawn(move || paths.iter().try_for_each(sync))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("syncing does not panic"))
    })
}

/// Waits until the names in a folder are on the disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), FetchError> {
    File::open(folder).and_then(|folder| folder.sync_all()).at(folder)
}
