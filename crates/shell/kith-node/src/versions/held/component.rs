//! An open component of a version: its reader and the partitions that it reads.

use kith_engine::{ComponentReader, OpenError, ValuesReader, VersionFolder};
use kith_types::{PartitionCount, PartitionId};
use kith_wire::documents::HoldsDocument;
use std::{collections::BTreeSet, sync::Arc};

/// An open component. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    files: Files,
    partitions: Arc<BTreeSet<PartitionId>>,
}

#[derive(Clone)]
enum Files {
    Graph(Arc<ComponentReader>),
    Values(Arc<ValuesReader>),
}

impl Component {
    /// Opens the given partitions, which must all be in the folder.
    pub fn open(
        folder: VersionFolder,
        holds: &HoldsDocument,
        partition_count: PartitionCount,
        partitions: BTreeSet<PartitionId>,
    ) -> Result<Self, OpenError> {
        let list: Vec<PartitionId> = partitions.iter().copied().collect();
        let files = match holds {
            HoldsDocument::Graph => Files::Graph(Arc::new(ComponentReader::open_folder(folder, &list)?)),
            HoldsDocument::Values { key, .. } => {
                Files::Values(open_values(folder, key, partition_count, &list)?)
            }
        };
        Ok(Self { files, partitions: Arc::new(partitions) })
    }

    /// Whether all of these partitions are open.
    pub fn covers(&self, partitions: &[PartitionId]) -> bool {
        partitions.iter().all(|partition| self.partitions.contains(partition))
    }

    /// The open partitions.
    pub fn partitions(&self) -> &BTreeSet<PartitionId> {
        &self.partitions
    }

    /// Reads files into memory, indexes before values. Returns the number of bytes read, at most the budget. Blocks on the
    /// disk.
    pub fn warm(&self, budget_bytes: u64) -> u64 {
        match &self.files {
            Files::Graph(reader) => reader.warm(budget_bytes),
            Files::Values(reader) => reader.warm(budget_bytes),
        }
    }

    pub fn graph(&self) -> Option<&Arc<ComponentReader>> {
        if let Files::Graph(reader) = &self.files { Some(reader) } else { None }
    }

    pub fn values(&self) -> Option<&Arc<ValuesReader>> {
        if let Files::Values(reader) = &self.files { Some(reader) } else { None }
    }
}

/// Opens values. Refuses values for another number of partitions or another key type, because lookups would not find them.
fn open_values(
    folder: VersionFolder,
    key: &str,
    partition_count: PartitionCount,
    partitions: &[PartitionId],
) -> Result<Arc<ValuesReader>, OpenError> {
    let reader = ValuesReader::open_folder(folder, partitions)?;
    let component = || reader.manifest().component.clone();
    let (expected, got) = (partition_count.get(), reader.manifest().partition_count.get());
    if got != expected {
        return Err(OpenError::PartitionCount { component: component(), expected, got });
    }
    if reader.key_type().name() != key {
        let (expected, got) = (key.to_owned(), reader.key_type().name());
        return Err(OpenError::OtherKeys { component: component(), expected, got });
    }
    Ok(Arc::new(reader))
}
