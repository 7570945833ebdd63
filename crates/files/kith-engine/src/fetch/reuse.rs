//! Takes files from other versions on the same disk, so that a version with few changes moves few bytes.

use super::FetchError;
use super::plan::{Plan, WantedFile};
use super::staging::Staging;
use crate::manifest::{FileEntry, Manifest};
use crate::pack::{Layout, PackPlace};
use crate::proof::{CHUNK_BYTES, Proof, prove_at};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The files of other versions, by content.
pub(super) struct HeldFiles {
    files: HashMap<(String, u64), HeldFile>,
}

struct HeldFile {
    entry: FileEntry,
    pack: PathBuf,
    pack_bytes: u64,
    position: PackPlace,
}

impl HeldFiles {
    /// Reads the other versions. One that cannot be read is skipped, because the source has its files too.
    pub(super) fn open(folders: &[PathBuf]) -> Self {
        let mut files = HashMap::new();
        for dir in folders {
            let Ok(manifest) = Manifest::read(dir) else { continue };
            let Ok(layout) = Layout::read(dir, &manifest) else { continue };
            for entry in manifest.files {
                if let Some((pack, position)) = layout.find(&entry.name) {
                    let (pack, pack_bytes) = (dir.join(&pack.name), pack.bytes);
                    let key = (entry.blake3.clone(), entry.bytes);
                    files.entry(key).or_insert(HeldFile { entry, pack, pack_bytes, position });
                }
            }
        }
        Self { files }
    }

    fn find(&self, entry: &FileEntry) -> Option<&HeldFile> {
        let held = self.files.get(&(entry.blake3.clone(), entry.bytes))?;
        // Headers name partition and kind, so equal bytes mean the same file. Comparing the trailer's checksum costs
        // nothing.
        held.entry.is_same_content(entry).then_some(held)
    }

    /// Stages the files that are held and removes them from `left`: whole packs as links, single files as copies. Every
    /// byte is verified.
    pub(super) fn take(
        &self,
        staging: &Staging<'_>,
        plan: &Plan,
        left: &mut Vec<WantedFile<'_>>,
        taken: &mut dyn FnMut(&WantedFile<'_>) -> Result<(), FetchError>,
    ) -> Result<(), FetchError> {
        if self.files.is_empty() {
            return Ok(());
        }
        for pack in &plan.packs {
            let files: Vec<WantedFile<'_>> =
                left.iter().filter(|file| file.pack == pack.name).cloned().collect();
            let linked = !staging.path(&pack.name).exists() && self.link(staging, &files, pack.bytes);
            for file in &files {
                if linked || self.copy(staging, file)? {
                    left.retain(|other| other.entry.name != file.entry.name);
                    taken(file)?;
                }
            }
        }
        Ok(())
    }

    /// Links a held pack that holds exactly these files at these places.
    fn link(&self, staging: &Staging<'_>, files: &[WantedFile<'_>], pack_bytes: u64) -> bool {
        let held: Option<Vec<&HeldFile>> = files.iter().map(|file| self.find(file.entry)).collect();
        let Some(held) = held.filter(|held| !held.is_empty()) else { return false };
        let same = held.iter().zip(files).all(|(held, file)| {
            held.pack == held_pack(&files[0], self) && held.position.offset == file.offset
        });
        if !same || held[0].pack_bytes != pack_bytes {
            return false;
        }
        let path = staging.path(&files[0].pack);
        if fs::hard_link(&held[0].pack, &path).is_err() {
            return false;
        }
        let whole = files.iter().all(|file| prove_at(&path, file.offset, file.entry).is_ok());
        // A damaged pack is pulled, into a file of its own.
        whole || fs::remove_file(&path).is_err()
    }

    /// Copies a held file. Returns `false` if it is not held completely.
    fn copy(&self, staging: &Staging<'_>, file: &WantedFile<'_>) -> Result<bool, FetchError> {
        let Some(held) = self.find(file.entry) else { return Ok(false) };
        let pack = staging.open_pack(&file.pack)?;
        Ok(copy_proven(&held.pack, held.position.offset, file, &pack).unwrap_or(false))
    }
}

fn held_pack<'a>(file: &WantedFile<'_>, held: &'a HeldFiles) -> &'a Path {
    held.find(file.entry).map_or(Path::new(""), |held| &held.pack)
}

/// Copies a file into its place. Returns `false` if it is not the wanted file.
pub(super) fn copy_proven(
    from: &Path,
    offset: u64,
    file: &WantedFile<'_>,
    to: &File,
) -> std::io::Result<bool> {
    let from = File::open(from)?;
    let Ok(mut proof) = Proof::new(file.entry) else { return Ok(false) };
    let mut buffer = vec![0; CHUNK_BYTES];
    for start in (0..file.entry.bytes).step_by(CHUNK_BYTES) {
        let piece = &mut buffer[..CHUNK_BYTES.min((file.entry.bytes - start) as usize)];
        from.read_exact_at(piece, offset + start)?;
        proof.push(piece);
        to.write_all_at(piece, file.offset + start)?;
    }
    Ok(proof.finish().is_ok())
}
