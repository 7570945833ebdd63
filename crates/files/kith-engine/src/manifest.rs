//! The manifest of a version of a component: every logical file with its size, record count and checksums, and the packs
//! that the files lie in. Drawn in `docs/formats/manifest.md`.
//!
//! Voldemort kept one checksum per node directory beside the data, and checked it only during a fetch (Voldemort §5.4).
//! Here each file is listed, and files that are not listed are not read. A manifest does not say when, where or by whom it
//! was built: the same records, options and version number give the same bytes.

mod codec;
mod content;

use crate::errors::{Damage, Fault, OpenError, WriteError};
use crate::files::{FileId, FileKind, MANIFEST_NAME};
use crate::pack::{FILE_BYTES_MAX, pack_name, place};
pub use content::{Compression, Content, Counts, GraphContent, ValueCounts, ValuesContent};
use kith_schema::KindSchema;
pub use kith_schema::{KeyType, ValueType};
use kith_types::{Direction, PartitionCount, PartitionId, StoreVersion};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The name of the only component of a store of values.
pub const VALUES_COMPONENT: &str = "values";

/// The description of one version of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The name of the edge type, entity kind or store.
    pub component: String,
    /// The version number.
    pub version: StoreVersion,
    /// The number of partitions.
    pub partition_count: PartitionCount,
    /// Whether it holds a graph component or values, with their properties.
    pub content: Content,
    /// Every logical file, ascending by name.
    pub files: Vec<FileEntry>,
}

/// One logical file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its name, which encodes its kind and partition.
    pub name: String,
    /// The number of the pack that it lies in.
    pub pack: u32,
    /// The offset at which it begins in the pack.
    pub offset: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// The number of records, ids or pairs in it.
    pub records: u64,
    /// BLAKE3 of the whole file, in hexadecimal.
    pub blake3: String,
    /// The checksum of its trailer, which covers the checksums of all its blocks.
    pub crc32c: u32,
    /// The least position (`position_of_key`) of a chunk set's records, in 16 hexadecimal digits. Only data files with
    /// records have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_position: Option<String>,
}

/// A physical file: logical files laid end to end.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackEntry {
    /// Its name in the version's folder.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

impl FileEntry {
    /// The identity of the file; `None` if the name is invalid.
    pub fn id(&self) -> Option<FileId> {
        FileId::parse(&self.name)
    }

    /// The identity of the file if a manifest may list it; else the name of the invalid field.
    pub fn check(&self) -> Result<FileId, &'static str> {
        // An invalid name could also lead out of the folder.
        let id = self.id().ok_or("file name")?;
        if self.bytes > FILE_BYTES_MAX {
            return Err("size of a file");
        }
        if self.first_position.as_ref().is_some_and(|text| u64::from_str_radix(text, 16).is_err()) {
            return Err("first_position");
        }
        Ok(id)
    }

    /// Whether both have the same bytes, so that they need not be moved.
    pub(crate) fn is_same_content(&self, other: &FileEntry) -> bool {
        (self.bytes, self.crc32c, &self.blake3) == (other.bytes, other.crc32c, &other.blake3)
    }
}

impl Manifest {
    /// Sorts files by name and gives each its place in a pack, by the rule for sizes (`docs/formats/pack.md`).
    pub fn new(
        component: String,
        version: StoreVersion,
        partition_count: PartitionCount,
        content: Content,
        mut files: Vec<FileEntry>,
    ) -> Self {
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let mut manifest = Self { component, version, partition_count, content, files };
        let (places, _) = place(&manifest.sizes());
        for (entry, index) in manifest.files.iter_mut().zip(places) {
            (entry.pack, entry.offset) = (index.pack, index.offset);
        }
        manifest
    }

    /// Reads the manifest of a version's folder and checks its seal.
    ///
    /// # Errors
    /// [`OpenError::NoComponent`] if there is none, [`OpenError::OtherFormat`] if it is of another format version,
    /// [`OpenError::Damaged`] if any byte differs from what was written.
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
    /// Those of [`Manifest::read`].
    pub fn decode(bytes: &[u8]) -> Result<Self, OpenError> {
        codec::decode(bytes)
    }

