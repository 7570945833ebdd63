//! Reads a version of a store.

use super::ValueError;
use super::compression::{Decompressor, read_dictionary};
use super::frames::Frames;
use crate::chunk::{ChunkSetReader, find_each};
use crate::errors::{Damage, Fault, OpenError, ReadError};
use crate::files::{FileId, FileKind};
use crate::manifest::{KeyType, Manifest};
use crate::pack::VersionFolder;
use crate::residency::MappedPacks;
use crate::sealed::{HEADER_BYTES, populate_within};
use kith_schema::{Schema, SourceValue};
use kith_types::{PartitionCount, PartitionId};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;

/// A version of a store, open for reading: some of its partitions, mapped.
pub struct ValuesReader {
    pub(super) folder: VersionFolder,
    mapped: MappedPacks,
    key: KeyType,
    partition_count: PartitionCount,
    /// The chunk sets of each held partition, by partition index.
    pub(super) partitions: Vec<Option<Box<ChunkSetReader>>>,
    decompressor: Option<Decompressor>,
    /// The schema of the values, parsed when it is first needed; `None` if values are not records, or if a newer release
    /// wrote the schema.
    schema: OnceLock<Option<Schema>>,
}

impl ValuesReader {
    /// Opens the given partitions of the version in a folder, in constant time per file. Checks presence, sizes, headers
    /// and trailers against the manifest.
    ///
    /// # Errors
    /// If the manifest or any file of these partitions is missing, damaged or belongs elsewhere, or if the folder holds a
    /// graph.
    pub fn open(dir: &Path, partitions: &[PartitionId]) -> Result<Self, OpenError> {
        Self::open_folder(VersionFolder::open(dir)?, partitions)
    }

    /// Opens the given partitions like [`ValuesReader::open`], from an open folder.
    ///
    /// # Errors
    /// Those of [`ValuesReader::open`].
    pub fn open_folder(folder: VersionFolder, partitions: &[PartitionId]) -> Result<Self, OpenError> {
        let manifest = folder.manifest();
        let Some(values) = manifest.values() else {
            let (component, got) = (manifest.component.clone(), manifest.content.name());
            return Err(OpenError::OtherContent { component, expected: "values", got });
        };
        let (key, partition_count) = (values.key, manifest.partition_count);
        let mut readers: Vec<_> = (0..partition_count.get()).map(|_| None).collect();
        for &partition in partitions {
            let Some(slot) = readers.get_mut(partition.index()) else {
                let file = FileId { partition, list: None, kind: FileKind::Data, set: 0 }.to_string();
                return Err(Damage { file, fault: Fault::NotListed }.into());
            };
            *slot = Some(Box::new(ChunkSetReader::open(&folder, partition, None)?));
        }
        let decompressor = match values.compression {
            Some(_) => {
                let refused = || {
                    let fault = Fault::Content { what: "dictionary", offset: HEADER_BYTES as u64 };
                    Damage { file: FileId::dictionary().to_string(), fault }
                };
                Some(Decompressor::new(&read_dictionary(&folder)?).ok_or_else(refused)?)
            }
            None => None,
        };
        let mapped = folder.mapped();
        let schema = OnceLock::new();
        Ok(Self { folder, mapped, key, partition_count, partitions: readers, decompressor, schema })
    }

    /// The manifest of the version.
    pub fn manifest(&self) -> &Manifest {
        self.folder.manifest()
    }

    /// The type of its keys.
    pub fn key_type(&self) -> KeyType {
        self.key
    }

    /// The schema of its values; `None` if they are not records, or if this release cannot read the schema.
    pub fn schema(&self) -> Option<&Schema> {
        let text = || self.manifest().values()?.schema.as_deref();
        self.schema.get_or_init(|| text()?.parse().ok()).as_ref()
    }

    /// Whether a partition is open.
    pub(super) fn holds(&self, partition: PartitionId) -> bool {
        self.partitions.get(partition.index()).is_some_and(Option::is_some)
    }

    /// The folder it was opened from.
    pub fn dir(&self) -> &Path {
        self.folder.dir()
    }

    /// The partitions that are open, ascending.
    pub fn held(&self) -> impl Iterator<Item = PartitionId> {
        let partitions = (0u32..).zip(&self.partitions);
        partitions.filter(|(_, reader)| reader.is_some()).map(|(index, _)| PartitionId(index))
    }

    /// The partition of a key, whether it is held or not.
    ///
    /// # Errors
    /// If the key cannot be a key of this store.
    pub fn partition_of(&self, key: &[u8]) -> Result<PartitionId, ValueError> {
        let partition = self.key.partition(key, self.partition_count);
        partition.ok_or(ValueError::KeyLength { got: key.len() })
    }

