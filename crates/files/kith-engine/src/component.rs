//! One version of a component on a node: the mapped files of some of its partitions.

use crate::chunk::ChunkSetReader;
use crate::errors::{Damage, Fault, OpenError};
use crate::files::lists_of;
use crate::manifest::{GraphContent, Manifest};
use crate::members::MemberTableReader;
use crate::pack::VersionFolder;
use crate::postings::PostingsReader;
use crate::residency::MappedPacks;
use crate::sealed::{SealedFile, populate_within};
use kith_types::{Direction, PartitionId};
use std::path::{Path, PathBuf};

/// A version of a component, open for reading.
#[derive(Debug)]
pub struct ComponentReader {
    dir: PathBuf,
    mapped: MappedPacks,
    manifest: Manifest,
    /// The graph part of the manifest.
    graph: GraphContent,
    /// The files of each held partition, by partition index.
    partitions: Vec<Option<Box<PartitionReader>>>,
}

/// The files of one partition of a component.
#[derive(Debug)]
pub struct PartitionReader {
    members: MemberTableReader,
    lists: Vec<ListReader>,
}

/// The lists of one direction of a partition: from key to neighbours, and from neighbour to keys.
#[derive(Debug)]
pub struct ListReader {
    /// The direction in which the lists follow the edges.
    pub list: Direction,
    /// The adjacency lists by key (eight bytes, little-endian).
    pub records: ChunkSetReader,
    /// The keys whose list contains a neighbour, by neighbour.
    pub postings: PostingsReader,
}

impl ComponentReader {
    /// Opens the given partitions of the component in a folder, in constant time per file. Checks presence, sizes, headers
    /// and trailers against the manifest.
    ///
    /// # Errors
    /// If the manifest or any file of these partitions is missing, damaged or belongs to another component.
    pub fn open(dir: &Path, partitions: &[PartitionId]) -> Result<Self, OpenError> {
        Self::open_folder(VersionFolder::open(dir)?, partitions)
    }

    /// Opens the given partitions like [`ComponentReader::open`], from an open folder.
    ///
    /// # Errors
    /// Those of [`ComponentReader::open`].
    pub fn open_folder(folder: VersionFolder, partitions: &[PartitionId]) -> Result<Self, OpenError> {
        let manifest = folder.manifest();
        let Some(graph) = manifest.graph().cloned() else {
            let (component, got) = (manifest.component.clone(), manifest.content.name());
            return Err(OpenError::OtherContent { component, expected: "a graph component", got });
        };
        let mut readers: Vec<_> = (0..manifest.partition_count.get()).map(|_| None).collect();
        for &partition in partitions {
            let Some(slot) = readers.get_mut(partition.index()) else {
                let file = crate::files::FileId::members(partition).to_string();
                return Err(Damage { file, fault: Fault::NotListed }.into());
            };
            *slot = Some(Box::new(PartitionReader::open(&folder, &graph, partition)?));
        }
        let (dir, mapped) = (folder.dir().to_owned(), folder.mapped());
        Ok(Self { dir, mapped, manifest: folder.into_manifest(), graph, partitions: readers })
    }

    /// The manifest of the component.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The graph part of the manifest: what the component joins, with its columns.
    pub fn graph(&self) -> &GraphContent {
        &self.graph
    }

    /// The folder it was opened from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The mapped files.
    pub fn mapped(&self) -> &MappedPacks {
        &self.mapped
    }

    /// The files of a partition; `None` if it was not opened.
    pub fn partition(&self, partition: PartitionId) -> Option<&PartitionReader> {
        self.partitions.get(partition.index())?.as_deref()
    }

    /// The partitions that are open, ascending.
    pub fn held(&self) -> impl Iterator<Item = PartitionId> {
        (0u32..)
            .zip(&self.partitions)
            .filter(|(_, files)| files.is_some())
            .map(|(index, _)| PartitionId(index))
    }

    /// Loads files into memory, indexes and member tables before data, until `budget_bytes` are spent. Returns the number
    /// of loaded bytes, which is never more than the budget. Blocks on the disk: call it off the request path.
    pub fn warm(&self, budget_bytes: u64) -> u64 {
        let held = || self.partitions.iter().flatten();
        let small = held().flat_map(|files| files.small_files());
        let data = held().flat_map(|files| files.lists.iter().flat_map(|list| list.records.data_files()));
        populate_within(small.chain(data), budget_bytes)
    }
}

impl PartitionReader {
    fn open(folder: &VersionFolder, graph: &GraphContent, partition: PartitionId) -> Result<Self, OpenError> {
        let members = MemberTableReader::open(folder, partition)?;
        let mut lists = Vec::new();
        for &list in lists_of(graph.role) {
            let records = ChunkSetReader::open(folder, partition, Some(list))?;
            let postings = PostingsReader::open(folder, partition, list)?;
            if !postings.fits(members.count()) {
                return Err(postings.file().damage(Fault::Foreign { what: "member count" }).into());
            }
            lists.push(ListReader { list, records, postings });
        }
        Ok(Self { members, lists })
    }

    /// The members of the partition.
    pub fn members(&self) -> &MemberTableReader {
        &self.members
    }

    /// The lists of a direction that the role keeps, as a resolved selector names them.
    pub(crate) fn kept_list(&self, list: Direction) -> &ListReader {
        self.list(list).expect("a partition opens every list of its role")
    }

    /// The lists of one direction; `None` if the component's role keeps none.
    pub fn list(&self, list: Direction) -> Option<&ListReader> {
        self.lists.iter().find(|reader| reader.list == list)
    }

    /// The files that lookups read before data.
    fn small_files(&self) -> impl Iterator<Item = &SealedFile> {
        std::iter::once(self.members.file()).chain(self.lists.iter().flat_map(ListReader::small_files))
    }
}

impl ListReader {
    fn small_files(&self) -> impl Iterator<Item = &SealedFile> {
        self.records.index_files().chain([self.postings.file()])
    }
}
