//! What a placement strategy decides: where replicas are placed, and what changes when nodes are added or removed.

use super::PlacementError;
use crate::{GroupIndex, NodeEntry};
use kith_types::{NodeId, PartitionCount, PartitionId};

/// A new owner for one partition's replica in one group. On a ring, the replica is the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerChange {
    /// The group, or 0 on a ring.
    pub group: GroupIndex,
    /// The partition.
    pub partition: PartitionId,
    /// The new owner.
    pub node: NodeId,
}

/// The owner of each partition for each group (on a ring: rank), or why there is none.
pub type PlacementResult = Result<Vec<Vec<NodeId>>, PlacementError>;

/// Decides where replicas are placed.
///
/// Owners are listed per group (on a ring: per rank) and per partition. Implementors must decide by their arguments alone,
/// with the same result on every machine, and must assign nothing to drained nodes.
pub trait Placement {
    /// The name that users type.
    fn name(&self) -> &'static str;

    /// Returns the owners for a new cluster. Sizes (on a ring: of first replicas) differ by at most one.
    ///
    /// # Errors
    /// If a group has no nodes, a node is listed twice, or there are too few nodes.
    fn place(&self, partition_count: PartitionCount, nodes: &[NodeEntry], seed: u64) -> PlacementResult;

    /// Returns the changes after which sizes differ by at most one again, as few as possible.
    ///
    /// # Errors
    /// The errors of [`Placement::place`].
    fn rebalance(
        &self,
        owners: &[Vec<NodeId>],
        nodes: &[NodeEntry],
        seed: u64,
    ) -> Result<Vec<OwnerChange>, PlacementError>;

    /// Returns the owners after some of these changes. Any subset in any order gives a valid table.
    ///
    /// # Errors
    /// If too few nodes remain.
    fn apply(&self, owners: &[Vec<NodeId>], changes: &[OwnerChange]) -> PlacementResult;
}

/// Returns the ids of nodes that may own partitions, ascending, so that the order of the list does not affect the result.
pub(super) fn usable<'a>(nodes: impl Iterator<Item = &'a NodeEntry>) -> Vec<NodeId> {
    let mut ids: Vec<NodeId> = nodes.filter(|node| !node.drained).map(|node| node.id).collect();
    ids.sort_unstable();
    ids
}
