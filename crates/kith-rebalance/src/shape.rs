//! What a cluster shall look like afterwards, and why that may be refused.

use kith_routing::placement::PlacementError;
use kith_routing::{GroupEntry, GroupRole, NodeEntry, Strategy, TableError, TableParts};
use kith_types::{GroupId, NodeId, PartitionId};
use std::fmt;
use thiserror::Error;

/// What shall become of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum TargetShape {
    /// New nodes, or drained ones to be used again, take their share of their groups.
    AddNodes(Vec<NodeEntry>),
    /// Nodes give up what they own and leave the table.
    RemoveNodes(Vec<NodeId>),
    /// Nodes give up what they own and stay listed, unused.
    DrainNodes(Vec<NodeId>),
    /// One node takes over all that another owns; the other, dead or alive, leaves the table.
    ReplaceNode {
        /// Who leaves.
        old: NodeId,
        /// Who takes over; of the same group.
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
    /// The nodes that are there share their groups evenly.
    Even,
}

/// A shape cannot be planned; nothing has changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PlanRefusal {
    /// A node is not in the table.
    #[error("node {node} is not in the routing table")]
    UnknownNode { node: NodeId },
    /// A group is not in the table.
    #[error("group {group} is not in the routing table")]
    UnknownGroup { group: GroupId },
    /// A node to add is in the table, in use.
    #[error("node {node} is in the routing table already")]
    NodeExists { node: NodeId },
    /// A group to add is in the table.
    #[error("group {group} is in the routing table already")]
    GroupExists { group: GroupId },
    /// A node is listed with another group than the change is about.
    #[error("node {node} belongs to group {got}, not {expected}")]
    OtherGroup {
        node: NodeId,
        /// Its entry's group.
        got: GroupId,
        /// The group that the change is about.
        expected: GroupId,
    },
    /// A group has another role than the change starts from.
    #[error("group {group} is {}", describe(*.role))]
    GroupRole {
        group: GroupId,
        /// What it is now.
        role: GroupRole,
    },
    /// No group would be left to serve.
    #[error("group {group} is the last one that serves: restore or add another first")]
    LastServingGroup { group: GroupId },
    /// A store would have no group left that serves it.
    #[error(
        "store {store} is served by group {group} only: raise its replication or restore another group first"
    )]
    StoreOnlyThere {
        store: String,
        /// The group to be taken out.
        group: GroupId,
    },
    /// A store's answers must agree, and too few groups would be left to give them.
    #[error(
        "{required} replicas of store {store} must agree, and without group {group} {left} would answer: restore another group first"
    )]
    AnswersMissing {
        store: String,
        /// The group to be taken out.
        group: GroupId,
        /// Groups that would be left.
        left: usize,
        /// Answers that must agree.
        required: usize,
    },
    /// Nodes that lack a version would have to answer for it.
    #[error(
        "without group {group} nodes that do not have store {store} yet would have to answer for partition {partition}: they fetch it by themselves, try again"
    )]
    StoreBehind {
        store: String,
        /// The group to be taken out.
        group: GroupId,
        /// The first such partition.
        partition: PartitionId,
    },
    /// A ring has ranks, which come from its nodes; they are not added or taken out.
    #[error("a ring has no groups to add or take out: add or drain nodes")]
    RingHasNoGroups,
    /// Nobody alive has what is to be copied.
    #[error("no live node can give {}partition {partition}", .store.as_ref().map(|s| format!("store {s}, ")).unwrap_or_default())]
    NoDonor {
        /// The store, if it is about one.
        store: Option<String>,
        partition: PartitionId,
    },
    /// The sizes of a store are not one per partition.
    #[error("store {store} gives sizes of {got} partitions, the cluster has {expected}")]
    Sizes {
        store: String,
        /// As given.
        got: usize,
        /// Partitions of the cluster.
        expected: usize,
    },
    /// Batches of nothing would never end.
    #[error("a batch holds at least one partition")]
    EmptyBatch,
    /// The nodes that would be left cannot hold the partitions.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The table that would result contradicts itself.
    #[error(transparent)]
    Table(#[from] TableError),
}

fn describe(role: GroupRole) -> &'static str {
    match role {
        GroupRole::Serving => "serving already",
        GroupRole::Maintenance => "taken out already",
        GroupRole::Joining => "still being filled",
    }
}

/// What is listed while data moves, and at the end.
pub(crate) struct Target {
    pub(crate) announced: (Vec<GroupEntry>, Vec<NodeEntry>),
    pub(crate) closing: (Vec<GroupEntry>, Vec<NodeEntry>),
    /// Groups whose sizes shall be even again.
    pub(crate) groups: Vec<GroupId>,
    pub(crate) replaced: Option<(NodeId, NodeId)>,
    pub(crate) added: Option<GroupId>,
}

impl TargetShape {
    pub(crate) fn resolve(&self, parts: &TableParts) -> Result<Target, PlanRefusal> {
        let now = (parts.groups.clone(), parts.nodes.clone());
        let mut target =
            Target { announced: now.clone(), closing: now, groups: Vec::new(), replaced: None, added: None };
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
        let Err(place) = self.announced.0.binary_search_by_key(&group, |entry| entry.id) else {
            return Err(PlanRefusal::GroupExists { group });
        };
        if let Some(node) = nodes.iter().find(|node| node.group != group) {
            return Err(PlanRefusal::OtherGroup { node: node.id, got: node.group, expected: group });
        }
        if let Some(node) = nodes.iter().find(|node| self.announced.1.iter().any(|old| old.id == node.id)) {
            return Err(PlanRefusal::NodeExists { node: node.id });
        }
        self.announced.0.insert(place, GroupEntry { id: group, role: GroupRole::Joining });
        self.announced.1.extend(nodes.iter().map(|node| NodeEntry { drained: false, ..node.clone() }));
        self.closing = self.announced.clone();
        self.closing.0[place].role = GroupRole::Serving;
        self.added = Some(group);
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

/// In the words of the command line.
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
            TargetShape::Even => f.write_str("even out"),
        }
    }
}
