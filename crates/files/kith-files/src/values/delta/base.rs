//! Determines which files the new version takes over from its base, and which it does not.

use super::super::ValuesBuildError;
use crate::BuildError;
use kith_engine::writing::{Piece, pack_name, prove_at, write_packs};
use kith_engine::{FileEntry, FileKind, Manifest, ValueCounts, VersionFolder};
use kith_types::PartitionId;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The totals of the new version: those of the base, without the rows that were read from changed partitions, plus those
/// that were written.
pub(super) fn counts(base: &VersionFolder, written: &ValueCounts, removed: &ValueCounts) -> ValueCounts {
    let before = base.manifest().values().map(|values| values.counts).unwrap_or_default();
    let change = |before: u64, removed: u64, written: u64| before.saturating_sub(removed) + written;
    ValueCounts {
        records: change(before.records, removed.records, written.records),
        key_bytes: change(before.key_bytes, removed.key_bytes, written.key_bytes),
        value_bytes: change(before.value_bytes, removed.value_bytes, written.value_bytes),
    }
}

/// The files of the base that stay unchanged: those of partitions without a change, and the dictionary.
pub(super) fn kept_files(base: &VersionFolder, touched: &BTreeSet<PartitionId>) -> Vec<FileEntry> {
    let is_kept = |entry: &&FileEntry| {
        entry.id().is_some_and(|id| id.kind == FileKind::Dictionary || !touched.contains(&id.partition))
    };
    base.manifest().files.iter().filter(is_kept).cloned().collect()
}

/// The size of the files of some partitions that are not in the base, in bytes.
pub(super) fn changed_bytes(base: &Manifest, new: &Manifest, of: &dyn Fn(PartitionId) -> bool) -> u64 {
    let held: BTreeSet<(&str, u64)> =
        base.files.iter().map(|entry| (entry.blake3.as_str(), entry.bytes)).collect();
    let changed = new.files.iter().filter(|entry| {
        !held.contains(&(entry.blake3.as_str(), entry.bytes)) && entry.id().is_some_and(|id| of(id.partition))
    });
    changed.map(|entry| entry.bytes).sum()
}

/// Links packs of the base that hold exactly the files of a new pack, at the same places. Returns the numbers of the new
/// packs.
fn link_packs(base: &VersionFolder, new: &Manifest, dir: &Path) -> Result<BTreeSet<u32>, ValuesBuildError> {
    let common = new.packs_in_common(base.manifest());
    let mut linked = BTreeSet::new();
    for files in new.files.chunk_by(|a, b| a.pack == b.pack) {
        let Some(pack) = common.get(&files[0].pack) else { continue };
        let (from, to) = (base.dir().join(pack_name(*pack)), dir.join(pack_name(files[0].pack)));
        // If linking fails, because of another file system or a fetched folder, the files are copied one by one.
        if fs::hard_link(&from, &to).is_ok() {
            let fault = files.iter().find_map(|file| prove_at(&to, file.offset, file).err());
            if let Some(fault) = fault {
                return Err(fault.into_open_error(&from).into());
            }
            linked.insert(files[0].pack);
        }
    }
    Ok(linked)
}

/// Lays the files of the new version out in packs: those in `dir`, and the unchanged ones of the base. Packs that are equal
/// to the base's are linked.
pub(super) fn lay_out(base: &VersionFolder, manifest: &Manifest, dir: &Path) -> Result<(), ValuesBuildError> {
    let linked = link_packs(base, manifest, dir)?;
    write_packs(dir, manifest, &|pack| linked.contains(&pack), &mut |entry| {
        let loose = dir.join(&entry.name);
        match entry.id().and_then(|id| base.place_of(id)) {
            Some((path, offset)) if !loose.exists() => Piece::Copy { path, offset },
            _ => Piece::Loose(loose),
        }
    })?;
    // These partitions have changes without effect, so the base's pack is the same.
    for entry in manifest.files.iter().filter(|entry| linked.contains(&entry.pack)) {
        let loose = dir.join(&entry.name);
        if loose.exists() {
            fs::remove_file(&loose).map_err(BuildError::folder("remove", &loose))?;
        }
    }
    Ok(())
}