    /// The bytes of the manifest's file. The same content gives the same bytes.
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Writes the manifest into the folder and syncs it. Call it after all packs are written.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), WriteError> {
        let path = dir.join(MANIFEST_NAME);
        let bytes = self.encode();
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        written.map_err(|source| WriteError::Io { path, source })
    }

    /// The identity of this version: the BLAKE3 of the manifest, in hexadecimal.
    pub fn hash(&self) -> String {
        blake3::hash(&self.encode()).to_hex().to_string()
    }

    /// Whether this is a version of this component of this store. The hash of a manifest covers both names.
    pub fn is_of(&self, store: &str, component: &str) -> bool {
        match &self.content {
            Content::Graph(graph) => graph.graph == store && self.component == component,
            Content::Values(_) => self.component == store && component == VALUES_COMPONENT,
        }
    }

    /// The name of the store that the version belongs to.
    pub fn store(&self) -> &str {
        match &self.content {
            Content::Graph(graph) => &graph.graph,
            Content::Values(_) => &self.component,
        }
    }

    /// Whether the keys of its chunk sets are ids.
    pub(crate) fn keys_are_ids(&self) -> bool {
        self.values().is_none_or(|values| values.key == KeyType::Id)
    }

    /// The graph part, if it is a graph component.
    pub fn graph(&self) -> Option<&GraphContent> {
        match &self.content {
            Content::Graph(graph) => Some(graph),
            Content::Values(_) => None,
        }
    }

    /// The types of keys and values, if it is a store of values.
    pub fn values(&self) -> Option<&ValuesContent> {
        match &self.content {
            Content::Graph(_) => None,
            Content::Values(values) => Some(values),
        }
    }

    /// The entry of a graph component in the schema of its graph.
    pub fn kind(&self) -> Option<KindSchema> {
        let graph = self.graph()?;
        Some(KindSchema {
            name: self.component.clone(),
            role: graph.role,
            version: self.version,
            columns: graph.columns.clone(),
            one_sided: false,
        })
    }

    /// The packs, in their order.
    pub fn packs(&self) -> Vec<PackEntry> {
        let (_, bytes) = place(&self.sizes());
        (0..).zip(bytes).map(|(number, bytes)| PackEntry { name: pack_name(number), bytes }).collect()
    }

    /// The packs that hold exactly the files of a pack of `other`, at the same places: from the number here to the number
    /// there.
    pub fn packs_in_common(&self, other: &Manifest) -> BTreeMap<u32, u32> {
        fn packs(manifest: &Manifest) -> impl Iterator<Item = (Vec<(&str, &str, u64)>, u32)> {
            manifest.files.chunk_by(|a, b| a.pack == b.pack).map(|files| {
                let shape = files.iter().map(|file| (file.name.as_str(), file.blake3.as_str(), file.offset));
                (shape.collect(), files[0].pack)
            })
        }
        let theirs: BTreeMap<_, u32> = packs(other).collect();
        packs(self).filter_map(|(files, ours)| Some((ours, *theirs.get(&files)?))).collect()
    }

    /// The size in bytes of all files of the given partitions, and of those that every node needs.
    pub fn bytes_of(&self, partitions: &[PartitionId]) -> u64 {
        self.files_of(partitions).map(|entry| entry.bytes).sum()
    }

    /// The files of the given partitions and those that every node needs, in the order of the manifest.
    pub fn files_of<'a>(&'a self, partitions: &'a [PartitionId]) -> impl Iterator<Item = &'a FileEntry> {
        let wanted: std::collections::BTreeSet<_> = partitions.iter().copied().collect();
        self.files.iter().filter(move |entry| {
            entry.id().is_some_and(|id| id.kind == FileKind::Dictionary || wanted.contains(&id.partition))
        })
    }

    /// The files of a pack, in the order of their places.
    pub fn files_in_pack(&self, pack: u32) -> &[FileEntry] {
        let start = self.files.partition_point(|file| file.pack < pack);
        let end = self.files.partition_point(|file| file.pack <= pack);
        &self.files[start..end]
    }

    pub(crate) fn entry(&self, id: FileId) -> Result<&FileEntry, OpenError> {
        let name = id.to_string();
        match self.files.binary_search_by(|entry| entry.name.as_str().cmp(&name)) {
            Ok(index) => Ok(&self.files[index]),
            Err(_) => Err(Damage { file: name, fault: Fault::NotListed }.into()),
        }
    }

    /// The number of chunk sets of a partition's list.
    pub(crate) fn chunk_sets(&self, partition: PartitionId, list: Option<Direction>) -> u32 {
        (0..)
            .find(|&set| self.entry(FileId { partition, list, kind: FileKind::Data, set }).is_err())
            .unwrap_or(0)
    }

    /// The partition and size of each file, as input for the rule for packs.
    fn sizes(&self) -> Vec<(Option<PartitionId>, u64)> {
        self.files.iter().map(|entry| (entry.id().map(|id| id.partition), entry.bytes)).collect()
    }
}

/// The format version of manifests.
pub(crate) const MANIFEST_FORMAT: u32 = 1;
