//! Checks of the parts of a table.

use super::{GROUPS_MAX, GroupEntry, GroupIndex, NODES_MAX, NodeEntry, NodeIndex, TableError};
use kith_types::{Epoch, NodeId, PartitionCount, PartitionId};
use std::collections::BTreeMap;

pub(super) fn check_sizes(groups: &[GroupEntry], nodes: &[NodeEntry]) -> Result<(), TableError> {
    if groups.is_empty() || nodes.is_empty() {
        return Err(TableError::Empty);
    }
    for (what, got, max) in [("groups", groups.len(), GROUPS_MAX), ("nodes", nodes.len(), NODES_MAX)] {
        if max < got {
            return Err(TableError::TooMany { what, got, max });
        }
    }
    match groups.windows(2).find(|pair| pair[1].id <= pair[0].id) {
        Some(pair) => Err(TableError::GroupOrder { group: pair[1].id }),
        None => Ok(()),
    }
}

pub(super) fn groups_of_nodes(
    groups: &[GroupEntry],
    nodes: &[NodeEntry],
) -> Result<Vec<GroupIndex>, TableError> {
    let group_of = |node: &NodeEntry| {
        let position = groups.binary_search_by_key(&node.group, |group| group.id);
        let index = position.map_err(|_| TableError::UnknownGroup { node: node.id, group: node.group })?;
        Ok(GroupIndex(index as u32))
    };
    nodes.iter().map(group_of).collect()
}

pub(super) fn index_nodes(nodes: &[NodeEntry]) -> Result<BTreeMap<NodeId, NodeIndex>, TableError> {
    let mut index_of_node = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate() {
        if index_of_node.insert(node.id, NodeIndex(index as u32)).is_some() {
            return Err(TableError::DuplicateNode { node: node.id });
        }
    }
    Ok(index_of_node)
}

pub(super) fn checked_epochs(
    epochs: Vec<Epoch>,
    table: Epoch,
    count: PartitionCount,
) -> Result<Vec<Epoch>, TableError> {
    if epochs.is_empty() {
        return Ok(vec![table; count.get() as usize]);
    }
    check_length("partition epochs", epochs.len(), count.get() as usize)?;
    match epochs.iter().position(|epoch| table < *epoch) {
        Some(p) => {
            Err(TableError::PartitionEpoch { partition: PartitionId(p as u32), got: epochs[p], table })
        }
        None => Ok(epochs),
    }
}

pub(super) fn check_length(what: &'static str, got: usize, expected: usize) -> Result<(), TableError> {
    if got == expected { Ok(()) } else { Err(TableError::Length { what, got, expected }) }
}
