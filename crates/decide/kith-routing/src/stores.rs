//! Decides which groups hold a store with fewer copies than there are groups, and which nodes may answer for one of its
//! versions.
//!
//! Groups are chosen by rendezvous hashing of (store, group). Over many stores, each group is chosen equally often; a new
//! group takes over its share and moves nothing else; and every process computes the same result without communication.

use crate::{Availability, GroupIndex, GroupRole, NodeIndex, NodeSet, RoutingTable, Strategy};
use kith_types::{GroupId, NodeId, PartitionId, fmix64, position_of_key};
use std::collections::BTreeSet;

/// Returns the groups that hold a store: the `copies` groups (at least one) with the highest scores for its name, ascending.
/// Returns all groups if there are no more. O(groups × log groups).
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
    /// Returns the groups that hold a store with `copies` copies (`None` if every group has one). Bit `g` stands for the
    /// group with index `g`. Groups in maintenance count, because taking a group out moves no data; groups that are joining
    /// do not. On a ring, the first `copies` ranks.
    pub fn groups_of_store(&self, store: &str, copies: Option<u32>) -> u64 {
        groups_of_store(
            self.strategy(),
            self.groups().iter().map(|group| (group.id, group.role)),
            store,
            copies,
        )
    }
}

/// Like [`RoutingTable::groups_of_store`], for groups and their roles without a table. O(groups × log groups).
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
    let bit = |(index, (id, _)): (usize, &(GroupId, GroupRole))| u64::from(chosen.contains(id)) << index;
    groups.iter().enumerate().map(bit).fold(0, |bits, bit| bits | bit)
}

/// The replicas that hold one version of one store, in one table. It is made when the table or the version changes;
/// [`crate::Availability::for_store`] applies it to an availability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreReach {
    closed: u64,
    excluded: NodeSet,
    /// The replicas that belong to another share. Sorted.
    without: Vec<(PartitionId, NodeIndex)>,
}

impl StoreReach {
    /// Returns the reach of a store with `copies` copies (`None` for one per group), at a version that the nodes `excluded`
    /// lack because a push left them out. Ids that the table does not have are ignored. O(groups + nodes ÷ 64).
    pub fn new(table: &RoutingTable, store: &str, copies: Option<u32>, excluded: &[NodeId]) -> Self {
        let held = table.groups_of_store(store, copies);
        let every = u64::MAX >> (u64::BITS as usize - table.groups().len());
        let mut set = NodeSet::empty(table.nodes().len());
        excluded.iter().filter_map(|node| table.node_index(*node)).for_each(|node| set.insert(node));
        Self { closed: every & !held, excluded: set, without: Vec::new() }
    }

    /// Whether every group and every node holds the version, so that a fleet's own availability can be used as it is.
    pub fn is_everything(&self) -> bool {
        self.closed == 0 && self.excluded.is_empty() && self.without.is_empty()
    }

    /// Divides the replicas of each of `partitions` into `count` shares. Reads in two shares never ask one node for the same
    /// key, which is required if several answers must agree (Voldemort §4, required reads). Replicas that are up are
    /// distributed first, one share after the other, beginning with share `turn`. A share may have no replica of a
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
            for (index, node) in up.into_iter().chain(rest).enumerate() {
                let theirs = turn.wrapping_add(index) % without.len();
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

    /// Returns this reach within one group; `None` if the table has no such group.
    pub fn within(&self, table: &RoutingTable, group: GroupId) -> Option<Self> {
        let index = table.groups().iter().position(|entry| entry.id == group)?;
        let others = (u64::MAX >> (u64::BITS as usize - table.groups().len())) & !(1 << index);
        Some(Self { closed: self.closed | others, ..self.clone() })
    }

    /// Returns the replicas of a partition that hold the store, including those that lack its version.
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
