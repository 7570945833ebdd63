//! Plans of a rebalance, and the changes of tables that they cause, as text.

use kith_routing::rebalance::{PlanStep, RebalancePlan};
use kith_routing::{GroupEntry, GroupRole, NodeEntry, TableParts};
use kith_sim::scenario::cluster::count;
use kith_types::{GroupId, NodeId, PartitionId};

/// Describes what each step copies, and how the table changes afterwards.
pub fn describe(plan: &RebalancePlan) -> Result<Vec<String>, String> {
    let mut table = plan.before.clone();
    let mut lines = Vec::new();
    for (position, step) in (1..).zip(plan.steps()) {
        let before = table.clone();
        plan.apply(step, &mut table).map_err(|error| error.to_string())?;
        if let PlanStep::Batch(index) = step {
            for copy in &plan.batches[index].moves {
                let secondary = if copy.is_secondary { ", which follows" } else { "" };
                let (partition, donor, stealer) = (copy.partition, copy.donor, copy.stealer);
                let bytes = count(copy.bytes() as usize, "byte");
                lines.push(format!(
                    "step {position}: copy {partition} from {donor} to {stealer}, {bytes}{secondary}"
                ));
            }
        }
        match changes(&before, &table) {
            changes if changes.is_empty() => {}
            changes => {
                lines.push(format!("step {position}: then table {}: {}", table.epoch, changes.join(", ")))
            }
        }
    }
    if lines.is_empty() {
        lines.push("nothing changes".to_owned());
    }
    Ok(lines)
}

/// Describes the differences between two tables.
pub fn changes(before: &TableParts, after: &TableParts) -> Vec<String> {
    let mut changes = Vec::new();
    let is_in = |nodes: &[NodeEntry], id: NodeId| nodes.iter().any(|node| node.id == id);
    for node in &after.nodes {
        match before.nodes.iter().find(|old| old.id == node.id) {
            None => changes.push(format!("{} is listed", node.id)),
            Some(old) if old.drained != node.drained => {
                changes.push(format!("{} is {}", node.id, if node.drained { "drained" } else { "in use" }));
            }
            Some(_) => {}
        }
    }
    let role_of =
        |groups: &[GroupEntry], id: GroupId| groups.iter().find(|group| group.id == id).map(|it| it.role);
    for group in &after.groups {
        if role_of(&before.groups, group.id) != Some(group.role) {
            let role = match group.role {
                GroupRole::Serving => "serves",
                GroupRole::Maintenance => "is taken out",
                GroupRole::Joining => "joins without serving",
            };
            changes.push(format!("{} {role}", group.id));
        }
    }
    let gone = before.groups.iter().filter(|group| role_of(&after.groups, group.id).is_none());
    changes.extend(gone.map(|group| format!("{} is gone", group.id)));
    for (index, group) in before.groups.iter().enumerate() {
        let Some(now) = after.groups.iter().position(|other| other.id == group.id) else { continue };
        let pairs = (0u32..).zip(before.owners[index].iter().zip(&after.owners[now]));
        let moved = pairs.filter(|(_, (old, new))| old != new);
        changes.extend(moved.map(|(p, (old, new))| format!("{} goes from {old} to {new}", PartitionId(p))));
    }
    let left = before.nodes.iter().filter(|node| !is_in(&after.nodes, node.id));
    changes.extend(left.map(|node| format!("{} is gone", node.id)));
    changes
}
