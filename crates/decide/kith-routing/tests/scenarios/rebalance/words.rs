//! Parses the clauses of scripts about shapes and failures.

use kith_routing::rebalance::{CopyFault, TargetShape};
use kith_routing::{NodeEntry, RoutingTable};
use kith_sim::scenario::cluster::{Layout, group_id, node_id, node_ids};
use kith_types::GroupId;

/// Returns the target shape; `None` if the words do not name one.
pub fn shape(words: &[&str], layout: &Layout, table: &RoutingTable) -> Result<Option<TargetShape>, String> {
    let entries = |nodes: &[&str], group: GroupId| {
        let nodes = node_ids(nodes)?;
        let entries = nodes.into_iter().map(|node| layout.node(node, group));
        Ok::<Vec<NodeEntry>, String>(entries.collect())
    };
    Ok(Some(match words {
        ["add", nodes @ .., "to", group] => TargetShape::AddNodes(entries(nodes, group_id(group)?)?),
        ["add", group, "of", nodes @ ..] => {
            let group = group_id(group)?;
            TargetShape::AddGroup { group, nodes: entries(nodes, group)? }
        }
        ["remove", nodes @ ..] => TargetShape::RemoveNodes(node_ids(nodes)?),
        ["drain", nodes @ ..] => TargetShape::DrainNodes(node_ids(nodes)?),
        ["replace", old, "by", new] => {
            let (old, new) = (node_id(old)?, node_id(new)?);
            let group = table.node(old).map(|node| node.group).unwrap_or_default();
            TargetShape::ReplaceNode { old, new: layout.node(new, group) }
        }
        ["take", "out", group] => TargetShape::DrainGroup(group_id(group)?),
        ["restore", group] => TargetShape::RestoreGroup(group_id(group)?),
        ["even", "out"] => TargetShape::Even,
        _ => return Ok(None),
    }))
}

/// Returns the party at fault for a failed copy.
pub fn fault(word: &str) -> Result<CopyFault, String> {
    match word {
        "connection" => Ok(CopyFault::Transient),
        "donor" => Ok(CopyFault::Donor),
        "stealer" => Ok(CopyFault::Stealer),
        other => Err(format!("{other:?} is not connection, donor or stealer")),
    }
}
