//! The cluster that the first lines of a script describe, and parsers for the names of nodes, groups and partitions.

use crate::scenario::{Command, group, number, numbered, partitions};
use kith_routing::placement::preference_lists;
use kith_routing::{GroupEntry, GroupRole, NodeEntry, RoutingTable, Strategy, TableParts};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount, PartitionId};
use std::collections::BTreeMap;

/// The lines about the cluster, collected until a command needs the table.
#[derive(Default)]
pub struct Layout {
    groups: BTreeMap<GroupId, Vec<NodeId>>,
    /// The owner of each partition in each group.
    owners: Vec<Vec<NodeId>>,
    zones: BTreeMap<NodeId, String>,
    strategy: Strategy,
}

impl Layout {
    /// Takes in a line if it is about the cluster: `group g0: …`, `zone east: n0 n1`. Otherwise returns `None`.
    pub fn take(&mut self, command: &Command<'_>) -> Option<Result<(), String>> {
        match command.words.as_slice() {
            ["group", ..] => Some(self.group(command.text)),
            ["zone", name, nodes @ ..] if name.ends_with(':') => Some(self.zone(name, nodes)),
            _ => None,
        }
    }

    fn group(&mut self, line: &str) -> Result<(), String> {
        let group = group(line)?;
        if self.groups.last_key_value().is_some_and(|(last, _)| GroupId(group.group) <= *last) {
            return Err("groups are given in ascending order".to_owned());
        }
        self.owners.push(group.by_partition()?.into_iter().map(NodeId).collect());
        let nodes = group.owners.iter().map(|owner| NodeId(owner.node)).collect();
        self.groups.insert(GroupId(group.group), nodes);
        Ok(())
    }

    fn zone(&mut self, name: &str, nodes: &[&str]) -> Result<(), String> {
        for node in nodes {
            self.zones.insert(node_id(node)?, name.trim_end_matches(':').to_owned());
        }
        Ok(())
    }

    /// Adds a group whose partitions will be placed later.
    pub fn add_group(&mut self, group: GroupId, nodes: Vec<NodeId>) {
        self.groups.insert(group, nodes);
    }

    /// Sets the owners that a placement found, or the ranks of a ring. Each rank is listed as a group.
    pub fn own(&mut self, strategy: Strategy, owners: Vec<Vec<NodeId>>) {
        self.strategy = strategy;
        self.owners = owners;
    }

    /// Returns the owner of each partition in each rank of a ring, which is given as nodes clockwise. The inner error is the
    /// number of distinct nodes, if it is less than the number of replicas.
    pub fn ring(
        &mut self,
        nodes: &[&str],
        command: &Command<'_>,
    ) -> Result<Result<Vec<Vec<NodeId>>, usize>, String> {
        command.clauses_are(&["replicas"])?;
        let replicas = number(command.value("replicas")?.ok_or("a ring has a number of replicas")?)?;
        let mut nodes = node_ids(nodes)?;
        let ranks = preference_lists(&nodes, replicas as usize);
        if let Ok(ranks) = &ranks {
            nodes.sort_unstable();
            nodes.dedup();
            self.add_group(GroupId(0), nodes);
            self.own(Strategy::Ring, ranks.clone());
        }
        Ok(ranks)
    }

    /// Returns all nodes, by group.
    pub fn nodes(&self) -> Vec<NodeEntry> {
        let of = |(group, nodes): (&GroupId, &Vec<NodeId>)| {
            let group = *group;
            let entry = move |id: NodeId| self.node(id, group);
            nodes.iter().copied().map(entry).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of).collect()
    }

    /// Returns the entry of a node, in the zone that a line assigned to it.
    pub fn node(&self, id: NodeId, group: GroupId) -> NodeEntry {
        let zone = self.zones.get(&id).cloned().unwrap_or_default();
        NodeEntry { id, group, zone, ..NodeEntry::default() }
    }

    /// Returns all groups, ascending.
    pub fn groups(&self) -> Vec<GroupId> {
        self.groups.keys().copied().collect()
    }

    /// Returns the table for all lines so far, at epoch 1.
    pub fn table(&self) -> Result<RoutingTable, String> {
        let count = self.owners.first().map_or(0, Vec::len) as u32;
        let partition_count = PartitionCount::new(count).ok_or("a script begins with its groups")?;
        let groups = match self.strategy {
            Strategy::ReplicaGroups => self.groups(),
            Strategy::Ring => (0..self.owners.len() as u32).map(GroupId).collect(),
        };
        let entry = |id: GroupId| GroupEntry { id, role: GroupRole::Serving };
        let parts = TableParts {
            epoch: Epoch(1),
            strategy: self.strategy,
            partition_count,
            groups: groups.into_iter().map(entry).collect(),
            nodes: self.nodes(),
            owners: self.owners.clone(),
            partition_epochs: Vec::new(),
        };
        RoutingTable::new(parts).map_err(|error| error.to_string())
    }
}

/// Parses `n3`.
pub fn node_id(word: &str) -> Result<NodeId, String> {
    numbered(word, "n").map(NodeId)
}

/// Parses words such as `n3`.
pub fn node_ids(words: &[&str]) -> Result<Vec<NodeId>, String> {
    words.iter().map(|word| node_id(word)).collect()
}

/// Parses `g1`.
pub fn group_id(word: &str) -> Result<GroupId, String> {
    numbered(word, "g").map(GroupId)
}

/// Parses words such as `p3`, and ranges such as `p0..p6`.
pub fn partition_ids(words: &[&str]) -> Result<Vec<PartitionId>, String> {
    Ok(partitions(words)?.into_iter().map(PartitionId).collect())
}

/// Joins things with single spaces.
pub fn list(things: impl IntoIterator<Item = impl ToString>) -> String {
    things.into_iter().map(|thing| thing.to_string()).collect::<Vec<_>>().join(" ")
}

/// Formats a number with a noun: `1 request`, `2 requests`.
pub fn count(number: usize, one: &str) -> String {
    counted(number, one, &format!("{one}s"))
}

/// Formats a number with a noun: `1 copy`, `2 copies`.
pub fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Returns one line per group, with its nodes and their partitions.
pub fn owners(parts: &TableParts) -> Vec<String> {
    let of_group = |(index, group): (usize, &GroupEntry)| {
        let owners = &parts.owners[index];
        let of_node = |node: &NodeEntry| {
            let owned = (0u32..).zip(owners).filter(|(_, owner)| **owner == node.id);
            format!("{}[{}]", node.id, list(owned.map(|(partition, _)| PartitionId(partition))))
        };
        let nodes = parts.nodes.iter().filter(|node| node.group == group.id);
        format!("{}: {}", group.id, list(nodes.map(of_node)))
    };
    parts.groups.iter().enumerate().map(of_group).collect()
}
