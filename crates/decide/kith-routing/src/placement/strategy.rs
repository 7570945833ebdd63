//! Placement strategies by name, and replica groups. The ring is in `ring.rs`.

use crate::placement::apart::{DomainSpread, Domains};
use crate::placement::contract::{OwnerChange, Placement, PlacementResult, usable};
use crate::placement::{PlacementError, Ring, check_nodes, place, rebalance};
use crate::{GroupIndex, NodeEntry, Strategy};
use kith_types::{GroupId, NodeId, PartitionCount, PartitionId};

impl Strategy {
    /// Returns the placement for a table with this strategy and these groups (ranks).
    pub fn placement(self, groups: &[GroupId]) -> Box<dyn Placement> {
        match self {
            Strategy::ReplicaGroups => Box::new(ReplicaGroups { groups: groups.to_vec() }),
            Strategy::Ring => Box::new(Ring { replicas: groups.len() }),
        }
    }
}

/// Independent, balanced groups (Moolle §III-B). The replicas of a partition are spread over zones and racks where labels
/// allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaGroups {
    /// The groups, ascending. Nodes of other groups are ignored.
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

    fn place(&self, partition_count: PartitionCount, nodes: &[NodeEntry], seed: u64) -> PlacementResult {
        let mut owners = place(partition_count, &self.members(nodes), seed)?;
        let domains = Domains::new(nodes);
        DomainSpread::new(&domains, &mut owners).all();
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
            // Donors first give the partitions that are placed worst. Then the moved partitions are placed as well as
            // possible. Neither changes how many partitions move.
            let costs = domains.costs(&after, group);
            let plan = rebalance::rebalance_by(&after[group], members, seed, |partition| costs[partition])?;
            let moved: Vec<usize> = plan.moves.iter().map(|step| step.partition.index()).collect();
            after[group] = plan.owners;
            DomainSpread::new(&domains, &mut after).some(group, &moved);
            let change = |index: usize| OwnerChange {
                group: GroupIndex(group as u32),
                partition: PartitionId(index as u32),
                node: after[group][index],
            };
            changes.extend(moved.into_iter().map(change));
        }
        Ok(changes)
    }

    fn apply(&self, owners: &[Vec<NodeId>], changes: &[OwnerChange]) -> PlacementResult {
        let mut after = owners.to_vec();
        changes.iter().for_each(|change| after[change.group.index()][change.partition.index()] = change.node);
        Ok(after)
    }
}

/// Places an additional group. Returns the owner of each partition in it, in other zones and racks than the replicas of the
/// existing groups in `owners`, as far as labels allow.
///
/// # Errors
/// If the group has no nodes, or a node is listed twice.
pub fn place_beside(
    owners: &[Vec<NodeId>],
    nodes: &[NodeEntry],
    group: GroupId,
    partition_count: PartitionCount,
    seed: u64,
) -> Result<Vec<NodeId>, PlacementError> {
    let members = ReplicaGroups { groups: vec![group] }.members(nodes);
    // The permutation must differ from those of the existing groups.
    let seed = seed ^ (u64::from(group.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut all = owners.to_vec();
    all.push(place(partition_count, &members, seed)?.remove(0));
    let every: Vec<usize> = (0..partition_count.get() as usize).collect();
    let domains = Domains::new(nodes);
    let last = all.len() - 1;
    DomainSpread::new(&domains, &mut all).some(last, &every);
    Ok(all.swap_remove(last))
}
