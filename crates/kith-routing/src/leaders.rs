//! Which node leads which partition of a live graph, and when leadership moves.
//!
//! Leases and health only decide *when* it moves. That two nodes never write the same partition is ensured by terms, which the
//! database checks in every transaction (`docs/design/0019-live-graph.md`).

use crate::RoutingTable;
use kith_types::{NodeId, PartitionId, Term};
use std::collections::{BTreeMap, BTreeSet};

/// At most so many partitions change hands for the sake of balance at once: each move holds up writes for some milliseconds.
const BALANCING_MOVES_MAX: usize = 4;

/// Who leads one partition.
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
    /// The greatest term that was ever given.
    pub term_last: Term,
    /// By partition; `None` where no node could lead yet.
    pub by_partition: Vec<Option<Leader>>,
}

impl Leaders {
    /// The leader of a partition.
    pub fn of(&self, partition: PartitionId) -> Option<Leader> {
        self.by_partition.get(partition.index()).copied().flatten()
    }

    /// How many partitions a node leads.
    pub fn led_by(&self, node: NodeId) -> usize {
        self.by_partition.iter().flatten().filter(|leader| leader.node == node).count()
    }

    /// Who should lead, if that differs from who does. `eligible` are the nodes that are alive and may lead: those that are
    /// leaving, or whose group takes no reads, may not.
    ///
    /// A leader that may lead keeps its partitions. A partition without such a leader goes to the eligible replica that leads
    /// the fewest; if there is none, it stays where it is. Only if nothing else moves, partitions move for the sake of balance,
    /// a few at a time. Every partition that moves gets a term that was never used before. `O(partitions × replicas)`.
    pub fn next(&self, table: &RoutingTable, eligible: &BTreeSet<NodeId>) -> Option<Self> {
        let mut draft = Draft::new(self, table, eligible);
        draft.replace_missing();
        if !draft.has_moved {
            draft.balance();
        }
        draft.has_moved.then_some(draft.next)
    }

    /// New terms for these partitions, which `node` leads and goes on leading: after it has started again, or after the database
    /// was replaced by a copy. Partitions that it does not lead keep what they have. `None` if it leads none of them.
    pub fn renew(&self, node: NodeId, partitions: &[PartitionId]) -> Option<Self> {
        let mut next = self.clone();
        next.term_last = Term(self.term_last.0 + 1);
        let mut has_changed = false;
        for partition in partitions {
            if let Some(Some(leader)) = next.by_partition.get_mut(partition.index())
                && leader.node == node
            {
                leader.term = next.term_last;
                has_changed = true;
            }
        }
        has_changed.then_some(next)
    }
}

/// The next leaders while they are being decided.
struct Draft<'a> {
    table: &'a RoutingTable,
    eligible: &'a BTreeSet<NodeId>,
    next: Leaders,
    /// How many partitions each eligible node leads.
    led: BTreeMap<NodeId, usize>,
    has_moved: bool,
}

impl<'a> Draft<'a> {
    fn new(current: &Leaders, table: &'a RoutingTable, eligible: &'a BTreeSet<NodeId>) -> Self {
        let mut next = current.clone();
        next.term_last = Term(current.term_last.0 + 1);
        next.by_partition.resize(table.partition_count().get() as usize, None);
        let led = eligible.iter().map(|&node| (node, current.led_by(node))).collect();
        Self { table, eligible, next, led, has_moved: false }
    }

