//! Which groups hold a store that asks for fewer copies than there are groups, and
//! which nodes may answer for one of its versions.
//!
//! Groups are chosen by rendezvous hashing of (store, group): each group is drawn
//! equally often over many stores, a new group takes over its share and moves nothing
//! else, and every process finds the same answer without asking.

use crate::{GroupIndex, GroupRole, NodeIndex, NodeSet, RoutingTable, Strategy};
use kith_types::{GroupId, NodeId, fmix64, position_of_key};

/// The groups that hold a store: the `copies` groups, one at least, that score highest
/// for its name. Ascending; all of them if there are no more. O(groups × log groups).
pub fn store_groups(store: &str, groups: &[GroupId], copies: u32) -> Vec<GroupId> {
    let name = position_of_key(store.as_bytes());
    let score = |group: &GroupId| fmix64(name ^ fmix64(u64::from(group.0) + 1));
    let mut chosen = groups.to_vec();
    chosen.sort_unstable_by_key(|group| (std::cmp::Reverse(score(group)), *group));
    chosen.truncate(copies.max(1) as usize);
    chosen.sort_unstable();
    chosen
}

impl RoutingTable {
    /// The groups that hold a store of `copies` copies (`None`: every group has one).
    /// Bit `g` stands for the group at place `g`. Groups in maintenance count, those
    /// that are joining do not: taking a group out moves no data. On a ring, the
    /// first `copies` ranks.
    pub fn groups_of_store(&self, store: &str, copies: Option<u32>) -> u64 {
        groups_of_store(
            self.strategy(),
            self.groups().iter().map(|group| (group.id, group.role)),
            store,
            copies,
        )
    }
}

/// As [`RoutingTable::groups_of_store`], before there is a table.
pub(crate) fn groups_of_store(
    strategy: Strategy,
    groups: impl Iterator<Item = (GroupId, GroupRole)>,
    store: &str,
    copies: Option<u32>,
) -> u64 {
    let groups: Vec<(GroupId, GroupRole)> = groups.collect();
    let settled: Vec<GroupId> =
        groups.iter().filter(|(_, role)| *role != GroupRole::Joining).map(|(id, _)| *id).collect();
    let copies = copies.unwrap_or(u32::MAX);
    let chosen = match strategy {
        Strategy::ReplicaGroups => store_groups(store, &settled, copies),
        Strategy::Ring => settled.into_iter().take(copies.max(1) as usize).collect(),
    };
    let bit = |(place, (id, _)): (usize, &(GroupId, GroupRole))| u64::from(chosen.contains(id)) << place;
    groups.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
}

/// Who holds one version of one store, in one table. Made when the table or the
/// version changes; [`crate::Availability::for_store`] turns it into what a view needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReach {
    closed: u64,
    excluded: NodeSet,
}

impl StoreReach {
    /// A store of `copies` copies (`None`: one per group), of a version that the nodes
    /// `excluded` lack (a degraded push); ids that the table does not hold are passed
    /// over. O(groups + nodes ÷ 64).
    pub fn new(table: &RoutingTable, store: &str, copies: Option<u32>, excluded: &[NodeId]) -> Self {
        let held = table.groups_of_store(store, copies);
        let every = u64::MAX >> (u64::BITS as usize - table.groups().len());
        let mut set = NodeSet::empty(table.nodes().len());
        excluded.iter().filter_map(|node| table.node_index(*node)).for_each(|node| set.insert(node));
        Self { closed: every & !held, excluded: set }
    }

    /// Whether every group and every node holds it, so that a fleet's own availability serves as it is.
    pub fn is_everything(&self) -> bool {
        self.closed == 0 && self.excluded.is_empty()
    }

    /// Whether a group holds the store.
    pub fn is_held_by(&self, group: GroupIndex) -> bool {
        self.closed >> group.0 & 1 == 0
    }

    pub(crate) fn closed(&self) -> u64 {
        self.closed
    }

    pub(crate) fn excluded(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.excluded.iter()
    }
}
