//! The moves that balance a group after a node was added or removed. No other partitions move.

use crate::placement::PlacementError;
use crate::placement::seeded::SeededGenerator;
use kith_types::{NodeId, PartitionId};
use std::collections::BTreeMap;
use std::fmt;

/// A change of owner of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The partition that moves.
    pub partition: PartitionId,
    /// The donor, which may be gone already.
    pub from: NodeId,
    /// The stealer.
    pub to: NodeId,
}

/// The new owners of one group's partitions, and the moves to get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovePlan {
    /// The owner of each partition after the moves.
    pub owners: Vec<NodeId>,
    /// The moves, ascending by partition.
    pub moves: Vec<Move>,
    /// The number of nodes of the group after the moves.
    pub node_count: usize,
}

/// Adds a node to a group. If the group was balanced, exactly ⌊partitions ÷ nodes⌋ partitions move, all of them to the new
/// node. This is the minimum for balance.
///
/// # Errors
/// If the node already owns a partition.
pub fn add_node(owners: &[NodeId], node: NodeId, seed: u64) -> Result<MovePlan, PlacementError> {
    let mut nodes = distinct(owners);
    if nodes.contains(&node) {
        return Err(PlacementError::DuplicateNode { node });
    }
    nodes.push(node);
    rebalance(owners, &nodes, seed)
}

/// Removes a node from a group. Its partitions go to the other nodes.
///
/// # Errors
/// If the node owns nothing, or is the only node.
pub fn remove_node(owners: &[NodeId], node: NodeId, seed: u64) -> Result<MovePlan, PlacementError> {
    let mut nodes = distinct(owners);
    let index = nodes.iter().position(|known| *known == node).ok_or(PlacementError::UnknownNode { node })?;
    nodes.remove(index);
    rebalance(owners, &nodes, seed)
}

/// Spreads a group's partitions over `nodes` so that sizes differ by at most one, with as few moves as possible. Owners that
/// are not in `nodes` give up all their partitions.
///
/// # Errors
/// If `nodes` is empty or contains a node twice.
pub fn rebalance(owners: &[NodeId], nodes: &[NodeId], seed: u64) -> Result<MovePlan, PlacementError> {
    rebalance_by(owners, nodes, seed, |_| 0)
}

/// Like [`rebalance`]. A donor gives the partitions with the highest `cost` at their place; equal ones are drawn at random.
pub(super) fn rebalance_by(
    owners: &[NodeId],
    nodes: &[NodeId],
    seed: u64,
    cost: impl Fn(usize) -> u64,
) -> Result<MovePlan, PlacementError> {
    super::check_nodes(&[nodes.to_vec()])?;
    let room = room_by_node(owners, nodes);
    let mut order: Vec<usize> = (0..owners.len()).collect();
    // Which partitions a donor gives is random, and differs between groups because no two groups share a node. So placements
    // stay independent of each other.
    let stream = nodes.iter().map(|node| u64::from(node.0)).max().unwrap_or(0);
    SeededGenerator::new(seed, stream).shuffle(&mut order);
    order.sort_by_cached_key(|partition| cost(*partition));

    let mut kept: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut homeless = Vec::new();
    for partition in order {
        let owner = owners[partition];
        let count = kept.entry(owner).or_default();
        if *count < room.get(&owner).copied().unwrap_or(0) { *count += 1 } else { homeless.push(partition) }
    }
    let free = room.iter().flat_map(|(node, room)| {
        let kept = kept.get(node).copied().unwrap_or(0);
        std::iter::repeat_n(*node, room - kept)
    });
    let to_move = |(partition, to): (usize, NodeId)| Move {
        partition: PartitionId(partition as u32),
        from: owners[partition],
        to,
    };
    let mut moves: Vec<Move> = homeless.into_iter().zip(free).map(to_move).collect();
    moves.sort_unstable_by_key(|step| step.partition);
    let mut owners = owners.to_vec();
    moves.iter().for_each(|step| owners[step.partition.index()] = step.to);
    Ok(MovePlan { owners, moves, node_count: nodes.len() })
}

/// Returns how many partitions each node should have. The nodes with the most partitions now may keep one more than the
/// others, which minimizes the moves.
fn room_by_node(owners: &[NodeId], nodes: &[NodeId]) -> BTreeMap<NodeId, usize> {
    let mut now: BTreeMap<NodeId, usize> = nodes.iter().map(|node| (*node, 0)).collect();
    for owner in owners {
        now.entry(*owner).and_modify(|count| *count += 1);
    }
    let mut by_size: Vec<NodeId> = nodes.to_vec();
    by_size.sort_by_key(|node| (std::cmp::Reverse(now[node]), *node));
    let (each, spare) = (owners.len() / nodes.len(), owners.len() % nodes.len());
    by_size.into_iter().enumerate().map(|(rank, node)| (node, each + usize::from(rank < spare))).collect()
}

fn distinct(owners: &[NodeId]) -> Vec<NodeId> {
    let mut nodes = owners.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// One line for the whole plan, then one line per pair of nodes.
impl fmt::Display for MovePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (moves, all, nodes) = (self.moves.len(), self.owners.len(), self.node_count);
        write!(f, "move {moves} of {all} partitions to balance {nodes} nodes")?;
        let mut pairs: BTreeMap<(NodeId, NodeId), Vec<String>> = BTreeMap::new();
        for step in &self.moves {
            pairs.entry((step.from, step.to)).or_default().push(step.partition.to_string());
        }
        for ((from, to), partitions) in pairs {
            write!(f, "\n  {from} -> {to}: {}", partitions.join(" "))?;
        }
        Ok(())
    }
}
