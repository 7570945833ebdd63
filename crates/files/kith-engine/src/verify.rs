//! Verification of a version's folder, for a scrubber or an operator.

use crate::errors::{Damage, Fault, OpenError};
use crate::files::MANIFEST_NAME;
use crate::manifest::FileEntry;
use crate::pack::{LAYOUT_NAME, Layout, VersionFolder};
use crate::patch::PATCH_NAME;
use crate::proof::{OnVerify, VerifyFault, prove_slowly};
use crate::sealed::{BlockTable, HEADER_BYTES, Header};
use kith_types::PartitionId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The names of files in a version's folder other than packs.
const FOLDER_NAMES: [&str; 3] = [MANIFEST_NAME, LAYOUT_NAME, PATCH_NAME];

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The number of files read, including the manifest.
    pub files: u64,
    /// The number of bytes read.
    pub bytes: u64,
    /// Every file that is damaged, missing, or not in the manifest.
    pub damages: Vec<Damage>,
    /// Whether [`OnVerify`] ended the verification. Later files were not checked then.
    pub is_cut: bool,
}

/// The depth of the check of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Checks the manifest, layout, sizes, and the header and trailer of each file, in milliseconds. Finds files that are
    /// missing, truncated, swapped or of another version.
    Quick,
    /// Checks every byte against block checksums and BLAKE3.
    Deep,
}

/// Calls [`verify_version`] with [`VerifyDepth::Deep`].
///
/// # Errors
/// Those of [`verify_version`].
pub fn verify_component(dir: &Path, partitions: Option<&[PartitionId]>) -> Result<VerifyReport, OpenError> {
    verify_version(dir, partitions, VerifyDepth::Deep)
}

/// Checks the folder of a built or fetched version against its manifest: the given partitions, or all. Files in the folder
/// that belong to nothing count as damage.
///
/// # Errors
/// If the manifest or layout is damaged. Nothing else can be checked then.
pub fn verify_version(
    dir: &Path,
    partitions: Option<&[PartitionId]>,
    depth: VerifyDepth,
) -> Result<VerifyReport, OpenError> {
    verify_slowly(dir, partitions, depth, &mut |_| ControlFlow::Continue(()))
}

/// Verifies a version like [`verify_version`], and calls `on_verify` for each piece, so that a scrubber can give way to reads.
/// Partitions may be added and removed meanwhile: files that were found damaged are checked again at the end, in the folder
/// as it is then.
///
/// # Errors
/// Those of [`verify_version`].
pub fn verify_slowly(
    dir: &Path,
    partitions: Option<&[PartitionId]>,
    depth: VerifyDepth,
    on_verify: &mut OnVerify<'_>,
) -> Result<VerifyReport, OpenError> {
    let mut report = verify_files(dir, partitions, None, depth, on_verify)?;
    if !report.damages.is_empty() && !report.is_cut {
        let again = verify_files(dir, partitions, Some(&report.damages), depth, on_verify)?;
        (report.damages, report.is_cut) = (again.damages, again.is_cut);
    }
    Ok(report)
}

/// Checks again the files that a verification found damaged, and returns those that still are. A layout that changed
/// meanwhile may have made them look damaged.
///
/// # Errors
/// Those of [`verify_version`].
pub fn verify_again(
    dir: &Path,
    partitions: Option<&[PartitionId]>,
    damages: &[Damage],
) -> Result<VerifyReport, OpenError> {
    let on_verify: &mut OnVerify<'_> = &mut |_| ControlFlow::Continue(());
    verify_files(dir, partitions, Some(damages), VerifyDepth::Deep, on_verify)
}

