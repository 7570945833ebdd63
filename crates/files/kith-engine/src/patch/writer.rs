//! Writes the patch of a version while the version is built from another.

use super::head::{Head, Section};
use super::{PATCH_NAME, section};
use crate::errors::WriteError;
use crate::manifest::Manifest;
use kith_types::PartitionId;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A section is kept only if it is at most 1 / `WORTH_ONE_IN` of its partition's files. Applying it reads, checks and
/// writes the whole partition, which costs about as much as pulling it.
const WORTH_ONE_IN: u64 = 2;

/// Collects changes, partition by partition. Memory: buffers, and 44 bytes per partition with changes.
pub struct PatchWriter {
    dir: PathBuf,
    /// The changes of all sections, end to end, in an unnamed file, because the size of the head is known only at the end.
    spool: BufWriter<File>,
    sections: Vec<Section>,
    hasher: blake3::Hasher,
    head: Vec<u8>,
}

/// The partitions and the size of a written patch.
#[derive(Default)]
pub struct PatchSummary {
    /// The partitions whose changes it contains.
    pub partitions: BTreeSet<PartitionId>,
    /// Its size in bytes; 0 if no patch was written.
    pub bytes: u64,
}

impl PatchWriter {
    /// Begins a patch that will lie in `dir`.
    pub fn new(dir: &Path) -> Result<Self, WriteError> {
        let spool =
            tempfile::tempfile_in(dir).map_err(|source| WriteError::Io { path: dir.to_owned(), source })?;
        Ok(Self {
            dir: dir.to_owned(),
            spool: BufWriter::new(spool),
            sections: Vec::new(),
            hasher: blake3::Hasher::new(),
            head: Vec::new(),
        })
    }

    /// Begins the changes of this partition, which must be above the previous one.
    pub fn begin(&mut self, partition: PartitionId) {
        self.end();
        self.sections.push(Section { partition, bytes: 0, blake3: [0; 32] });
    }

    /// Adds a change: a key gets a value, given as it is stored.
    pub fn put(&mut self, key: &[u8], stored: &[u8]) -> Result<(), WriteError> {
        section::encode_head(&mut self.head, key, Some(stored));
        self.add(&[key, stored])
    }

    /// Adds a change: an existing key is deleted.
    pub fn delete(&mut self, key: &[u8]) -> Result<(), WriteError> {
        section::encode_head(&mut self.head, key, None);
        self.add(&[key])
    }

    fn add(&mut self, parts: &[&[u8]]) -> Result<(), WriteError> {
        let section = self.sections.last_mut().expect("changes come after their partition");
        for part in [self.head.as_slice()].iter().chain(parts) {
            self.hasher.update(part);
            section.bytes += part.len() as u64;
            let written = self.spool.write_all(part);
            written.map_err(|source| WriteError::Io { path: self.dir.clone(), source })?;
        }
        Ok(())
    }

    fn end(&mut self) {
        if let Some(section) = self.sections.last_mut() {
            section.blake3 = *self.hasher.finalize().as_bytes();
            self.hasher.reset();
        }
    }

    /// Writes the sections that are worth keeping, and syncs the file.
    pub fn finish(mut self, base: &Manifest, new: &Manifest) -> Result<PatchSummary, WriteError> {
        self.end();
        let path = self.dir.join(PATCH_NAME);
        let (sections, spool) = (std::mem::take(&mut self.sections), self.spool);
        let is_worth = |section: &Section| {
            let files = new.files.iter();
            let files = files.filter(|entry| entry.id().is_some_and(|id| id.partition == section.partition));
            let bytes: u64 = files.map(|entry| entry.bytes).sum();
            0 < section.bytes && section.bytes.saturating_mul(WORTH_ONE_IN) <= bytes
        };
        let worth: Vec<Section> = sections.iter().copied().filter(is_worth).collect();
        if worth.is_empty() {
            return Ok(PatchSummary::default());
        }
        let head = Head { base: base.hash(), manifest: new.hash(), sections: worth };
        let written = write(&path, &head, &sections, spool);
        written.map_err(|source| WriteError::Io { path, source })?;
        Ok(PatchSummary {
            bytes: head.bytes() + head.sections.iter().map(|section| section.bytes).sum::<u64>(),
            partitions: head.sections.iter().map(|section| section.partition).collect(),
        })
    }
}

/// Writes the head and those of the spooled `sections` that it names.
fn write(path: &Path, head: &Head, sections: &[Section], spool: BufWriter<File>) -> io::Result<()> {
    let mut spool = spool.into_inner().map_err(io::IntoInnerError::into_error)?;
    let mut file = File::create_new(path)?;
    file.write_all(&head.encode())?;
    let mut at = 0;
    for section in sections {
        if head.sections.contains(section) {
            spool.seek(SeekFrom::Start(at))?;
            io::copy(&mut Read::by_ref(&mut spool).take(section.bytes), &mut file)?;
        }
        at += section.bytes;
    }
    file.sync_all()
}