    /// The eligible replicas of a partition.
    fn candidates(&self, partition: PartitionId) -> impl Iterator<Item = NodeId> + use<'_> {
        let replicas = self.table.replicas(partition).iter().map(|&index| self.table.node_at(index).id);
        replicas.filter(|node| self.eligible.contains(node))
    }

    /// The candidate that leads the fewest partitions. Of equals, another one for each partition, so that the first leaders of a
    /// graph are spread over groups.
    fn least(&self, partition: PartitionId) -> Option<NodeId> {
        let candidates: Vec<NodeId> = self.candidates(partition).collect();
        let turn = partition.index() % candidates.len().max(1);
        let in_turn = candidates[turn..].iter().chain(&candidates[..turn]).copied();
        in_turn.min_by_key(|node| self.led(*node))
    }

    fn led(&self, node: NodeId) -> usize {
        self.led.get(&node).copied().unwrap_or(0)
    }

    fn give(&mut self, partition: PartitionId, node: NodeId) {
        let leader = Leader { node, term: self.next.term_last };
        if let Some(before) = self.next.by_partition[partition.index()].replace(leader)
            && let Some(led) = self.led.get_mut(&before.node)
        {
            *led -= 1;
        }
        *self.led.entry(node).or_default() += 1;
        self.has_moved = true;
    }

    fn replace_missing(&mut self) {
        for partition in self.table.partition_count().iter() {
            let leader = self.next.of(partition).map(|leader| leader.node);
            let stays = leader.is_some_and(|leader| self.candidates(partition).any(|node| node == leader));
            if !stays && let Some(node) = self.least(partition) {
                self.give(partition, node);
            }
        }
        // A leader that no longer holds its partition, and has no successor, is kept: it may come back.
    }

    /// Moves partitions from nodes that lead at least two more than another replica of the same partition.
    fn balance(&mut self) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement;
    use kith_types::PartitionCount;
    use proptest::prelude::*;

    fn table(groups: u32, nodes: u32) -> RoutingTable {
        placement::uniform_table(groups, nodes, PartitionCount::new(24).unwrap(), 1).unwrap()
    }

    fn everybody(table: &RoutingTable) -> BTreeSet<NodeId> {
        table.nodes().iter().map(|node| node.id).collect()
    }

    /// Decides again and again until nothing changes.
    fn settle(mut leaders: Leaders, table: &RoutingTable, eligible: &BTreeSet<NodeId>) -> Leaders {
        for _ in 0..1_000 {
            match leaders.next(table, eligible) {
                Some(next) => leaders = next,
                None => return leaders,
            }
        }
        panic!("leadership never settles");
    }

    #[test]
    fn a_new_graph_is_led_by_all_nodes_of_all_groups_alike() {
        let table = table(2, 3);
        let all = everybody(&table);
        let leaders = settle(Leaders::default(), &table, &all);
        let led: Vec<usize> = all.iter().map(|&node| leaders.led_by(node)).collect();
        assert_eq!(led, [4; 6]);
    }

    #[test]
    fn a_node_that_is_gone_loses_its_partitions_and_no_other_moves() {
        let table = table(2, 3);
        let mut alive = everybody(&table);
        let before = settle(Leaders::default(), &table, &alive);
        let gone = NodeId(1);
        alive.remove(&gone);
        let after = before.next(&table, &alive).expect("somebody must take over");
        for partition in table.partition_count().iter() {
            let (old, new) = (before.of(partition).unwrap(), after.of(partition).unwrap());
            if old.node == gone {
                assert!(new.node != gone && before.term_last < new.term, "{partition}: {old:?} → {new:?}");
            } else {
                assert_eq!(old, new, "{partition}");
            }
        }
    }

    #[test]
    fn a_node_that_comes_back_is_given_its_share_a_few_partitions_at_a_time() {
        let table = table(2, 3);
        let all = everybody(&table);
        let without: BTreeSet<NodeId> = all.iter().copied().filter(|node| *node != NodeId(1)).collect();
        let before = settle(Leaders::default(), &table, &without);
        assert_eq!(before.led_by(NodeId(1)), 0);
        let next = before.next(&table, &all).expect("it leads too little");
        assert!((1..=BALANCING_MOVES_MAX).contains(&next.led_by(NodeId(1))), "{next:?}");
        assert!(3 <= settle(next, &table, &all).led_by(NodeId(1)));
    }

    #[test]
    fn without_any_replica_the_leader_stays() {
        let table = table(1, 2);
        let before = settle(Leaders::default(), &table, &everybody(&table));
        assert_eq!(before.next(&table, &BTreeSet::new()), None);
        assert_eq!(Leaders::default().next(&table, &BTreeSet::new()), None);
    }

    #[test]
    fn a_node_that_started_again_gets_new_terms_for_what_it_leads() {
        let table = table(1, 2);
        let before = settle(Leaders::default(), &table, &everybody(&table));
        let partitions: Vec<PartitionId> = table.partition_count().iter().collect();
        let after = before.renew(NodeId(0), &partitions).expect("it leads some");
        for (old, new) in before.by_partition.iter().flatten().zip(after.by_partition.iter().flatten()) {
            assert_eq!(old.node, new.node);
            assert_eq!(new.term, if old.node == NodeId(0) { after.term_last } else { old.term });
        }
        assert!(before.term_last < after.term_last);
        assert_eq!(before.renew(NodeId(9), &partitions), None);
    }

    proptest! {
        #[test]
        fn whatever_happens_leaders_are_eligible_replicas_and_no_term_is_given_twice(
            steps in proptest::collection::vec(proptest::collection::btree_set(0u32..6, 0..=6), 1..20),
        ) {
            let table = table(2, 3);
            let mut leaders = Leaders::default();
            for alive in steps {
                let alive: BTreeSet<NodeId> = alive.into_iter().map(NodeId).collect();
                let Some(next) = leaders.next(&table, &alive) else { continue };
                for partition in table.partition_count().iter() {
                    let (old, new) = (leaders.of(partition), next.of(partition));
                    if old == new {
                        continue;
                    }
                    let new = new.expect("a leader is only replaced");
                    prop_assert!(alive.contains(&new.node));
                    let index = table.node_index(new.node).expect("it is in the table");
                    prop_assert!(table.replicas(partition).contains(&index));
                    prop_assert!(leaders.term_last < new.term && new.term <= next.term_last);
                }
                leaders = next;
            }
            let settled = settle(leaders, &table, &everybody(&table));
            let led: Vec<usize> = table.nodes().iter().map(|node| settled.led_by(node.id)).collect();
            prop_assert!(led.iter().max().unwrap() - led.iter().min().unwrap() <= 4, "{led:?}");
        }
    }
}
