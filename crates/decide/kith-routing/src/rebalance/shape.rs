//! The target shapes of a cluster.

use crate::rebalance::PlanRefusal;
use crate::{GroupEntry, GroupRole, NodeEntry, Strategy, TableParts};
use kith_types::{GroupId, NodeId};
use std::fmt;

/// The change of a cluster's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum TargetShape {
    /// New nodes, or drained ones that are used again, take their share of their groups.
    AddNodes(Vec<NodeEntry>),
    /// Nodes give up what they own and leave the table.
    RemoveNodes(Vec<NodeId>),
    /// Nodes give up what they own and stay listed, unused.
    DrainNodes(Vec<NodeId>),
    /// One node takes over all that another owns; the other, dead or alive, leaves the table.
    ReplaceNode {
        /// The node that leaves.
        old: NodeId,
        /// The node that takes over, in the same group.
        new: NodeEntry,
    },
    /// A new group is filled from the others, then serves.
    AddGroup {
        /// The new group.
        group: GroupId,
        nodes: Vec<NodeEntry>,
    },
    /// A group is taken out of serving. No data moves.
    DrainGroup(GroupId),
    /// A group that was taken out serves again. No data moves.
    RestoreGroup(GroupId),
    /// A group that was taken out leaves the table with its nodes. Other groups receive what only some groups hold. Nothing
    /// happens if the table does not list it.
    RemoveGroup(GroupId),
    /// The existing nodes of each group share its partitions evenly.
    Even,
}

/// The groups and nodes that the table lists while data moves, and at the end.
pub(crate) struct Target {
    pub(crate) announced: (Vec<GroupEntry>, Vec<NodeEntry>),
    pub(crate) closing: (Vec<GroupEntry>, Vec<NodeEntry>),
    /// The groups whose sizes should be even again.
    pub(crate) groups: Vec<GroupId>,
    pub(crate) replaced: Option<(NodeId, NodeId)>,
    pub(crate) added: Option<GroupId>,
    pub(crate) removed: Option<GroupId>,
}

impl TargetShape {
    pub(crate) fn resolve(&self, parts: &TableParts) -> Result<Target, PlanRefusal> {
        let now = (parts.groups.clone(), parts.nodes.clone());
        let mut target = Target {
            announced: now.clone(),
            closing: now,
            groups: Vec::new(),
            replaced: None,
            added: None,
            removed: None,
        };
        match self {
            TargetShape::AddNodes(nodes) => target.add_nodes(nodes)?,
            TargetShape::RemoveNodes(nodes) => {
                target.drain_nodes(nodes)?;
                target.closing.1.retain(|node| !nodes.contains(&node.id));
            }
            TargetShape::DrainNodes(nodes) => target.drain_nodes(nodes)?,
            TargetShape::ReplaceNode { old, new } => target.replace(*old, new)?,
            TargetShape::AddGroup { group, nodes } => {
                no_ring(parts)?;
                target.add_group(*group, nodes)?;
            }
            TargetShape::DrainGroup(group) => {
                no_ring(parts)?;
                target.change_role(*group, GroupRole::Serving, GroupRole::Maintenance)?;
            }
            TargetShape::RestoreGroup(group) => {
                no_ring(parts)?;
                target.change_role(*group, GroupRole::Maintenance, GroupRole::Serving)?;
            }
            TargetShape::RemoveGroup(group) => {
                no_ring(parts)?;
                target.remove_group(*group)?;
            }
            TargetShape::Even => target.groups = parts.groups.iter().map(|group| group.id).collect(),
        }
        Ok(target)
    }
}

fn no_ring(parts: &TableParts) -> Result<(), PlanRefusal> {
    if parts.strategy == Strategy::Ring { Err(PlanRefusal::RingHasNoGroups) } else { Ok(()) }
}

impl Target {
    fn node(&mut self, id: NodeId) -> Option<&mut NodeEntry> {
        self.announced.1.iter_mut().find(|node| node.id == id)
    }

    fn add_nodes(&mut self, nodes: &[NodeEntry]) -> Result<(), PlanRefusal> {
        for new in nodes {
            let entry = NodeEntry { drained: false, ..new.clone() };
            if !self.announced.0.iter().any(|group| group.id == new.group) {
                return Err(PlanRefusal::UnknownGroup { group: new.group });
            }
            match self.node(new.id) {
                Some(old) if !old.drained => return Err(PlanRefusal::NodeExists { node: new.id }),
                Some(old) if old.group != new.group => {
                    let (got, expected) = (new.group, old.group);
                    return Err(PlanRefusal::OtherGroup { node: new.id, got, expected });
                }
                Some(old) => *old = entry,
                None => self.announced.1.push(entry),
            }
            self.groups.push(new.group);
        }
        self.closing = self.announced.clone();
        Ok(())
    }

