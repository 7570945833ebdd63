//! Chooses the donors from which stealers copy.
//!
//! The preferred donor is the node that gives the partition up, if it is alive and has the data: giving reduces its load,
//! and there are few pairs of nodes. Otherwise it is another replica. The order of preference is: one that gives this
//! partition anyway, one in the stealer's zone, one that has given least.

use crate::NodeEntry;
use crate::rebalance::holdings::Holdings;
use crate::rebalance::{Move, MovedStore, PlanRefusal, StoreSizes};
use kith_types::{GroupId, NodeId, PartitionId};
use std::collections::{BTreeMap, BTreeSet};

/// The data that one node must get.
#[derive(Clone, Debug)]
pub(crate) struct Need {
    pub(crate) partition: PartitionId,
    pub(crate) group: GroupId,
    pub(crate) stealer: NodeId,
    pub(crate) is_secondary: bool,
    /// The node that gives the partition up, if any.
    pub(crate) loser: Option<NodeId>,
    /// The stores, ascending.
    pub(crate) stores: Vec<MovedStore>,
}

/// Chooses donors and tracks how much each has to give.
pub(crate) struct Donors<'a> {
    stores: &'a [StoreSizes],
    dead: &'a BTreeSet<NodeId>,
    zones: BTreeMap<NodeId, (&'a str, &'a str)>,
    /// The bytes and partitions that each node has to give.
    given: BTreeMap<NodeId, (u64, u64)>,
}

impl<'a> Donors<'a> {
    pub(crate) fn new(nodes: &'a [NodeEntry], stores: &'a [StoreSizes], dead: &'a BTreeSet<NodeId>) -> Self {
        let zones = nodes.iter().map(|node| (node.id, (node.region.as_str(), node.zone.as_str()))).collect();
        Self { stores, dead, zones, given: BTreeMap::new() }
    }

    /// Returns one move per donor, of which there is usually one. `avoid` are donors that were found unfit.
    pub(crate) fn moves(
        &mut self,
        need: &Need,
        held: &Holdings<'_>,
        avoid: &[NodeId],
    ) -> Result<Vec<Move>, PlanRefusal> {
        let unfit = |node: &NodeId| *node == need.stealer || avoid.contains(node) || self.dead.contains(node);
        let mut by_donor: BTreeMap<NodeId, Vec<MovedStore>> = BTreeMap::new();
        for moved in &need.stores {
            let store = &self.stores[moved.store as usize];
            let able = held.of_store(moved.store as usize, need.partition);
            let able = able.filter(|node| !unfit(node) && !store.excluded.contains(node));
            let donor = able.min_by_key(|node| self.preference(need, &by_donor, *node));
            let no_donor =
                || PlanRefusal::NoDonor { store: Some(store.name.clone()), partition: need.partition };
            by_donor.entry(donor.ok_or_else(no_donor)?).or_default().push(*moved);
        }
        if need.stores.is_empty() {
            let able = held.any(need.partition).filter(|node| !unfit(node));
            let donor = able.min_by_key(|node| self.preference(need, &by_donor, *node));
            let no_donor = PlanRefusal::NoDonor { store: None, partition: need.partition };
            by_donor.insert(donor.ok_or(no_donor)?, Vec::new());
        }
        let moves: Vec<Move> = by_donor.into_iter().map(|(donor, stores)| need.from(donor, stores)).collect();
        moves.iter().for_each(|copy| self.note(copy));
        Ok(moves)
    }

    /// Adds a move to what its donor has to give.
    pub(crate) fn note(&mut self, copy: &Move) {
        let given = self.given.entry(copy.donor).or_default();
        given.0 += copy.bytes();
        given.1 += 1;
    }

    fn preference(
        &self,
        need: &Need,
        chosen: &BTreeMap<NodeId, Vec<MovedStore>>,
        node: NodeId,
    ) -> (bool, bool, bool, (u64, u64), NodeId) {
        let zone = self.zones.get(&node).filter(|(_, zone)| !zone.is_empty());
        let near = zone.is_some() && zone == self.zones.get(&need.stealer);
        let given = self.given.get(&node).copied().unwrap_or_default();
        (need.loser != Some(node), !chosen.contains_key(&node), !near, given, node)
    }
}

impl Need {
    fn from(&self, donor: NodeId, stores: Vec<MovedStore>) -> Move {
        let Need { partition, group, stealer, is_secondary, .. } = *self;
        Move { partition, group, donor, stealer, is_secondary, stores }
    }
}
