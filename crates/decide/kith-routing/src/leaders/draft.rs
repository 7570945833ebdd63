//! The next leaders of a graph while they are being decided.

use super::{Leader, Leaders};
use crate::RoutingTable;
use kith_types::{NodeId, PartitionId, Term};
use std::collections::{BTreeMap, BTreeSet};

/// The number of partitions that may move at once only for balance. Each move delays writes by some milliseconds.
pub(super) const BALANCING_MOVES_MAX: usize = 4;

/// The next leaders of a graph, and how many partitions each node then leads.
pub(super) struct Draft<'a> {
    table: &'a RoutingTable,
    eligible: &'a BTreeSet<NodeId>,
    next: Leaders,
    /// The number of partitions that each eligible node leads.
    led: BTreeMap<NodeId, usize>,
    has_moved: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(current: &Leaders, table: &'a RoutingTable, eligible: &'a BTreeSet<NodeId>) -> Self {
        let mut next = current.clone();
        next.term_last = Term(current.term_last.0 + 1);
        next.by_partition.resize(table.partition_count().get() as usize, None);
        let led = eligible.iter().map(|&node| (node, current.led_by(node))).collect();
        Self { table, eligible, next, led, has_moved: false }
    }

    pub(super) fn has_moved(&self) -> bool {
        self.has_moved
    }

    /// Returns the draft if a partition moves.
    pub(super) fn next_if_moved(self) -> Option<Leaders> {
        self.has_moved.then_some(self.next)
    }

    /// The eligible replicas of a partition.
    fn candidates(&self, partition: PartitionId) -> impl Iterator<Item = NodeId> + use<'_> {
        let replicas = self.table.replicas(partition).iter().map(|&index| self.table.node_at(index).id);
        replicas.filter(|node| self.eligible.contains(node))
    }

    /// Returns the candidate that leads the fewest partitions. Among equal ones, the choice rotates from partition to
    /// partition, so that the first leaders of a graph are spread over groups.
    pub(super) fn least(&self, partition: PartitionId) -> Option<NodeId> {
        let candidates: Vec<NodeId> = self.candidates(partition).collect();
        let turn = partition.index() % candidates.len().max(1);
        let in_turn = candidates[turn..].iter().chain(&candidates[..turn]).copied();
        in_turn.min_by_key(|node| self.led(*node))
    }

    fn led(&self, node: NodeId) -> usize {
        self.led.get(&node).copied().unwrap_or(0)
    }

    /// Assigns a partition to a node, with a new term.
    pub(super) fn give(&mut self, partition: PartitionId, node: NodeId) {
        let leader = Leader { node, term: self.next.term_last };
        if let Some(before) = self.next.by_partition[partition.index()].replace(leader)
            && let Some(led) = self.led.get_mut(&before.node)
        {
            *led -= 1;
        }
        *self.led.entry(node).or_default() += 1;
        self.has_moved = true;
    }

    /// Assigns partitions whose leaders are not eligible replicas to replicas that are.
    pub(super) fn replace_missing(&mut self) {
        for partition in self.table.partition_count().iter() {
            let leader = self.next.of(partition).map(|leader| leader.node);
            let stays = leader.is_some_and(|leader| self.candidates(partition).any(|node| node == leader));
            if !stays && let Some(node) = self.least(partition) {
                self.give(partition, node);
            }
        }
        // A leader without a possible successor stays, because it may come back.
    }

    /// Moves partitions from nodes that lead at least two more than another replica of the same partition.
    pub(super) fn balance(&mut self) {
        let mut moves = 0;
        for partition in self.table.partition_count().iter() {
            let (Some(leader), Some(least)) = (self.next.of(partition), self.least(partition)) else {
                continue;
            };
            if self.led(least) + 2 <= self.led(leader.node) {
                self.give(partition, least);
                moves += 1;
            }
            if moves == BALANCING_MOVES_MAX {
                return;
            }
        }
    }
}
