//! Which groups hold a store that asks for fewer copies than there are groups, and
//! which nodes may answer for one of its versions.
//!
//! Groups are chosen by rendezvous hashing of (store, group): each group is drawn
//! equally often over many stores, a new group takes over its share and moves nothing
//! else, and every process finds the same answer without asking.

use crate::{Availability, GroupIndex, GroupRole, NodeIndex, NodeSet, RoutingTable, Strategy};
use kith_types::{GroupId, NodeId, PartitionId, fmix64, position_of_key};
use std::collections::BTreeSet;

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

/// As [`RoutingTable::groups_of_store`], of groups and their roles without a table. O(groups × log groups).
pub fn groups_of_store(
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
    /// Sorted; replicas that another share has.
    without: Vec<(PartitionId, NodeIndex)>,
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
        Self { closed: every & !held, excluded: set, without: Vec::new() }
    }

    /// Whether every group and every node holds it, so that a fleet's own availability serves as it is.
    pub fn is_everything(&self) -> bool {
        self.closed == 0 && self.excluded.is_empty() && self.without.is_empty()
    }

    /// Deals the replicas of each of `partitions` out into `count` shares: reads of two shares never ask one node for the
    /// same key, which is what it takes where several answers must agree (Voldemort §4, required reads). Replicas that are up
    /// come first and go to the shares in turn, beginning with share `turn`; a share may be left without any of a
    /// partition. `availability` is that of the store. O(partitions × groups).
    pub fn shares(
        &self,
        table: &RoutingTable,
        availability: &Availability,
        partitions: &[PartitionId],
        count: usize,
        turn: usize,
    ) -> Vec<Self> {
        let mut without = vec![Vec::new(); count.max(1)];
        for partition in partitions.iter().copied().collect::<BTreeSet<_>>() {
            let replicas = (0..).map(GroupIndex).zip(table.replicas(partition).iter().copied());
            let held = replicas.filter(|(group, _)| availability.is_open(*group)).map(|(_, node)| node);
            let (up, rest): (Vec<_>, Vec<_>) =
                held.partition(|node| availability.may_serve(partition, *node));
            for (place, node) in up.into_iter().chain(rest).enumerate() {
                let theirs = turn.wrapping_add(place) % without.len();
                let others = without.iter_mut().enumerate().filter(|(share, _)| *share != theirs);
                others.for_each(|(_, without)| without.push((partition, node)));
            }
        }
        let share = |mut without: Vec<(PartitionId, NodeIndex)>| {
            without.sort_unstable();
            Self { without, ..self.clone() }
        };
        without.into_iter().map(share).collect()
    }

    /// The same, within one group; `None` if the table has no such group.
    pub fn within(&self, table: &RoutingTable, group: GroupId) -> Option<Self> {
        let place = table.groups().iter().position(|entry| entry.id == group)?;
        let others = (u64::MAX >> (u64::BITS as usize - table.groups().len())) & !(1 << place);
        Some(Self { closed: self.closed | others, ..self.clone() })
    }

    /// The replicas of a partition that hold the store, also those that lack its version.
    pub fn replicas<'a>(
        &'a self,
        table: &'a RoutingTable,
        partition: PartitionId,
    ) -> impl Iterator<Item = NodeIndex> + 'a {
        let placed = (0..).map(GroupIndex).zip(table.replicas(partition).iter().copied());
        placed.filter(|(group, _)| self.closed >> group.0 & 1 == 0).map(|(_, node)| node)
    }

    pub(crate) fn closed(&self) -> u64 {
        self.closed
    }

    pub(crate) fn without(&self) -> &[(PartitionId, NodeIndex)] {
        &self.without
    }

    pub(crate) fn excluded(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.excluded.iter()
    }
}
