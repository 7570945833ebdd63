//! The shape of a cluster. It is written once into the metadata store, and checked at every later start.

use super::object_store;
use kith_cluster::metadata::{CommitOutcome, Condition, MetadataStore, Write, keys};
use kith_cluster::{Labels, StartError};
use kith_files::objects::Location;
use kith_routing::{GroupEntry, GroupRole, NodeEntry, Strategy, TableParts, placement::outage_risk};
use kith_topology::{cluster_document, table_parts};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount};
use kith_wire::documents::{ClusterDocument, DOCUMENT_FORMAT, Document};
use std::{collections::BTreeMap, path::Path};

/// Number of groups of a new cluster.
const GROUPS_DEFAULT: u32 = 2;
/// Number of nodes per group of a new cluster.
const NODES_DEFAULT: u32 = 3;
/// Number of partitions of a new development cluster. It is small, so that a small graph makes few files.
const PARTITIONS_DEFAULT: u32 = 24;

/// The shape that a cluster should have. A field that is `None` is taken from the data directory, or has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The placement of replicas.
    pub placement: Option<Strategy>,
    /// Replica groups; on a ring, the number of replicas of each partition.
    pub groups: Option<u32>,
    /// Nodes per group; on a ring, all nodes.
    pub nodes: Option<u32>,
    /// The number of partitions.
    pub partitions: Option<u32>,
    /// Zones over which the nodes of each group are spread, in turn. Only for a new cluster.
    pub zones: Vec<String>,
    /// Labels of nodes, by id. A zone here takes precedence over `zones`. Only for a new cluster.
    pub labels: BTreeMap<u32, Labels>,
    /// Create the cluster even if the loss of one zone or rack takes all replicas of a partition although the nodes are in
    /// several.
    pub allow_shared_zones: bool,
}

/// The result of a request for a cluster.
#[derive(Clone, Debug)]
pub struct ClusterResult {
    /// The document of the cluster.
    pub cluster: ClusterDocument,
    /// Whether the cluster was created now. If not, it existed already and has the requested shape.
    pub is_new: bool,
}

/// Creates a cluster in `store`, for `kith cluster create`. A cluster that exists already with the requested shape and
/// object store is left as it is.
///
/// # Errors
/// [`StartError::Topology`] if another cluster exists or the shape is invalid; [`StartError::Metadata`].
pub async fn create_cluster(
    store: &dyn MetadataStore,
    shape: &Shape,
    object_store: &str,
) -> Result<ClusterResult, StartError> {
    let snapshot = store.read(keys::CLUSTER).await?;
    let Some(entry) = snapshot.get(keys::CLUSTER) else {
        return Ok(ClusterResult {
            cluster: make(store, shape, object_store.to_owned()).await?,
            is_new: true,
        });
    };
    let cluster = decode(&entry.value)?;
    check(shape, &cluster, "the metadata store")?;
    if cluster.object_store != object_store {
        let detail = format!(
            "the metadata store holds a cluster with the object store {}, not {}",
            cluster.object_store, object_store
        );
        return Err(StartError::Topology { detail });
    }
    object_store::claim(&cluster).await?;
    Ok(ClusterResult { cluster, is_new: false })
}

/// Returns the cluster in `store`, after checking that it has the requested shape. Creates it if there is none.
pub async fn create_or_check(
    store: &dyn MetadataStore,
    shape: &Shape,
    folder: &Path,
    objects: Option<&str>,
) -> Result<ClusterDocument, StartError> {
    let snapshot = store.read(keys::CLUSTER).await?;
    if let Some(entry) = snapshot.get(keys::CLUSTER) {
        let mut cluster = decode(&entry.value)?;
        check(shape, &cluster, "the data directory")?;
        let is_url = Location::is_url(&cluster.object_store);
        match objects {
            // The data directory may have been moved.
            None if !is_url => cluster.object_store = folder.display().to_string(),
            Some(objects) if is_url && cluster.object_store != objects => {
                let detail = format!("the cluster's object store is {}, not {objects}", cluster.object_store);
                return Err(StartError::Topology { detail });
            }
            Some(objects) if !is_url => {
                let detail =
                    format!("the cluster's object store is a folder of the data directory, not {objects}");
                return Err(StartError::Topology { detail });
            }
            _ => {}
        }
        store.commit(Vec::new(), vec![Write::put(keys::CLUSTER, cluster.encode())]).await?;
        object_store::check_claim(&cluster).await?;
        return Ok(cluster);
    }
    make(store, shape, objects.map_or_else(|| folder.display().to_string(), str::to_owned)).await
}

async fn make(
    store: &dyn MetadataStore,
    shape: &Shape,
    object_store: String,
) -> Result<ClusterDocument, StartError> {
    let cluster = create(shape, object_store)?;
    let only_if_new = Condition { key: keys::CLUSTER.to_owned(), revision: 0 };
    match store.commit(vec![only_if_new], vec![Write::put(keys::CLUSTER, cluster.encode())]).await? {
        CommitOutcome::At(revision) => {
            if let Err(error) = object_store::claim(&cluster).await {
                // Remove the cluster again, so that another object store can be named.
                let ours = Condition { key: keys::CLUSTER.to_owned(), revision };
                store.commit(vec![ours], vec![Write::delete(keys::CLUSTER.to_owned())]).await?;
                return Err(error);
            }
            Ok(cluster)
        }
        CommitOutcome::Conflict => Err(StartError::Topology {
            detail: "another process created a cluster at the same time".to_owned(),
        }),
    }
}

