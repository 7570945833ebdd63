//! The nodes that hold one version of a store.

use crate::{
    failure::{ErrorReport, Failure},
    store::described,
};
use anyhow::Context;
use kith_client::{Inspector, QueryError, RouterClient, security::Dialer};
use kith_routing::{NodeIndex, StoreReach};
use kith_topology::Topology;
use kith_types::{ErrorCode, NodeId, PartitionId};
use kith_wire::documents::{ServedDocument, StoreDocument};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// A version of a store, with the nodes that should hold it.
pub struct Replicas {
    pub version: ServedDocument,
    topology: Topology,
    reach: StoreReach,
    /// The dialer of the connection to the router, which nodes are connected to with too.
    dialer: Dialer,
    /// The states of the nodes (`up`, `down`, …), as the router sees them, by node id.
    states: BTreeMap<u32, String>,
}

/// A node that should hold the version, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    pub group: u32,
    pub node: u32,
    pub addr: String,
    pub state: String,
    /// Whether a push left the node out. Such a node does not have the version yet and gets no reads of it.
    pub excluded: bool,
}

impl Replicas {
    /// Returns the replicas of a version of a store, or of the served version if `version` is `None`.
    ///
    /// # Errors
    /// If there is no such store, the version is not kept, or the router does not answer.
    pub async fn of(router: &RouterClient, store: &str, version: Option<u64>) -> anyhow::Result<Self> {
        let document = described(router, store).await?;
        let version = kept(&document, version)?;
        let status = router.status().await.context("read the cluster's status")?;
        let topology = Topology::from_document(Arc::new(router.topology().await?))
            .context("read the cluster's topology")?;
        let excluded: Vec<NodeId> = version.excluded.iter().copied().map(NodeId).collect();
        let copies = version.definition.replication;
        let reach = StoreReach::new(&topology.table, store, copies, &excluded);
        let states = status.nodes.into_iter().map(|node| (node.node, node.state)).collect();
        Ok(Self { version, topology, reach, dialer: router.dialer().clone(), states })
    }

    /// Returns a connection to a node.
    ///
    /// # Errors
    /// If the address is invalid.
    pub fn inspector(&self, addr: &str) -> Result<Inspector, QueryError> {
        Inspector::new(&self.dialer, addr)
    }

    /// The metadata revision that this view was read from.
    pub fn revision(&self) -> u64 {
        self.topology.revision
    }

    /// Returns every node that should hold some of the version, by group.
    pub fn nodes(&self) -> Vec<Replica> {
        let table = &self.topology.table;
        let partitions = table.partition_count().iter();
        self.replicas(partitions.flat_map(|partition| self.reach.replicas(table, partition)).collect())
    }

    /// Returns the nodes that should hold a partition, by group.
    pub fn of_partition(&self, partition: PartitionId) -> Vec<Replica> {
        self.replicas(self.reach.replicas(&self.topology.table, partition).collect())
    }

    /// The number of partitions.
    pub fn partition_count(&self) -> kith_types::PartitionCount {
        self.topology.table.partition_count()
    }

    fn replicas(&self, nodes: BTreeSet<NodeIndex>) -> Vec<Replica> {
        let mut replicas: Vec<Replica> = nodes.into_iter().map(|index| self.replica(index)).collect();
        replicas.sort_by_key(|replica| (replica.group, replica.node));
        replicas
    }

    fn replica(&self, index: NodeIndex) -> Replica {
        let node = self.topology.table.node_at(index);
        Replica {
            group: node.group.0,
            node: node.id.0,
            addr: node.address.clone(),
            state: self.states.get(&node.id.0).cloned().unwrap_or_else(|| "unknown".to_owned()),
            excluded: self.version.excluded.contains(&node.id.0),
        }
    }
}

/// Turns the answer of a node, or its error, into a part of the reply.
///
/// # Errors
/// If the node refuses the caller, or does not know them: this says nothing about the data that it has.
pub fn unless_denied<T>(answer: Result<T, QueryError>) -> Result<Result<T, ErrorReport>, QueryError> {
    match answer {
        Err(error) if error.is_denied() => Err(error),
        answer => Ok(answer.map_err(|error| ErrorReport::of(&error.into()))),
    }
}

fn kept(document: &StoreDocument, version: Option<u64>) -> Result<ServedDocument, Failure> {
    let store = &document.name;
    let Some(number) = version else {
        let current = document.current().map(|current| document.at(current));
        return current.ok_or_else(|| {
            let message = format!("store {store:?} serves no version yet");
            Failure::new(ErrorCode::NoVersion, message, "push one: kith store push")
        });
    };
    let is_kept = |state: &str| matches!(state, "current" | "retained" | "blocked");
    let found = document.versions.iter().find(|entry| entry.version == number && is_kept(&entry.state));
    found.map(|entry| document.at(entry)).ok_or_else(|| {
        let message = format!("version {number} of store {store:?} is not kept");
        Failure::new(
            ErrorCode::VersionNotKept,
            message,
            format!("`kith store versions {store}` lists the versions that are kept"),
        )
    })
}
