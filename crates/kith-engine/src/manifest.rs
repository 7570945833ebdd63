//! The manifest of a component version: every file with its size, record count
//! and checksums. Drawn in `docs/formats/manifest.md`.
//!
//! Voldemort kept one checksum per node directory beside the data and looked at
//! it while fetching only (Voldemort §5.4); here each file is listed, and what is
//! not listed is not read.

mod codec;

use crate::errors::{Damage, Fault, OpenError, WriteError};
use crate::files::{FileId, FileKind, MANIFEST_NAME};
use crate::sealed::FORMAT_VERSION;
use kith_ops::{KindRole, KindSchema};
use kith_types::{Direction, PartitionCount, PartitionId, StoreVersion};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// What a component version consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Name of the edge type or entity kind.
    pub component: String,
    /// Which build of it.
    pub version: StoreVersion,
    /// What it joins.
    pub role: KindRole,
    /// Partitions that it is divided into.
    pub partition_count: PartitionCount,
    /// Names of the columns kept beside the ids of each list, in their order.
    pub columns: Vec<String>,
    /// Totals over all partitions.
    pub counts: Counts,
    /// Every file but the manifest itself, ascending by name.
    pub files: Vec<FileEntry>,
}

/// Totals over all partitions of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Members, with or without edges.
    pub members: u64,
    /// Edges: an undirected one counts once, an arc once.
    pub edges: u64,
    /// Distinct entities; 0 unless the component is an entity kind.
    pub entities: u64,
}

/// One file of a component.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Name inside the component's folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Records, ids or pairs in it.
    pub records: u64,
    /// BLAKE3 of the whole file, in hexadecimal.
    pub blake3: String,
    /// The checksum of its trailer, which seals the checksums of all its blocks.
    pub crc32c: u32,
    /// Least position (`position_of_key`) of a chunk set's records, in 16 hexadecimal digits; for data files with records only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_position: Option<String>,
}

impl Manifest {
    /// Reads the manifest of a component's folder and proves it whole.
    ///
    /// # Errors
    /// [`OpenError::NoComponent`] if there is none, [`OpenError::FormatTooNew`] if a later
    /// release wrote it, [`OpenError::Damaged`] if any byte differs from what was written.
    pub fn read(dir: &Path) -> Result<Self, OpenError> {
        let path = dir.join(MANIFEST_NAME);
        match fs::read(&path) {
            Ok(bytes) => Self::decode(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(OpenError::NoComponent { path: dir.to_owned() })
            }
            Err(source) => Err(OpenError::Io { path, source }),
        }
    }

    /// Reads a manifest from the bytes of its file.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn decode(bytes: &[u8]) -> Result<Self, OpenError> {
        codec::decode(bytes)
    }

    /// The bytes of the manifest's file: the same content gives the same bytes.
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Writes the manifest into the folder, after every other file, and waits for the disk.
    /// Files are put into the order of their names first.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn write(&mut self, dir: &Path) -> Result<(), WriteError> {
        self.files.sort_by(|a, b| a.name.cmp(&b.name));
        let path = dir.join(MANIFEST_NAME);
        let bytes = self.encode();
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        written.map_err(|source| WriteError::Io { path, source })
    }

    /// The identity of this version: BLAKE3 of the manifest, in hexadecimal.
    pub fn hash(&self) -> String {
        blake3::hash(&self.encode()).to_hex().to_string()
    }

    /// The component as a part of a graph's schema.
    pub fn kind(&self) -> KindSchema {
        KindSchema { name: self.component.clone(), role: self.role, columns: self.columns.clone() }
    }

    /// Bytes of all files of the given partitions.
    pub fn bytes_of(&self, partitions: &[PartitionId]) -> u64 {
        self.files_of(partitions).map(|entry| entry.bytes).sum()
    }

    /// The files of the given partitions, in the order of the manifest.
    pub fn files_of<'a>(&'a self, partitions: &'a [PartitionId]) -> impl Iterator<Item = &'a FileEntry> {
        let wanted: std::collections::BTreeSet<_> = partitions.iter().copied().collect();
        self.files
            .iter()
            .filter(move |entry| FileId::parse(&entry.name).is_some_and(|id| wanted.contains(&id.partition)))
    }

    /// The entry of one file.
    pub(crate) fn entry(&self, id: FileId) -> Result<&FileEntry, OpenError> {
        let name = id.to_string();
        match self.files.binary_search_by(|entry| entry.name.as_str().cmp(&name)) {
            Ok(index) => Ok(&self.files[index]),
            Err(_) => Err(Damage { file: name, fault: Fault::NotListed }.into()),
        }
    }

    /// How many chunk sets a list of a partition has.
    pub(crate) fn chunk_sets(&self, partition: PartitionId, list: Option<Direction>) -> u32 {
        (0..)
            .find(|&set| self.entry(FileId { partition, list, kind: FileKind::Data, set }).is_err())
            .unwrap_or(0)
    }
}

/// The newest format version that this release reads.
pub(crate) const SUPPORTED: u32 = FORMAT_VERSION;
