//! Proof of whole files: while they are fetched, and later by a scrubber.

use crate::errors::{Damage, Fault, OpenError};
use crate::fetch::FOLDER_NAMES;
use crate::files::FileId;
use crate::manifest::FileEntry;
use crate::pack::{Layout, VersionFolder};
use crate::sealed::{BlockTable, FileSeal, HEADER_BYTES, Header};
use kith_types::PartitionId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes read at a time: large enough for BLAKE3 to use wide vectors, small enough to stay in cache.
pub const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes read, proven or hashed before the processor is given away: some 50 us, which is little beside what a read takes.
pub const TURN_BYTES: usize = 64 * 1024;

/// Lets threads that wait for this processor have it, between two turns of long work. A low priority alone does not: who runs keeps
/// the processor for its slice, some milliseconds, whoever wakes up meanwhile.
pub fn give_way() {
    std::thread::yield_now();
}

/// What a verification read, and what does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Files read, the manifest included.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Every file that is damaged, missing, or not in the manifest.
    pub damages: Vec<Damage>,
    /// [`OnVerify`] ended it: files after that were not looked at.
    pub is_cut: bool,
}

/// Told of the bytes of each piece. It may wait, to throttle, or `Break`, to end the verification.
pub type OnVerify<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// How much of a version to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Manifest, layout, sizes, and header and trailer of each file: milliseconds. Finds what is missing, cut,
    /// swapped or of another version.
    Quick,
    /// Every byte, against block checksums and BLAKE3.
    Deep,
}

/// [`verify_version`] in full depth.
///
/// # Errors
/// As [`verify_version`].
pub fn verify_component(dir: &Path, partitions: Option<&[PartitionId]>) -> Result<VerifyReport, OpenError> {
    verify_version(dir, partitions, VerifyDepth::Deep)
}

/// Checks a version's folder, built or fetched, against its manifest: the given partitions, or all. Files in the
/// folder that belong to nothing count as damage.
///
/// # Errors
/// If manifest or layout cannot be trusted: then nothing else can be checked.
pub fn verify_version(
    dir: &Path,
    partitions: Option<&[PartitionId]>,
    depth: VerifyDepth,
) -> Result<VerifyReport, OpenError> {
    verify_slowly(dir, partitions, depth, &mut |_| ControlFlow::Continue(()))
}

/// As [`verify_version`], telling of each piece read: for a scrubber, which must not be in the way of reads. Partitions may come
/// and go meanwhile: what was found is looked at again, in the folder as it is at the end.
///
/// # Errors
/// As [`verify_version`].
pub fn verify_slowly(
    dir: &Path,
    partitions: Option<&[PartitionId]>,
    depth: VerifyDepth,
    told: &mut OnVerify<'_>,
) -> Result<VerifyReport, OpenError> {
    let mut report = verify_files(dir, partitions, None, depth, told)?;
    if !report.damages.is_empty() && !report.is_cut {
        let again = verify_files(dir, partitions, Some(&report.damages), depth, told)?;
        (report.damages, report.is_cut) = (again.damages, again.is_cut);
    }
    Ok(report)
}

/// Of what a verification found, what is damaged still: a layout that has changed since may have made it look so.
///
/// # Errors
/// As [`verify_version`].
pub fn verify_again(
    dir: &Path,
    partitions: Option<&[PartitionId]>,
    damages: &[Damage],
) -> Result<VerifyReport, OpenError> {
    let told: &mut OnVerify<'_> = &mut |_| ControlFlow::Continue(());
    verify_files(dir, partitions, Some(damages), VerifyDepth::Deep, told)
}