    fn drain_nodes(&mut self, nodes: &[NodeId]) -> Result<(), PlanRefusal> {
        for id in nodes {
            let entry = self.node(*id).ok_or(PlanRefusal::UnknownNode { node: *id })?;
            entry.drained = true;
            let group = entry.group;
            self.groups.push(group);
        }
        self.closing = self.announced.clone();
        Ok(())
    }

    fn replace(&mut self, old: NodeId, new: &NodeEntry) -> Result<(), PlanRefusal> {
        let expected = self.node(old).ok_or(PlanRefusal::UnknownNode { node: old })?.group;
        if new.group != expected {
            return Err(PlanRefusal::OtherGroup { node: new.id, got: new.group, expected });
        }
        self.add_nodes(std::slice::from_ref(new))?;
        self.drain_nodes(&[old])?;
        self.closing.1.retain(|node| node.id != old);
        self.groups.clear();
        self.replaced = Some((old, new.id));
        Ok(())
    }

    fn add_group(&mut self, group: GroupId, nodes: &[NodeEntry]) -> Result<(), PlanRefusal> {
        let Err(index) = self.announced.0.binary_search_by_key(&group, |entry| entry.id) else {
            return Err(PlanRefusal::GroupExists { group });
        };
        if let Some(node) = nodes.iter().find(|node| node.group != group) {
            return Err(PlanRefusal::OtherGroup { node: node.id, got: node.group, expected: group });
        }
        if let Some(node) = nodes.iter().find(|node| self.announced.1.iter().any(|old| old.id == node.id)) {
            return Err(PlanRefusal::NodeExists { node: node.id });
        }
        self.announced.0.insert(index, GroupEntry { id: group, role: GroupRole::Joining });
        self.announced.1.extend(nodes.iter().map(|node| NodeEntry { drained: false, ..node.clone() }));
        self.closing = self.announced.clone();
        self.closing.0[index].role = GroupRole::Serving;
        self.added = Some(group);
        Ok(())
    }

    fn remove_group(&mut self, group: GroupId) -> Result<(), PlanRefusal> {
        match self.announced.0.iter().find(|entry| entry.id == group).map(|entry| entry.role) {
            // It has been removed already.
            None => return Ok(()),
            Some(GroupRole::Serving) => return Err(PlanRefusal::GroupServes { group }),
            Some(role @ GroupRole::Joining) => return Err(PlanRefusal::GroupRole { group, role }),
            Some(GroupRole::Maintenance) => {}
        }
        self.closing.0.retain(|entry| entry.id != group);
        self.closing.1.retain(|node| node.group != group);
        self.removed = Some(group);
        Ok(())
    }

    fn change_role(&mut self, group: GroupId, from: GroupRole, to: GroupRole) -> Result<(), PlanRefusal> {
        let serving = self.announced.0.iter().filter(|entry| entry.role == GroupRole::Serving).count();
        let entry = self.announced.0.iter_mut().find(|entry| entry.id == group);
        let entry = entry.ok_or(PlanRefusal::UnknownGroup { group })?;
        if entry.role != from {
            return Err(PlanRefusal::GroupRole { group, role: entry.role });
        }
        if from == GroupRole::Serving && serving == 1 {
            return Err(PlanRefusal::LastServingGroup { group });
        }
        entry.role = to;
        self.closing = self.announced.clone();
        Ok(())
    }
}

/// Writes the shape in the words of the command line.
impl fmt::Display for TargetShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries =
            |nodes: &[NodeEntry]| nodes.iter().map(|node| node.id.to_string()).collect::<Vec<_>>().join(" ");
        let ids = |nodes: &[NodeId]| nodes.iter().map(NodeId::to_string).collect::<Vec<_>>().join(" ");
        match self {
            TargetShape::AddNodes(nodes) => write!(f, "add nodes {}", entries(nodes)),
            TargetShape::RemoveNodes(nodes) => write!(f, "remove nodes {}", ids(nodes)),
            TargetShape::DrainNodes(nodes) => write!(f, "drain nodes {}", ids(nodes)),
            TargetShape::ReplaceNode { old, new } => write!(f, "replace node {old} by {}", new.id),
            TargetShape::AddGroup { group, nodes } => write!(f, "add group {group} of {}", entries(nodes)),
            TargetShape::DrainGroup(group) => write!(f, "take out group {group}"),
            TargetShape::RestoreGroup(group) => write!(f, "restore group {group}"),
            TargetShape::RemoveGroup(group) => write!(f, "remove group {group}"),
            TargetShape::Even => f.write_str("even out"),
        }
    }
}
