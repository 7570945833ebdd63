//! Placement: which node of a group owns which partition (Moolle §III-B).
//!
//! Groups are placed independently. With equal placements, the load of a dead node would fall on one neighbour, and set
//! cover would save nothing.

mod apart;
mod contract;
mod outage;
mod rebalance;
mod ring;
mod seeded;
mod strategy;

pub use apart::{SharedPairs, shared_domains};
pub use contract::{OwnerChange, Placement, PlacementResult};
pub use outage::{OutageRisk, outage_risk};
pub use rebalance::{Move, MovePlan, add_node, rebalance, remove_node};
pub use ring::{Ring, preference_lists};
pub use strategy::{ReplicaGroups, place_beside};

use crate::{GroupEntry, GroupRole, NodeEntry, RoutingTable, Strategy, TableError, TableParts};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount, PartitionId};
use seeded::SeededGenerator;
use thiserror::Error;

/// The reason why partitions cannot be placed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PlacementError {
    /// A group has no nodes.
    #[error("group number {group} has no nodes")]
    EmptyGroup {
        /// The index of the group in the list.
        group: usize,
    },
    /// A node is listed twice.
    #[error("node {node} is listed twice")]
    DuplicateNode { node: NodeId },
    /// The ring has fewer nodes than replicas.
    #[error("{replicas} replicas need as many nodes on the ring, which has {nodes}")]
    TooFewNodes {
        /// The number of replicas of each partition.
        replicas: usize,
        /// The number of nodes that would own a partition.
        nodes: usize,
    },
    /// A node to remove, or to move from, is not in the group.
    #[error("node {node} is not in the group")]
    UnknownNode { node: NodeId },
}

/// Places every partition once in each group, by an independent balanced permutation per group, so that sizes within a group
/// differ by at most one. Equal arguments give equal placements on every machine and in every release.
///
/// # Errors
/// If a group is empty or a node is listed twice.
pub fn place(
    partition_count: PartitionCount,
    nodes_per_group: &[Vec<NodeId>],
    seed: u64,
) -> Result<Vec<Vec<NodeId>>, PlacementError> {
    check_nodes(nodes_per_group)?;
    let place_group = |(group, nodes): (usize, &Vec<NodeId>)| {
        let mut order: Vec<PartitionId> = partition_count.iter().collect();
        SeededGenerator::new(seed, group as u64).shuffle(&mut order);
        let mut owners = vec![nodes[0]; order.len()];
        for (rank, partition) in order.iter().enumerate() {
            owners[partition.index()] = nodes[rank % nodes.len()];
        }
        owners
    };
    Ok(nodes_per_group.iter().enumerate().map(place_group).collect())
}

/// Returns a table of `groups` × `nodes_per_group` nodes without addresses, numbered group by group. For simulations,
/// examples and tests.
///
/// # Errors
/// If there are no groups or nodes, or too many.
pub fn uniform_table(
    groups: u32,
    nodes_per_group: u32,
    partition_count: PartitionCount,
    seed: u64,
) -> Result<RoutingTable, TableError> {
    let ids = |group: u32| (group * nodes_per_group..(group + 1) * nodes_per_group).map(NodeId).collect();
    let by_group: Vec<Vec<NodeId>> = (0..groups).map(ids).collect();
    let owners = place(partition_count, &by_group, seed).map_err(|_| TableError::Empty)?;
    let entry =
        |group: u32, id: &NodeId| NodeEntry { id: *id, group: GroupId(group), ..NodeEntry::default() };
    let nodes =
        (0..groups).zip(&by_group).flat_map(|(group, ids)| ids.iter().map(move |id| entry(group, id)));
    RoutingTable::new(TableParts {
        epoch: Epoch(1),
        strategy: Strategy::ReplicaGroups,
        partition_count,
        groups: (0..groups).map(|id| GroupEntry { id: GroupId(id), role: GroupRole::Serving }).collect(),
        nodes: nodes.collect(),
        owners,
        partition_epochs: Vec::new(),
    })
}

fn check_nodes(nodes_per_group: &[Vec<NodeId>]) -> Result<(), PlacementError> {
    if let Some(group) = nodes_per_group.iter().position(Vec::is_empty) {
        return Err(PlacementError::EmptyGroup { group });
    }
    let mut all: Vec<NodeId> = nodes_per_group.iter().flatten().copied().collect();
    all.sort_unstable();
    match all.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(PlacementError::DuplicateNode { node: pair[0] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(range: std::ops::Range<u32>) -> Vec<NodeId> {
        range.map(NodeId).collect()
    }

    fn count(partitions: u32) -> PartitionCount {
        PartitionCount::new(partitions).unwrap()
    }

    #[test]
    fn a_placement_is_the_same_for_ever() {
        let owners = place(count(12), &[ids(0..3), ids(3..6)], 42).unwrap();
        let numbers = |owners: &Vec<NodeId>| owners.iter().map(|owner| owner.0).collect::<Vec<_>>();
        let owners: Vec<_> = owners.iter().map(numbers).collect();
        assert_eq!(owners, [[1, 2, 1, 1, 1, 0, 0, 2, 0, 2, 2, 0], [4, 5, 3, 3, 4, 5, 3, 5, 4, 3, 5, 4]]);
    }

    #[test]
    fn what_cannot_be_placed_is_refused() {
        assert_eq!(place(count(4), &[ids(0..2), vec![]], 1), Err(PlacementError::EmptyGroup { group: 1 }));
        let node = NodeId(1);
        assert_eq!(place(count(4), &[ids(0..2), ids(1..3)], 1), Err(PlacementError::DuplicateNode { node }));
        let owners = place(count(4), &[ids(0..2)], 1).unwrap().remove(0);
        assert_eq!(add_node(&owners, node, 1), Err(PlacementError::DuplicateNode { node }));
        let node = NodeId(8);
        assert_eq!(remove_node(&owners, node, 1), Err(PlacementError::UnknownNode { node }));
        let alone = place(count(4), &[ids(0..1)], 1).unwrap().remove(0);
        assert_eq!(remove_node(&alone, NodeId(0), 1), Err(PlacementError::EmptyGroup { group: 0 }));
    }

    #[test]
    fn a_plan_of_moves_reads_well() {
        let owners: Vec<NodeId> = [0, 0, 0, 1, 1, 1, 2, 2, 2].map(NodeId).to_vec();
        let text = add_node(&owners, NodeId(3), 1).unwrap().to_string();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("move 2 of 9 partitions to balance 4 nodes"));
        assert!(lines.all(|line| line.contains(" -> n3: p")), "{text}");
        let text = rebalance(&owners, &ids(0..3), 1).unwrap().to_string();
        assert_eq!(text, "move 0 of 9 partitions to balance 3 nodes");
    }
}