/// Checks the files of the partitions, of these only those that `suspects` name, then what else is in the folder.
fn verify_files(
    dir: &Path,
    partitions: Option<&[PartitionId]>,
    suspects: Option<&[Damage]>,
    depth: VerifyDepth,
    told: &mut OnVerify<'_>,
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
        let Some((pack, place)) = layout.find(&entry.name) else {
            report.damages.push(Damage { file: entry.name.clone(), fault: Fault::Missing });
            continue;
        };
        let path = dir.join(&pack.name);
        let checked = match depth {
            VerifyDepth::Deep => prove_slowly(&path, place.offset, entry, told),
            VerifyDepth::Quick => frame_at(&path, place.offset, entry).map(Some),
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

/// Why a file is not proven.
pub enum VerifyFault {
    Damaged(Damage),
    Io(io::Error),
}

impl From<Damage> for VerifyFault {
    fn from(damage: Damage) -> Self {
        VerifyFault::Damaged(damage)
    }
}

impl VerifyFault {
    /// As an error of opening.
    pub fn into_open_error(self, path: &Path) -> OpenError {
        match self {
            VerifyFault::Damaged(damage) => damage.into(),
            VerifyFault::Io(source) => OpenError::Io { path: path.to_owned(), source },
        }
    }

    /// A file that is not there, or that the disk cannot give back, is damaged; other errors are not about the file.
    fn of(error: io::Error, entry: &FileEntry) -> Self {
        let fault = match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::NotFound, _) => Fault::Missing,
            (_, Some(libc::EIO)) => Fault::Lost,
            _ => return VerifyFault::Io(error),
        };
        VerifyFault::Damaged(Damage { file: entry.name.clone(), fault })
    }
}

/// Reads one logical file from start to end and proves it; gives its bytes.
pub fn prove_at(path: &Path, offset: u64, entry: &FileEntry) -> Result<u64, VerifyFault> {
    let proven = prove_slowly(path, offset, entry, &mut |_| ControlFlow::Continue(()));
    proven.map(|bytes| bytes.unwrap_or(0))
}

/// As [`prove_at`], telling of each piece; `None` if that ended it.
fn prove_slowly(
    path: &Path,
    offset: u64,
    entry: &FileEntry,
    told: &mut OnVerify<'_>,
) -> Result<Option<u64>, VerifyFault> {
    let file = File::open(path).map_err(|error| VerifyFault::of(error, entry))?;
    let mut proof = Proof::new(entry)?;
    let mut buffer = vec![0; CHUNK_BYTES.min(entry.bytes as usize).max(1)];
    let mut at = 0;
    while at < entry.bytes {
        let want = buffer.len().min((entry.bytes - at) as usize);
        match file.read_at(&mut buffer[..want], offset + at) {
            Ok(0) => break,
            Ok(count) => {
                proof.push(&buffer[..count]);
                at += count as u64;
                if told(count as u64).is_break() {
                    return Ok(None);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(VerifyFault::of(error, entry)),
        }
    }
    proof.finish()?;
    Ok(Some(entry.bytes))
}

/// Reads header, checksum table and trailer of one logical file and proves these; gives the bytes read.
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

/// Files in the folder that belong to nothing, and packs of another size than theirs.
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

/// Proves a file as its bytes pass by, in order.
pub struct Proof<'a> {
    entry: &'a FileEntry,
    seal: FileSeal,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<'a> Proof<'a> {
    pub fn new(entry: &'a FileEntry) -> Result<Self, Damage> {
        let damage = |fault| Damage { file: entry.name.clone(), fault };
        let id = FileId::parse(&entry.name).ok_or_else(|| damage(Fault::Unlisted))?;
        let seal = FileSeal::new(id, entry.bytes)
            .ok_or_else(|| damage(Fault::Content { what: "file size", offset: 0 }))?;
        Ok(Self { entry, seal, hasher: blake3::Hasher::new(), bytes: 0 })
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        // Beyond the stated size nothing can be right any more, and memory stays bounded.
        if self.bytes <= self.entry.bytes {
            // The second checksum reads what the first brought into the cache.
            for piece in bytes.chunks(TURN_BYTES) {
                self.hasher.update(piece);
                self.seal.push(piece);
                give_way();
            }
        }
    }

    /// Whether everything holds. Names the damaged block if it can.
    pub fn finish(self) -> Result<(), Damage> {
        let damage = |fault| Damage { file: self.entry.name.clone(), fault };
        if self.bytes != self.entry.bytes {
            return Err(damage(Fault::Size { expected: self.entry.bytes, got: self.bytes }));
        }
        self.seal.finish(self.entry).map_err(damage)?;
        if self.hasher.finalize().to_hex().as_str() != self.entry.blake3 {
            return Err(damage(Fault::Checksum { what: "file", offset: 0 }));
        }
        Ok(())
    }
}

const _: () = assert!(HEADER_BYTES < CHUNK_BYTES);