/// Checks the files of the partitions, or only those among them that `suspects` names. Then checks for other files in the
/// folder.
fn verify_files(
    dir: &Path,
    partitions: Option<&[PartitionId]>,
    suspects: Option<&[Damage]>,
    depth: VerifyDepth,
    on_verify: &mut OnVerify<'_>,
) -> Result<VerifyReport, OpenError> {
    let folder = VersionFolder::open(dir)?;
    let manifest = folder.manifest();
    let layout = Layout::read(dir, manifest)?;
    let mut report = VerifyReport { files: 1, ..VerifyReport::default() };
    let all: Vec<_> = manifest.partition_count.iter().collect();
    let suspects: Option<BTreeSet<&str>> =
        suspects.map(|damages| damages.iter().map(|damage| damage.file.as_str()).collect());
    let is_suspect =
        |entry: &&FileEntry| suspects.as_ref().is_none_or(|names| names.contains(entry.name.as_str()));
    for entry in manifest.files_of(partitions.unwrap_or(&all)).filter(is_suspect) {
        report.files += 1;
        let Some((pack, position)) = layout.find(&entry.name) else {
            report.damages.push(Damage { file: entry.name.clone(), fault: Fault::Missing });
            continue;
        };
        let path = dir.join(&pack.name);
        let checked = match depth {
            VerifyDepth::Deep => prove_slowly(&path, position.offset, entry, on_verify),
            VerifyDepth::Quick => frame_at(&path, position.offset, entry).map(Some),
        };
        match checked {
            Ok(Some(bytes)) => report.bytes += bytes,
            Ok(None) => {
                report.is_cut = true;
                return Ok(report);
            }
            Err(VerifyFault::Damaged(damage)) => report.damages.push(damage),
            Err(VerifyFault::Io(source)) => return Err(OpenError::Io { path, source }),
        }
    }
    report.damages.extend(strange(dir, &layout)?);
    Ok(report)
}

/// Reads the header, checksum table and trailer of one logical file and checks them. Returns the number of bytes read.
fn frame_at(path: &Path, offset: u64, entry: &FileEntry) -> Result<u64, VerifyFault> {
    let damage = |fault| VerifyFault::Damaged(Damage { file: entry.name.clone(), fault });
    let id = entry.id().ok_or_else(|| damage(Fault::Unlisted))?;
    let impossible = || damage(Fault::Content { what: "file size", offset: 0 });
    let body_bytes = BlockTable::body_bytes_of(id, entry.bytes).ok_or_else(impossible)?;
    let file = File::open(path).map_err(|error| VerifyFault::of(error, entry))?;
    let found = file.metadata().map_err(VerifyFault::Io)?.len().saturating_sub(offset);
    if found < entry.bytes {
        return Err(damage(Fault::Size { expected: entry.bytes, got: found }));
    }
    let read = |from: u64, bytes: u64| {
        let mut buffer = vec![0; bytes as usize];
        let read = file.read_exact_at(&mut buffer, offset + from);
        read.map(|()| buffer).map_err(|error| VerifyFault::of(error, entry))
    };
    let header = read(0, HEADER_BYTES as u64)?;
    Header::read(&header, id).map_err(damage)?;
    BlockTable::read(id, entry, read(body_bytes, entry.bytes - body_bytes)?).map_err(damage)?;
    Ok(HEADER_BYTES as u64 + entry.bytes - body_bytes)
}

/// Finds files in the folder that belong to nothing, and packs of the wrong size.
fn strange(dir: &Path, layout: &Layout) -> Result<Vec<Damage>, OpenError> {
    let packs: BTreeMap<&str, u64> =
        layout.packs.iter().map(|pack| (pack.name.as_str(), pack.bytes)).collect();
    let found = fs::read_dir(dir).and_then(|entries| {
        let found = entries.map(|entry| {
            let entry = entry?;
            Ok((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len()))
        });
        found.collect::<io::Result<Vec<_>>>()
    });
    let found = found.map_err(|source| OpenError::Io { path: dir.to_owned(), source })?;
    let damages = found.into_iter().filter_map(|(file, got)| match packs.get(file.as_str()) {
        Some(&expected) if expected == got => None,
        Some(&expected) => Some(Damage { file, fault: Fault::Size { expected, got } }),
        None if FOLDER_NAMES.contains(&file.as_str()) => None,
        None => Some(Damage { file, fault: Fault::Unlisted }),
    });
    Ok(damages.collect())
}