    /// The value of a key; `None` is a proven absence. Copies the value; for many keys use [`ValuesReader::get_many`].
    ///
    /// # Errors
    /// If the partition is not held, or a byte that the answer depends on is damaged.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ValueError> {
        let mut answer = Ok(None);
        self.get_many(&[key], |_, value| {
            answer = value.map(|value| value.map(<[u8]>::to_vec));
            ControlFlow::Continue(())
        });
        answer
    }

    /// Calls `each(index, value)` once per key, in order; `Break` ends the reading early. A key is FOUND with its bytes,
    /// ABSENT (`None`, proven), or has an error of its own. The lookup works in batches: the memory that a group of keys
    /// needs is loaded together. No allocation per key; with compression one buffer per call.
    ///
    /// Values are proven when they are handed out. A caller that keeps one for longer must copy it.
    pub fn get_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut each: impl FnMut(usize, Result<Option<&[u8]>, ValueError>) -> ControlFlow<()>,
    ) {
        self.read_many(keys, false, |index, value| {
            each(index, value.map(|value| value.map(|value| value.bytes)))
        });
    }

    /// Reads values like [`ValuesReader::get_many`], for a caller who checks proofs itself: values that come with a proof
    /// are not checked here. Compressed values are checked here, and come without a proof.
    pub fn get_many_with_proofs<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        each: impl FnMut(usize, Result<Option<SourceValue<'_>>, ValueError>) -> ControlFlow<()>,
    ) {
        self.read_many(keys, true, each);
    }

    #[inline]
    fn read_many<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        proofs: bool,
        mut each: impl FnMut(usize, Result<Option<SourceValue<'_>>, ValueError>) -> ControlFlow<()>,
    ) {
        let mut frames = Frames::new(self.decompressor.as_ref());
        find_each(
            keys.len(),
            |index| {
                let key = keys[index].as_ref();
                let partition = self.key.partition(key, self.partition_count)?;
                Some((self.partitions.get(partition.index())?.as_deref()?, key))
            },
            |index, found| match found {
                Ok(Some(found)) => {
                    // The checksum of a compressed value covers the stored frame, not the value.
                    let proof = if proofs && frames.are_plain() { found.proof() } else { None };
                    let bytes = match proof {
                        Some(_) => found.check().map(|()| found.value()).map_err(ValueError::from),
                        None => frames.value(&found),
                    };
                    each(index, bytes.map(|bytes| Some(SourceValue { bytes, proof })))
                }
                Ok(None) => each(index, self.absent(keys[index].as_ref()).map(SourceValue::proven)),
                Err(damage) => each(index, Err(damage.into())),
            },
        );
    }

    /// The answer for a key that no open chunk set can have: absent, unless its partition is not held.
    fn absent(&self, key: &[u8]) -> Result<Option<&[u8]>, ValueError> {
        let partition = self.partition_of(key)?;
        match self.partitions.get(partition.index()) {
            Some(Some(_)) => Ok(None),
            _ => Err(ValueError::NotHeld { partition }),
        }
    }

    /// Calls `each(key, value)` for every record of a partition in the order of its files; `Break` ends it.
    ///
    /// # Errors
    /// If the partition is not held, or a record is damaged. `each` was called for the records before it.
    pub fn for_each(
        &self,
        partition: PartitionId,
        mut each: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), ValueError> {
        let reader = self.partitions.get(partition.index()).and_then(Option::as_deref);
        let reader = reader.ok_or(ValueError::NotHeld { partition })?;
        let mut frames = Frames::new(self.decompressor.as_ref());
        reader.try_for_each(|found, key| Ok::<_, ValueError>(each(key, frames.value(found)?)))
    }

    /// The number of records in the open partitions.
    pub fn records(&self) -> u64 {
        self.partitions.iter().flatten().map(|reader| reader.records()).sum()
    }

    /// Loads files into memory, indexes before data, until `budget_bytes` are spent. Returns the number of loaded bytes,
    /// which is never more than the budget. Blocks on the disk: call it off the request path.
    pub fn warm(&self, budget_bytes: u64) -> u64 {
        let held = || self.partitions.iter().flatten();
        let indexes = held().flat_map(|reader| reader.index_files());
        populate_within(indexes.chain(held().flat_map(|reader| reader.data_files())), budget_bytes)
    }

    /// The mapped files.
    pub fn mapped(&self) -> &MappedPacks {
        &self.mapped
    }

    /// Fails if a page of a file was missing at any read so far.
    ///
    /// # Errors
    /// The damage, with the name of the file.
    pub fn check(&self) -> Result<(), ReadError> {
        self.partitions.iter().flatten().try_for_each(|reader| reader.check())
    }
}

impl std::fmt::Debug for ValuesReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValuesReader").field("dir", &self.dir()).finish_non_exhaustive()
    }
}
