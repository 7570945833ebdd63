//! Which node of a group owns which partition (Moolle §III-B).
//!
//! Groups are placed independently: with equal placements a node's death would
//! fall on one neighbour, and set cover could save nothing.

mod rebalance;
mod seeded;

pub use rebalance::{Move, MovePlan, add_node, rebalance, remove_node};

use crate::{GroupEntry, GroupRole, NodeEntry, RoutingTable, TableError, TableParts};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount, PartitionId};
use seeded::Seeded;
use thiserror::Error;

/// Partitions cannot be placed as asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlacementError {
    /// A group has no nodes.
    #[error("group number {group} has no nodes")]
    EmptyGroup {
        /// Its place in the list.
        group: usize,
    },
    /// A node is listed twice.
    #[error("node {node} is listed twice")]
    DuplicateNode {
        /// The node.
        node: NodeId,
    },
    /// A node to remove, or to move from, is not in the group.
    #[error("node {node} is not in the group")]
    UnknownNode {
        /// The node.
        node: NodeId,
    },
}

/// Places every partition once in each group: an independent balanced permutation
/// per group, so that sizes within a group differ by at most one. Equal arguments
/// give equal placements, on every machine and in every release.
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
        Seeded::new(seed, group as u64).shuffle(&mut order);
        let mut owners = vec![nodes[0]; order.len()];
        for (rank, partition) in order.iter().enumerate() {
            owners[partition.index()] = nodes[rank % nodes.len()];
        }
        owners
    };
    Ok(nodes_per_group.iter().enumerate().map(place_group).collect())
}

/// A table of `groups` × `nodes_per_group` nodes without addresses, numbered by
/// group; for simulations, examples and tests.
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
