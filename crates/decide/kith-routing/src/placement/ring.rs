//! Voldemort's consistent-hash ring (Voldemort §3, Figure 3). Nodes own partitions, and the replicas of a partition are on
//! the next distinct nodes clockwise.

use crate::placement::contract::usable;
use crate::placement::{OwnerChange, Placement, PlacementError, PlacementResult, rebalance};
use crate::{GroupIndex, NodeEntry};
use kith_types::{NodeId, PartitionCount, PartitionId};

/// A ring whose preference lists have a given number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The number of replicas of each partition (N), which is the number of ranks of the table.
    pub replicas: usize,
}

/// Returns the owner of each partition for each rank. Rank 0 is as in `ring`. Each further rank is the next node clockwise
/// that has none of the lower ranks. O(partitions × the steps to find these nodes, which are about `replicas`).
///
/// # Errors
/// The number of distinct nodes that own a partition, if it is less than `replicas`.
pub fn preference_lists(ring: &[NodeId], replicas: usize) -> Result<Vec<Vec<NodeId>>, usize> {
    let mut distinct = ring.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < replicas {
        return Err(distinct.len());
    }
    let mut ranks = vec![Vec::with_capacity(ring.len()); replicas];
    let mut list: Vec<NodeId> = Vec::with_capacity(replicas);
    for start in 0..ring.len() {
        list.clear();
        let clockwise = ring[start..].iter().chain(&ring[..start]);
        for node in clockwise {
            if list.len() == replicas {
                break;
            }
            if !list.contains(node) {
                list.push(*node);
            }
        }
        ranks.iter_mut().zip(&list).for_each(|(rank, node)| rank.push(*node));
    }
    Ok(ranks)
}

impl Placement for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn place(&self, partition_count: PartitionCount, nodes: &[NodeEntry], seed: u64) -> PlacementResult {
        let ids = usable(nodes.iter());
        let ring = super::place(partition_count, &[ids], seed)?.remove(0);
        preference_lists(&ring, self.replicas).map_err(|nodes| self.too_small(nodes))
    }

    /// Balances the first replicas. The other replicas follow from them.
    fn rebalance(
        &self,
        owners: &[Vec<NodeId>],
        nodes: &[NodeEntry],
        seed: u64,
    ) -> Result<Vec<OwnerChange>, PlacementError> {
        let ids = usable(nodes.iter());
        let plan = rebalance(&owners[0], &ids, seed)?;
        preference_lists(&plan.owners, self.replicas).map_err(|nodes| self.too_small(nodes))?;
        let change = |step: &super::Move| OwnerChange {
            group: GroupIndex(0),
            partition: step.partition,
            node: step.to,
        };
        Ok(plan.moves.iter().map(change).collect())
    }

    fn apply(&self, owners: &[Vec<NodeId>], changes: &[OwnerChange]) -> PlacementResult {
        let mut ring = owners[0].clone();
        changes.iter().for_each(|change| ring[change.partition.index()] = change.node);
        preference_lists(&ring, self.replicas).map_err(|nodes| self.too_small(nodes))
    }
}

impl Ring {
    fn too_small(&self, nodes: usize) -> PlacementError {
        PlacementError::TooFewNodes { replicas: self.replicas, nodes }
    }

    /// Returns the chunk buckets that a node holds, as (partition, replica id). This is what the source lists per node
    /// (Voldemort §5.1, Table 1).
    pub fn buckets_of(&self, owners: &[Vec<NodeId>], node: NodeId) -> Vec<(PartitionId, usize)> {
        let of_rank = |(rank, owners): (usize, &Vec<NodeId>)| {
            let held = (0..owners.len()).filter(|index| owners[*index] == node);
            held.map(|index| (PartitionId(index as u32), rank)).collect::<Vec<_>>()
        };
        owners.iter().enumerate().flat_map(of_rank).collect()
    }
}
