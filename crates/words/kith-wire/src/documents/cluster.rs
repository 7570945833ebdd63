//! Documents of the cluster: its shape, and the addresses of its nodes and routers.

use super::Document;
use serde::{Deserialize, Serialize};

/// The shape of a cluster, under the key `cluster`. It changes only when the topology does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterDocument {
    /// Document format.
    pub format: u32,
    /// A random id, by which a node refuses a data directory of another cluster.
    pub cluster_id: String,
    /// The epoch of the routing table, which grows with every change of placement.
    pub epoch: u64,
    /// The number of partitions, which is fixed when the cluster is created.
    pub partitions: u32,
    /// The replica groups, by id. On a ring, each is one rank.
    pub groups: Vec<GroupDocument>,
    /// The folder or URL of the object store that holds built components.
    pub object_store: String,
    /// The strategy by which replicas follow from ownership: `ring`, or empty for replica groups.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// Labels and states of nodes. A node that is not listed here has no labels and is in use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed: Vec<ListedNodeDocument>,
    /// For each partition, the epoch at which its owners last changed. Empty means `epoch` for all partitions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partition_epochs: Vec<u64>,
}
impl Document for ClusterDocument {
    const WHAT: &'static str = "cluster";
}

/// One replica group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDocument {
    /// The id of the group.
    pub group: u32,
    /// The nodes of the group.
    pub nodes: Vec<u32>,
    /// The node that owns each partition, by partition number.
    pub owners: Vec<u32>,
    /// `maintenance`, `joining`, or empty while the group serves.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
}

impl GroupDocument {
    /// Whether the owners hold their partitions. A joining group is still being filled.
    pub fn is_filled(&self) -> bool {
        self.role != "joining"
    }

    /// Whether queries may go to the nodes of this group.
    pub fn takes_reads(&self) -> bool {
        self.role.is_empty()
    }
}

impl ClusterDocument {
    /// Returns the partitions that a node owns in groups that are not joining, ascending.
    pub fn partitions_of(&self, node: u32) -> Vec<u32> {
        let filled = || self.groups.iter().filter(|group| group.is_filled());
        let owns =
            |partition: &u32| filled().any(|group| group.owners.get(*partition as usize) == Some(&node));
        (0..self.partitions).filter(owns).collect()
    }
}

/// A node as the routing table lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedNodeDocument {
    /// The id of the node.
    pub node: u32,
    /// The group of the node.
    pub group: u32,
    /// The failure domain within the region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The failure domain within the zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rack: String,
    /// The region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Whether the node was drained, so that it owns no partitions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
}

/// The addresses, process and failure domains of a node, under the key `nodes/<id>`. The node writes it when it starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDocument {
    /// Document format.
    pub format: u32,
    /// The id of the node.
    pub node: u32,
    /// `host:port` of its gRPC service.
    pub addr: String,
    /// `host:port` of `/healthz`, `/readyz` and `/metrics`.
    pub http: String,
    /// `host:port` for Redis clients. Empty means that the node does not serve them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resp: String,
    /// The id of its process.
    pub pid: u32,
    /// The failure domain within the region, as the node was started with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The failure domain within the zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rack: String,
    /// The region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
}
impl Document for NodeDocument {
    const WHAT: &'static str = "node";
}

/// The addresses and process of a router, under the key `routers/<id>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterDocument {
    /// Document format.
    pub format: u32,
    /// The id of the router.
    pub router: u32,
    /// `host:port` of its gRPC service.
    pub addr: String,
    /// `host:port` of its HTTP service.
    pub http: String,
    /// `host:port` for Redis clients. Empty means that the router does not serve them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resp: String,
    /// `host:port` for Gremlin drivers. Empty means that the router does not serve them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gremlin: String,
    /// The id of its process.
    pub pid: u32,
}
impl Document for RouterDocument {
    const WHAT: &'static str = "router";
}
