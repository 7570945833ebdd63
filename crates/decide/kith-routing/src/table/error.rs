//! The reasons why a table is refused.

use kith_types::{Epoch, GroupId, NodeId, PartitionId};
use thiserror::Error;

/// A table contradicts itself.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum TableError {
    /// There is nothing to route to.
    #[error("a routing table needs at least one group and one node")]
    Empty,
    /// There are more groups or nodes than a table may have.
    #[error("{got} {what}, but a routing table holds at most {max}")]
    TooMany {
        /// `groups` or `nodes`.
        what: &'static str,
        /// The number of them.
        got: usize,
        max: usize,
    },
    /// Group ids are not ascending and distinct.
    #[error("group {group} is out of order or listed twice")]
    GroupOrder {
        /// The second group of the pair.
        group: GroupId,
    },
    /// A node is listed twice.
    #[error("node {node} is listed twice")]
    DuplicateNode { node: NodeId },
    /// A node names a group that is not listed.
    #[error("node {node} belongs to group {group}, which is not listed")]
    UnknownGroup {
        node: NodeId,
        /// The group that it names.
        group: GroupId,
    },
    /// A node of a ring is not in the first rank, or a rank is not serving.
    #[error("a ring has one group of nodes, and all its ranks serve")]
    RingGroups,
    /// A replica is not the one that follows from the ring.
    #[error("replica {rank} of partition {partition} is node {got}, but the ring says {expected}")]
    NotOnRing {
        partition: PartitionId,
        /// The rank of the replica; 0 is the first one.
        rank: usize,
        /// The node in the list.
        got: NodeId,
        /// The next distinct node clockwise.
        expected: NodeId,
    },
    /// There are more replicas than nodes.
    #[error("{replicas} replicas need as many nodes on the ring, which has {nodes}")]
    RingTooSmall {
        /// The ranks of the table.
        replicas: usize,
        /// The number of distinct nodes that own a partition.
        nodes: usize,
    },
    /// A list has the wrong length.
    #[error("{what} has {got} entries, expected {expected}")]
    Length {
        /// The name of the list.
        what: &'static str,
        got: usize,
        /// The length it must have.
        expected: usize,
    },
    /// A partition is owned by a node that is not listed, or belongs to another group.
    #[error("group {group} gives partition {partition} to node {node}, which is not one of its nodes")]
    ForeignOwner { group: GroupId, partition: PartitionId, node: NodeId },
    /// A partition has a later epoch than the table.
    #[error("partition {partition} has epoch {got}, later than the table's {table}")]
    PartitionEpoch {
        partition: PartitionId,
        got: Epoch,
        /// The epoch of the table.
        table: Epoch,
    },
}
