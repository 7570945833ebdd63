//! Proof of whole files: while they are fetched, and later by a scrubber.

use crate::errors::{Damage, Fault, OpenError};
use crate::files::{FileId, MANIFEST_NAME};
use crate::manifest::{FileEntry, Manifest};
use crate::sealed::{FileSeal, HEADER_BYTES};
use kith_types::PartitionId;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Bytes read at a time: large enough for BLAKE3 to use wide vectors, small enough to stay in cache.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// What a verification read, and what does not hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Files read, the manifest included.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Every file that is damaged, missing, or not in the manifest.
    pub damages: Vec<Damage>,
}

/// Reads every byte of a component version and checks it against the manifest: of the given
/// partitions, or of all. Files in the folder that the manifest does not list count as damage.
///
/// # Errors
/// If the manifest cannot be trusted: then nothing else can be checked.
pub fn verify_component(dir: &Path, partitions: Option<&[PartitionId]>) -> Result<VerifyReport, OpenError> {
    let manifest = Manifest::read(dir)?;
    let mut report = VerifyReport { files: 1, ..VerifyReport::default() };
    let all: Vec<_> = manifest.partition_count.iter().collect();
    for entry in manifest.files_of(partitions.unwrap_or(&all)) {
        report.files += 1;
        match verify_file(&dir.join(&entry.name), entry) {
            Ok(()) => report.bytes += entry.bytes,
            Err(VerifyFault::Damaged(damage)) => report.damages.push(damage),
            Err(VerifyFault::Io(source)) => {
                return Err(OpenError::Io { path: dir.join(&entry.name), source });
            }
        }
    }
    report.damages.extend(unlisted(dir, &manifest)?);
    Ok(report)
}

/// Why a file is not proven.
pub(crate) enum VerifyFault {
    Damaged(Damage),
    Io(io::Error),
}

/// Reads one file from start to end and proves it.
pub(crate) fn verify_file(path: &Path, entry: &FileEntry) -> Result<(), VerifyFault> {
    let mut file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            VerifyFault::Damaged(Damage { file: entry.name.clone(), fault: Fault::Missing })
        }
        _ => VerifyFault::Io(error),
    })?;
    let mut proof = Proof::new(entry).map_err(VerifyFault::Damaged)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return proof.finish().map_err(VerifyFault::Damaged),
            Ok(count) => proof.push(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(VerifyFault::Io(error)),
        }
    }
}

/// Files in the folder that the manifest does not list.
fn unlisted(dir: &Path, manifest: &Manifest) -> Result<Vec<Damage>, OpenError> {
    let known: BTreeSet<&str> =
        manifest.files.iter().map(|entry| entry.name.as_str()).chain([MANIFEST_NAME]).collect();
    let names = fs::read_dir(dir).and_then(|entries| {
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()
    });
    let names = names.map_err(|source| OpenError::Io { path: dir.to_owned(), source })?;
    let unknown = names.into_iter().filter(|name| !known.contains(name.as_str()));
    Ok(unknown.map(|file| Damage { file, fault: Fault::Unlisted }).collect())
}

/// Proves a file as its bytes pass by, in order.
pub(crate) struct Proof<'a> {
    entry: &'a FileEntry,
    seal: FileSeal,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl<'a> Proof<'a> {
    pub(crate) fn new(entry: &'a FileEntry) -> Result<Self, Damage> {
        let damage = |fault| Damage { file: entry.name.clone(), fault };
        let id = FileId::parse(&entry.name).ok_or_else(|| damage(Fault::Unlisted))?;
        let seal = FileSeal::new(id, entry.bytes)
            .ok_or_else(|| damage(Fault::Content { what: "file size", offset: 0 }))?;
        Ok(Self { entry, seal, hasher: blake3::Hasher::new(), bytes: 0 })
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        // Beyond the stated size nothing can be right any more, and memory stays bounded.
        if self.bytes <= self.entry.bytes {
            self.hasher.update(bytes);
            self.seal.push(bytes);
        }
    }

    /// Whether everything holds. Names the damaged block if it can.
    pub(crate) fn finish(self) -> Result<(), Damage> {
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
