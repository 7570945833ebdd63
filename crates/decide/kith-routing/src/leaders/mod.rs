//! Decides which node leads which partition of a live graph, and when leadership moves.
//!
//! [`Leaders::next`] says which nodes should lead. Two parties carry it out. Routers replace leaders that are gone
//! ([`Leaders::replaced`]). A leader that is alive hands over itself ([`Leaders::due`], [`Leaders::given`]), because only it
//! knows when everything that it began is complete, so that no write fails.
//!
//! Leases and health only decide *when* leadership moves. Terms, which the database checks in every transaction, ensure that
//! two nodes never write the same partition (`docs/design/0019-live-graph.md`).

mod draft;

use crate::{GroupIndex, GroupRole, RoutingTable};
use draft::Draft;
use kith_types::{NodeId, PartitionId, Term};
use std::collections::{BTreeMap, BTreeSet};

/// The nodes that are alive, and what they have announced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lives {
    /// The nodes that are alive, including those that are leaving.
    pub alive: BTreeSet<NodeId>,
    /// The nodes that have announced that they are about to end.
    pub leaving: BTreeSet<NodeId>,
    /// The graphs that nodes have announced they cannot open, because they do not reach the databases.
    pub unable: BTreeMap<NodeId, BTreeSet<String>>,
}

impl Lives {
    /// Returns the nodes that may lead partitions of a graph: alive, not leaving, able to open the graph, and in a group that
    /// serves reads.
    pub fn eligible(&self, graph: &str, table: &RoutingTable) -> BTreeSet<NodeId> {
        let groups = table.groups().iter().enumerate();
        let serving = groups.filter(|(_, group)| group.role == GroupRole::Serving);
        let nodes = serving.flat_map(|(index, _)| table.nodes_of(GroupIndex(index as u32)));
        let stays = |node: &NodeId| self.has_opened(*node, graph) && !self.leaving.contains(node);
        nodes.map(|node| node.id).filter(stays).collect()
    }

    /// Whether a node is alive and, as far as is known, able to open a graph. Only then may it have begun something as a leader.
    fn has_opened(&self, node: NodeId, graph: &str) -> bool {
        let is_unable = self.unable.get(&node).is_some_and(|graphs| graphs.contains(graph));
        self.alive.contains(&node) && !is_unable
    }
}

/// The leader of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The node.
    pub node: NodeId,
    /// The term for which it leads.
    pub term: Term,
}

/// The leaders of all partitions of one live graph. `Default` has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaders {
    /// The greatest term that was ever assigned.
    pub term_last: Term,
    /// The leaders by partition; `None` if no node could lead the partition yet.
    pub by_partition: Vec<Option<Leader>>,
}

impl Leaders {
    /// The leader of a partition.
    pub fn of(&self, partition: PartitionId) -> Option<Leader> {
        self.by_partition.get(partition.index()).copied().flatten()
    }

    /// The number of partitions that a node leads.
    pub fn led_by(&self, node: NodeId) -> usize {
        self.by_partition.iter().flatten().filter(|leader| leader.node == node).count()
    }

    /// Returns the leaders that there should be, if they differ from the current ones. `eligible` are the nodes that may
    /// lead ([`Lives::eligible`]).
    ///
    /// An eligible leader keeps its partitions. A partition without one goes to the eligible replica that leads the fewest;
    /// if there is none, it stays where it is. Only if nothing else moves, a few partitions at a time move for balance.
    /// Every partition that moves gets a term that was never used before. `O(partitions × replicas)`.
    pub fn next(&self, table: &RoutingTable, eligible: &BTreeSet<NodeId>) -> Option<Self> {
        let mut draft = Draft::new(self, table, eligible);
        draft.replace_missing();
        if !draft.has_moved() {
            draft.balance();
        }
        draft.next_if_moved()
    }

    /// Returns the decision of [`Leaders::next`] for partitions whose leader is not alive or cannot open the graph, or that have
    /// none. Other leaders stay until they have handed over. `O(partitions × replicas)`.
    pub fn replaced(&self, graph: &str, table: &RoutingTable, lives: &Lives) -> Option<Self> {
        let mut next = self.next(table, &lives.eligible(graph, table))?;
        for (partition, leader) in next.by_partition.iter_mut().enumerate() {
            let now = self.of(PartitionId(partition as u32));
            if now.is_some_and(|now| lives.has_opened(now.node, graph)) {
                *leader = now;
            }
        }
        let has_changed = next.by_partition.iter().flatten().any(|leader| leader.term == next.term_last);
        has_changed.then_some(next)
    }

    /// Returns the partitions that `node` leads and that another node should lead according to [`Leaders::next`]. All nodes
    /// reach the same decision, so no more partitions move for balance than it allows. `O(partitions × replicas)`.
    pub fn due(
        &self,
        node: NodeId,
        table: &RoutingTable,
        eligible: &BTreeSet<NodeId>,
    ) -> BTreeMap<PartitionId, Term> {
        let next = self.next(table, eligible).unwrap_or_default();
        let own = table.partition_count().iter().filter_map(|partition| {
            let leader = self.of(partition).filter(|leader| leader.node == node)?;
            let moves = next.of(partition).is_some_and(|next| next != leader);
            moves.then_some((partition, leader.term))
        });
        own.collect()
    }

    /// Returns successors for partitions that `node` led in these terms and no longer writes. If there is no other eligible
    /// replica, or all others lead more by now, the node leads the partition again with a new term. `None` if `node` leads
    /// none of them in the given term. `O(partitions × replicas)`.
    pub fn given(
        &self,
        node: NodeId,
        released: &BTreeMap<PartitionId, Term>,
        table: &RoutingTable,
        eligible: &BTreeSet<NodeId>,
    ) -> Option<Self> {
        let mut draft = Draft::new(self, table, eligible);
        for (&partition, &term) in released {
            if self.of(partition) == Some(Leader { node, term }) {
                let successor = draft.least(partition).unwrap_or(node);
                draft.give(partition, successor);
            }
        }
        draft.next_if_moved()
    }

    /// Returns new terms for partitions whose terms the database refused and that `node` keeps leading. This happens after
    /// the node has restarted, or after the database was replaced by a copy. Partitions that the node does not lead in the
    /// refused term are unchanged. `None` if no partition changes.
    pub fn renew(&self, node: NodeId, refused: &BTreeMap<PartitionId, Term>) -> Option<Self> {
        let mut next = self.clone();
        next.term_last = Term(self.term_last.0 + 1);
        let mut has_changed = false;
        for (partition, &term) in refused {
            if let Some(Some(leader)) = next.by_partition.get_mut(partition.index())
                && *leader == (Leader { node, term })
            {
                leader.term = next.term_last;
                has_changed = true;
            }
        }
        has_changed.then_some(next)
    }
}

#[cfg(test)]
mod tests;