fn decode(value: &[u8]) -> Result<ClusterDocument, StartError> {
    ClusterDocument::decode(value).map_err(|error| StartError::Topology { detail: error.to_string() })
}

fn check(shape: &Shape, cluster: &ClusterDocument, store: &str) -> Result<(), StartError> {
    let parts = table_parts(cluster).map_err(|error| StartError::Topology { detail: error.to_string() })?;
    if shape.placement.is_some_and(|wanted| wanted != parts.strategy) {
        let held = match parts.strategy {
            Strategy::ReplicaGroups => "replica groups",
            Strategy::Ring => "a ring",
        };
        let detail = format!(
            "{store} holds a cluster placed by {held}; leave the flag out, or create a new cluster elsewhere"
        );
        return Err(StartError::Topology { detail });
    }
    let groups = cluster.groups.len() as u32;
    let nodes = cluster.groups.first().map_or(0, |group| group.nodes.len() as u32);
    let wanted = [
        (shape.groups, groups, "groups"),
        (shape.nodes, nodes, "nodes"),
        (shape.partitions, cluster.partitions, "partitions"),
    ];
    for (wanted, got, what) in wanted {
        if wanted.is_some_and(|wanted| wanted != got) {
            let detail = format!(
                "{store} holds a cluster with {got} {what}, not {}; leave the flag out, or create a new cluster elsewhere",
                wanted.unwrap_or_default()
            );
            return Err(StartError::Topology { detail });
        }
    }
    Ok(())
}

fn create(shape: &Shape, object_store: String) -> Result<ClusterDocument, StartError> {
    let groups = shape.groups.unwrap_or(GROUPS_DEFAULT);
    let nodes = shape.nodes.unwrap_or(NODES_DEFAULT);
    let partitions = shape.partitions.unwrap_or(PARTITIONS_DEFAULT);
    let bad = |detail: String| StartError::Topology { detail };
    let count = PartitionCount::new(partitions)
        .ok_or_else(|| bad(format!("{partitions} partitions: must be 1 to {}", PartitionCount::MAX)))?;
    let groups: Vec<GroupEntry> =
        (0..groups).map(|id| GroupEntry { id: GroupId(id), role: GroupRole::Serving }).collect();
    let strategy = shape.placement.unwrap_or_default();
    let ids: Vec<GroupId> = groups.iter().map(|group| group.id).collect();
    let nodes = entries(shape, strategy, &ids, nodes);
    let placement = strategy.placement(&ids);
    let owners = placement.place(count, &nodes, rand::random()).map_err(|error| bad(error.to_string()))?;
    match outage_risk(&owners, &nodes) {
        Some(risk) if !shape.allow_shared_zones => return Err(risk.into()),
        _ => {}
    }
    let parts = TableParts {
        epoch: Epoch(1),
        strategy,
        partition_count: count,
        groups,
        nodes,
        owners,
        partition_epochs: Vec::new(),
    };
    let bare = ClusterDocument {
        format: DOCUMENT_FORMAT,
        cluster_id: format!("{:016x}", rand::random::<u64>()),
        object_store,
        epoch: 1,
        partitions,
        groups: Vec::new(),
        strategy: String::new(),
        listed: Vec::new(),
        partition_epochs: Vec::new(),
    };
    Ok(cluster_document(&parts, &bare))
}

/// Returns the nodes of a new cluster, `nodes` of them in each group.
fn entries(shape: &Shape, strategy: Strategy, groups: &[GroupId], nodes: u32) -> Vec<NodeEntry> {
    let homes = match strategy {
        Strategy::ReplicaGroups => groups,
        // On a ring, groups are ranks of replicas, so all nodes are listed in the first one.
        Strategy::Ring => &groups[..1.min(groups.len())],
    };
    let numbered = homes.iter().flat_map(|&group| (0..nodes).map(move |index| (group, index)));
    numbered.map(|(group, index)| entry(shape, group, nodes, index)).collect()
}

fn entry(shape: &Shape, group: GroupId, nodes: u32, index: u32) -> NodeEntry {
    let id = group.0 * nodes + index;
    let labels = shape.labels.get(&id).cloned().unwrap_or_default();
    let zone = match labels.zone.is_empty() {
        true => shape.zones.get(index as usize % shape.zones.len().max(1)).cloned().unwrap_or_default(),
        false => labels.zone,
    };
    let (rack, region) = (labels.rack, labels.region);
    NodeEntry { id: NodeId(id), group, zone, rack, region, ..NodeEntry::default() }
}

/// Removes the routers of an earlier run that this run does not start.
pub async fn remove_stale(store: &dyn MetadataStore, routers: u32) -> Result<(), StartError> {
    let snapshot = store.read(keys::ROUTERS).await?;
    let wanted: Vec<String> = (0..routers).map(keys::router).collect();
    let stale = snapshot.entries.iter().filter(|entry| !wanted.contains(&entry.key));
    let writes: Vec<Write> = stale.map(|entry| Write::delete(entry.key.clone())).collect();
    if !writes.is_empty() {
        store.commit(Vec::new(), writes).await?;
    }
    Ok(())
}
