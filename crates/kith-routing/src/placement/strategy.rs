//! Placement strategies: where replicas lie, and what has to change when nodes come or go.

use crate::placement::apart::{Domains, Spread};
use crate::placement::{PlacementError, Ring, check_nodes, place, rebalance};
use crate::{GroupIndex, NodeEntry, Strategy};
use kith_types::{GroupId, NodeId, PartitionCount, PartitionId};

/// One partition's replica in one group gets another owner. On a ring: the first replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerChange {
    /// The group, or 0 on a ring.
    pub group: GroupIndex,
    /// What changes hands.
    pub partition: PartitionId,
    /// Who has it afterwards.
    pub node: NodeId,
}

/// For each group (on a ring: rank), the owner of each partition; or why there are none.
pub type Placed = Result<Vec<Vec<NodeId>>, PlacementError>;

/// Says where replicas lie.
///
/// Owners are listed per group (on a ring: per rank), and in each per partition.
/// Implementors must decide by their arguments alone, the same on every machine, and
/// give nothing to nodes that are drained.
pub trait Placement {
    /// What users type.
    fn name(&self) -> &'static str;

    /// Owners for a new cluster. Sizes (on a ring: of first replicas) differ by at most one.
    ///
    /// # Errors
    /// If a group has no nodes, a node is listed twice, or there are too few.
    fn place(&self, partition_count: PartitionCount, nodes: &[NodeEntry], seed: u64) -> Placed;

    /// The changes that make the sizes differ by at most one again, as few as possible.
    ///
    /// # Errors
    /// As [`Placement::place`].
    fn rebalance(
        &self,
        owners: &[Vec<NodeId>],
        nodes: &[NodeEntry],
        seed: u64,
    ) -> Result<Vec<OwnerChange>, PlacementError>;

    /// The owners after some of these changes, in any number and order: each such state
    /// is a valid table.
    ///
    /// # Errors
    /// If too few nodes would be left.
    fn apply(&self, owners: &[Vec<NodeId>], changes: &[OwnerChange]) -> Placed;
}

impl Strategy {
    /// The placement of a table of this strategy with these groups (ranks).
    pub fn placement(self, groups: &[GroupId]) -> Box<dyn Placement> {
        match self {
            Strategy::ReplicaGroups => Box::new(ReplicaGroups { groups: groups.to_vec() }),
            Strategy::Ring => Box::new(Ring { replicas: groups.len() }),
        }
    }
}

/// Independent balanced groups (Moolle §III-B), a partition's replicas apart in zones
/// and racks where labels allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaGroups {
    /// Ascending. Nodes of other groups are passed over.
    pub groups: Vec<GroupId>,
}

impl ReplicaGroups {
    fn members(&self, nodes: &[NodeEntry]) -> Vec<Vec<NodeId>> {
        let of = |group: &GroupId| usable(nodes.iter().filter(|node| node.group == *group));
        self.groups.iter().map(of).collect()
    }
}

impl Placement for ReplicaGroups {
    fn name(&self) -> &'static str {
        "replica-groups"
    }

    fn place(&self, partition_count: PartitionCount, nodes: &[NodeEntry], seed: u64) -> Placed {
        let mut owners = place(partition_count, &self.members(nodes), seed)?;
        let domains = Domains::new(nodes);
        Spread::new(&domains, &mut owners).all();
        Ok(owners)
    }

    fn rebalance(
        &self,
        owners: &[Vec<NodeId>],
        nodes: &[NodeEntry],
        seed: u64,
    ) -> Result<Vec<OwnerChange>, PlacementError> {
        let members = self.members(nodes);
        check_nodes(&members)?;
        let domains = Domains::new(nodes);
        let mut after = owners.to_vec();
        let mut changes = Vec::new();
        for (group, members) in members.iter().enumerate() {
            // Donors give first what lies badly, then what moves is put where it lies best:
            // how many move is not touched by either.
            let costs = domains.costs(&after, group);
            let plan = rebalance::rebalance_by(&after[group], members, seed, |partition| costs[partition])?;
            let moved: Vec<usize> = plan.moves.iter().map(|step| step.partition.index()).collect();
            after[group] = plan.owners;
            Spread::new(&domains, &mut after).some(group, &moved);
            let change = |place: usize| OwnerChange {
                group: GroupIndex(group as u32),
                partition: PartitionId(place as u32),
                node: after[group][place],
            };
            changes.extend(moved.into_iter().map(change));
        }
        Ok(changes)
    }

    fn apply(&self, owners: &[Vec<NodeId>], changes: &[OwnerChange]) -> Placed {
        let mut after = owners.to_vec();
        changes.iter().for_each(|change| after[change.group.index()][change.partition.index()] = change.node);
        Ok(after)
    }
}

/// The ids of nodes that may own something, ascending: in whatever order they are listed, the outcome is one.
pub(super) fn usable<'a>(nodes: impl Iterator<Item = &'a NodeEntry>) -> Vec<NodeId> {
    let mut ids: Vec<NodeId> = nodes.filter(|node| !node.drained).map(|node| node.id).collect();
    ids.sort_unstable();
    ids
}

/// Places a further group: the owner of each partition in it, in other zones and racks than the replicas of `owners`, the groups
/// that are there, as far as labels allow.
///
/// # Errors
/// If the group has no nodes, or one is listed twice.
pub fn place_beside(
    owners: &[Vec<NodeId>],
    nodes: &[NodeEntry],
    group: GroupId,
    partition_count: PartitionCount,
    seed: u64,
) -> Result<Vec<NodeId>, PlacementError> {
    let members = ReplicaGroups { groups: vec![group] }.members(nodes);
    // The draw differs from those of the groups that are there.
    let seed = seed ^ (u64::from(group.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut all = owners.to_vec();
    all.push(place(partition_count, &members, seed)?.remove(0));
    let every: Vec<usize> = (0..partition_count.get() as usize).collect();
    let domains = Domains::new(nodes);
    let last = all.len() - 1;
    Spread::new(&domains, &mut all).some(last, &every);
    Ok(all.swap_remove(last))
}
