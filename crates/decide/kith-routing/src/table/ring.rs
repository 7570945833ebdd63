//! The check that a table is a ring: each replica must be the one that follows from the first replicas.

use crate::placement::preference_lists;
use crate::table::{GroupRole, RoutingTable, TableError};
use kith_types::{NodeId, PartitionId};

/// Checks the ranks of a ring against its first one. O(partitions × ranks).
pub(super) fn check(table: &RoutingTable, owners: &[Vec<NodeId>]) -> Result<(), TableError> {
    let one_group = table.group_of_node.iter().all(|group| group.0 == 0);
    if !one_group || table.groups.iter().any(|rank| rank.role != GroupRole::Serving) {
        return Err(TableError::RingGroups);
    }
    let replicas = owners.len();
    let expected = preference_lists(&owners[0], replicas)
        .map_err(|nodes| TableError::RingTooSmall { replicas, nodes })?;
    for (rank, (got, expected)) in owners.iter().zip(&expected).enumerate() {
        if let Some(index) = (0..got.len()).find(|index| got[*index] != expected[*index]) {
            let partition = PartitionId(index as u32);
            return Err(TableError::NotOnRing {
                partition,
                rank,
                got: got[index],
                expected: expected[index],
            });
        }
    }
    Ok(())
}
