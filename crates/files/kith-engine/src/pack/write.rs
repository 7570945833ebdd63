//! Writes packs from logical files: newly written ones, and those of other folders.

use super::pack_name;
use crate::errors::{Damage, Fault, WriteError};
use crate::manifest::{FileEntry, Manifest};
use crate::proof::{CHUNK_BYTES, Proof};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;

/// The number of packs that are synced concurrently. The threads wait for the disk and use no processor, and a
/// journaling file system commits all packs that wait together.
const SYNC_THREADS: usize = 16;

/// The source of the bytes of a logical file.
pub enum Piece {
    /// A separate file, as its writer left it. It is consumed.
    Loose(PathBuf),
    /// A part of a file that stays. It is verified as it is copied.
    Copy {
        /// The path of the file.
        path: PathBuf,
        /// The offset at which the logical file begins in it.
        offset: u64,
    },
}

/// Writes the packs of a manifest into `dir` and syncs them, except packs for which `pack_exists` returns true. The first
/// loose file of a pack *becomes* the pack, so that the largest file, the data, is not copied.
pub fn write_packs(
    dir: &Path,
    manifest: &Manifest,
    pack_exists: &dyn Fn(u32) -> bool,
    piece: &mut dyn FnMut(&FileEntry) -> Piece,
) -> Result<(), WriteError> {
    let mut written = Vec::new();
    for files in manifest.files.chunk_by(|a, b| a.pack == b.pack) {
        let number = files[0].pack;
        if !pack_exists(number) {
            let path = dir.join(pack_name(number));
            write_pack(&path, files, piece)?;
            written.push(path);
        }
    }
    sync(&written)
}

/// Makes a version from the logical files in `dir`, as their writers left them: joins them into packs, syncs these, and
/// writes the manifest.
///
/// # Errors
/// If a file is missing, or cannot be written.
pub fn seal_version(dir: &Path, manifest: &Manifest) -> Result<(), WriteError> {
    write_packs(dir, manifest, &|_| false, &mut |entry| Piece::Loose(dir.join(&entry.name)))?;
    manifest.write(dir)
}

fn write_pack(
    path: &Path,
    files: &[FileEntry],
    piece: &mut dyn FnMut(&FileEntry) -> Piece,
) -> Result<(), WriteError> {
    let failed = |source| WriteError::Io { path: path.to_owned(), source };
    let mut pack: Option<File> = None;
    for entry in files {
        match (piece(entry), &mut pack) {
            (Piece::Loose(loose), None) => {
                fs::rename(&loose, path).map_err(failed)?;
                pack = Some(OpenOptions::new().write(true).open(path).map_err(failed)?);
            }
            (Piece::Loose(loose), Some(pack)) => {
                let mut from = File::open(&loose).map_err(failed)?;
                pack.seek(SeekFrom::Start(entry.offset)).map_err(failed)?;
                let copied = io::copy(&mut from, pack).map_err(failed)?;
                debug_assert_eq!(copied, entry.bytes, "writers state the size that they wrote");
                fs::remove_file(&loose).map_err(failed)?;
            }
            (Piece::Copy { path: from, offset }, pack) => {
                let pack = match pack {
                    Some(pack) => pack,
                    None => pack.insert(File::create_new(path).map_err(failed)?),
                };
                pack.seek(SeekFrom::Start(entry.offset)).map_err(failed)?;
                copy_proven(&from, offset, entry, pack, path)?;
            }
        }
    }
    Ok(())
}

/// Copies a logical file and verifies it on the way.
fn copy_proven(
    from: &Path,
    offset: u64,
    entry: &FileEntry,
    to: &mut File,
    to_path: &Path,
) -> Result<(), WriteError> {
    let damage = |fault| WriteError::from(Damage { file: entry.name.clone(), fault });
    let failed = |source| WriteError::Io { path: from.to_owned(), source };
    let mut file = match File::open(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damage(Fault::Missing)),
        file => file.map_err(failed)?,
    };
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut proof = Proof::new(entry)?;
    let mut buffer = vec![0; CHUNK_BYTES.min(entry.bytes as usize).max(1)];
    let mut left = entry.bytes;
    while left > 0 {
        let want = buffer.len().min(left as usize);
        let count = file.read(&mut buffer[..want]).map_err(failed)?;
        if count == 0 {
            break;
        }
        proof.push(&buffer[..count]);
        to.write_all(&buffer[..count])
            .map_err(|source| WriteError::Io { path: to_path.to_owned(), source })?;
        left -= count as u64;
    }
    Ok(proof.finish()?)
}

/// Syncs files to the disk.
pub fn sync(paths: &[PathBuf]) -> Result<(), WriteError> {
    let share = paths.len().div_ceil(SYNC_THREADS).max(1);
    let sync = |path: &PathBuf| {
        let synced = File::open(path).and_then(|file| file.sync_all());
        synced.map_err(|source| WriteError::Io { path: path.clone(), source })
    };
    thread::scope(|scope| {
        let waiting: Vec<_> =
            paths.chunks(share).map(|paths| scope.spawn(move || paths.iter().try_for_each(sync))).collect();
        waiting.into_iter().try_for_each(|thread| thread.join().expect("syncing does not panic"))
    })
}
