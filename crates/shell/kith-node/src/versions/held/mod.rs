//! The store versions that a node holds. They are prepared before a swap, stay open while they may be served or rolled back
//! to, and are kept after that until their readers have finished.

mod built;
mod cold;
mod component;
mod copier;
mod error;
mod fetcher;
mod folders;
mod open_versions;
mod opener;
mod origins;
mod owned;
mod preparation;
mod releaser;
mod remover;
mod repairer;
#[cfg(test)]
mod tests;
mod turns;

pub use copier::{CopyError, CopyTerms, Partitions};
pub use error::PrepareError;
pub use folders::ComponentFolders;
pub use open_versions::VersionReader;
pub use origins::{Origins, Replicas};
pub use owned::PartitionOwnership;
pub use preparation::{PrepareOptions, Progress, Supplier};
pub use releaser::ReleaseError;

use copier::PartitionCopier;
use fetcher::Fetcher;
use kith_engine::OpenError;
use kith_types::PartitionCount;
use kith_wire::documents::{ComponentDocument, ServedDocument, TopologyDocument};
use open_versions::OpenVersions;
use opener::VersionOpener;
use owned::OwnedPartitions;
use releaser::PartitionReleaser;
use remover::VersionRemover;
use repairer::FileRepairer;
use std::{collections::BTreeMap, sync::Arc};
use turns::Turns;

/// The versions that this node holds, and those that it should hold.
#[derive(Clone)]
pub struct Holdings {
    folders: Arc<ComponentFolders>,
    open: Arc<OpenVersions>,
    owned: Arc<OwnedPartitions>,
    /// Allows one change of a store's files at a time. Two preparations of the same component would fetch it twice.
    turns: Arc<Turns>,
}

/// Every store version that this node can serve, and the parts that change them.
pub struct HeldStores {
    /// The files.
    pub folders: Arc<ComponentFolders>,
    /// The versions that requests can read.
    pub open: Arc<OpenVersions>,
    /// The partitions that this node should hold.
    pub owned: Arc<OwnedPartitions>,
    /// The origins of files that are missing.
    pub origins: Arc<Origins>,
    /// Prepares versions.
    pub opener: VersionOpener,
    /// Copies partitions for a rebalance.
    pub copier: PartitionCopier,
    /// Frees partitions after a rebalance.
    pub releaser: PartitionReleaser,
    /// Removes versions that the cluster gave up.
    pub remover: VersionRemover,
    /// Repairs files.
    pub repairer: FileRepairer,
}

impl HeldStores {
    /// Returns a value that holds nothing yet.
    pub fn new(
        folders: ComponentFolders,
        origins: Origins,
        partition_count: PartitionCount,
        owned: PartitionOwnership,
    ) -> Self {
        let (folders, origins) = (Arc::new(folders), Arc::new(origins));
        let open = Arc::new(OpenVersions::new(partition_count));
        let owned = Arc::new(OwnedPartitions::new(owned));
        let turns = Arc::new(Turns::default());
        let holdings = Holdings {
            folders: Arc::clone(&folders),
            open: Arc::clone(&open),
            owned: Arc::clone(&owned),
            turns: Arc::clone(&turns),
        };
        let fetcher = Arc::new(Fetcher { folders: Arc::clone(&folders), origins: Arc::clone(&origins) });
        Self {
            opener: VersionOpener::new(holdings.clone(), Arc::clone(&fetcher)),
            copier: PartitionCopier {
                folders: Arc::clone(&folders),
                origins: Arc::clone(&origins),
                open: Arc::clone(&open),
                turns,
            },
            releaser: PartitionReleaser { holdings: holdings.clone() },
            remover: VersionRemover { holdings: holdings.clone() },
            repairer: FileRepairer { holdings, fetcher },
            folders,
            open,
            owned,
            origins,
        }
    }

    /// Returns those versions that the topology serves and that are held.
    pub fn served(&self, topology: &TopologyDocument) -> Vec<(String, u64)> {
        let stores = topology.stores.iter();
        let served = stores.filter(|store| self.open.get(&store.name, store.version).is_some());
        served.map(|store| (store.name.clone(), store.version)).collect()
    }
}

fn cannot_open(component: &ComponentDocument, source: OpenError) -> PrepareError {
    PrepareError::Open { component: component.name.clone(), version: component.version, source }
}

/// Groups versions by store.
fn by_store(versions: &[ServedDocument]) -> BTreeMap<&str, Vec<&ServedDocument>> {
    let mut stores: BTreeMap<&str, Vec<&ServedDocument>> = BTreeMap::new();
    for version in versions {
        stores.entry(&version.name).or_default().push(version);
    }
    stores
}
