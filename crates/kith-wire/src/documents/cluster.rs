//! Documents of the cluster: its shape, and where its nodes and routers are.

use super::Document;
use serde::{Deserialize, Serialize};

/// The shape of a cluster: key `cluster`. Changes only with topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterDocument {
    /// Document format.
    pub format: u32,
    /// Random, so that a node's data directory of another cluster is refused.
    pub cluster_id: String,
    /// Grows with every change of placement.
    pub epoch: u64,
    /// Partition count, fixed at creation.
    pub partitions: u32,
    /// The replica groups, by id.
    pub groups: Vec<GroupDocument>,
    /// Folder or URL of the object store that holds built components.
    pub object_store: String,
    /// How replicas follow from ownership: `ring`, or nothing for replica groups. On a ring `groups` are its ranks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// What there is to say of nodes beyond their group; a node that is not here has no labels and is in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<ListedNodeDocument>,
    /// For each partition the epoch at which its owners last changed; empty: all at `epoch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_epochs: Vec<u64>,
}
impl Document for ClusterDocument {
    const WHAT: &'static str = "cluster";
}

/// One replica group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDocument {
    /// The group.
    pub group: u32,
    /// Its nodes.
    pub nodes: Vec<u32>,
    /// At each partition's index, the node that holds it.
    pub owners: Vec<u32>,
    /// `maintenance`, `joining`, or nothing while it serves.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
}

impl GroupDocument {
    /// Whether its owners hold their partitions: those of a group that joins are being filled.
    pub fn is_filled(&self) -> bool {
        self.role != "joining"
    }

    /// Whether queries may go to its nodes.
    pub fn takes_reads(&self) -> bool {
        self.role.is_empty()
    }
}

impl ClusterDocument {
    /// The partitions whose owner a node is, joining groups aside; ascending.
    pub fn partitions_of(&self, node: u32) -> Vec<u32> {
        let filled = || self.groups.iter().filter(|group| group.is_filled());
        let owns =
            |partition: &u32| filled().any(|group| group.owners.get(*partition as usize) == Some(&node));
        (0..self.partitions).filter(owns).collect()
    }
}

/// A node as the table lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedNodeDocument {
    /// The node.
    pub node: u32,
    /// Its group.
    pub group: u32,
    /// Failure domain inside the region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Failure domain inside the zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rack: String,
    /// Data centre.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Taken out of use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
}

/// Where a node is: key `nodes/<id>`, written by the node when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDocument {
    /// Document format.
    pub format: u32,
    /// The node.
    pub node: u32,
    /// `host:port` of its gRPC service.
    pub addr: String,
    /// `host:port` of `/healthz`, `/readyz` and `/metrics`.
    pub http: String,
    /// `host:port` for Redis clients; empty: it does not serve them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resp: String,
    /// Its process.
    pub pid: u32,
    /// Failure domain inside the region, as the node was started with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Failure domain inside the zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rack: String,
    /// Data centre.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
}
impl Document for NodeDocument {
    const WHAT: &'static str = "node";
}

/// Where a router is: key `routers/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterDocument {
    /// Document format.
    pub format: u32,
    /// The router.
    pub router: u32,
    /// `host:port` of its gRPC service.
    pub addr: String,
    /// `host:port` of its HTTP service.
    pub http: String,
    /// `host:port` for Redis clients; empty: it does not serve them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resp: String,
    /// Its process.
    pub pid: u32,
}
impl Document for RouterDocument {
    const WHAT: &'static str = "router";
}
