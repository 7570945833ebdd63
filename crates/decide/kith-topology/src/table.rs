//! Converts the routing table to documents and back, without loss.

use kith_routing::{GroupEntry, GroupRole, NodeEntry, RoutingTable, Strategy, TableError, TableParts};
use kith_types::{Epoch, GroupId, NodeId, PartitionCount};
use kith_wire::documents::{ClusterDocument, GroupDocument, ListedNodeDocument, TopologyDocument};
use thiserror::Error;

/// The reason why the routing table in a document is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BadTable {
    /// The number of partitions is invalid.
    #[error("{0} partitions")]
    Partitions(u32),
    /// The table's strategy or a group's role is invalid, or of a newer release.
    #[error("unknown {what} {name:?}")]
    Word {
        /// The kind of word that is expected.
        what: &'static str,
        /// The word in the document.
        name: String,
    },
    /// The owners do not form a valid table.
    #[error("routing table")]
    Owners(#[from] TableError),
}

/// The table that a cluster's document describes, without addresses, because those change when nodes restart.
///
/// # Errors
/// If the document has values that this release does not know.
pub fn table_parts(cluster: &ClusterDocument) -> Result<TableParts, BadTable> {
    let partition_count =
        PartitionCount::new(cluster.partitions).ok_or(BadTable::Partitions(cluster.partitions))?;
    let strategy = match cluster.strategy.as_str() {
        "" => Strategy::ReplicaGroups,
        "ring" => Strategy::Ring,
        name => return Err(BadTable::Word { what: "strategy", name: name.to_owned() }),
    };
    let groups = cluster
        .groups
        .iter()
        .map(|group| Ok(GroupEntry { id: GroupId(group.group), role: role_of_group(&group.role)? }));
    let nodes = cluster.groups.iter().flat_map(|group| {
        group.nodes.iter().map(|&node| {
            let listed = cluster.listed.iter().find(|listed| listed.node == node);
            let bare = || NodeEntry { id: NodeId(node), group: GroupId(group.group), ..NodeEntry::default() };
            listed
                .map_or_else(bare, |listed| NodeEntry { group: GroupId(group.group), ..listed_entry(listed) })
        })
    });
    let owners = cluster.groups.iter().map(|group| group.owners.iter().copied().map(NodeId).collect());
    Ok(TableParts {
        epoch: Epoch(cluster.epoch),
        strategy,
        partition_count,
        groups: groups.collect::<Result<_, BadTable>>()?,
        nodes: nodes.collect(),
        owners: owners.collect(),
        partition_epochs: cluster.partition_epochs.iter().copied().map(Epoch).collect(),
    })
}

/// The table with addresses. If the table lists a node without labels, it gets the labels that it registered with.
///
/// # Errors
/// If the document is invalid.
pub fn table_of_document(document: &TopologyDocument) -> Result<RoutingTable, BadTable> {
    let mut parts = table_parts(&document.cluster)?;
    for entry in &mut parts.nodes {
        let Some(known) = document.nodes.iter().find(|known| known.node == entry.id.0) else { continue };
        entry.address.clone_from(&known.addr);
        if entry.zone.is_empty() && entry.rack.is_empty() && entry.region.is_empty() {
            entry.zone.clone_from(&known.zone);
            entry.rack.clone_from(&known.rack);
            entry.region.clone_from(&known.region);
        }
    }
    Ok(RoutingTable::new(parts)?)
}

/// The document of a table. Properties that a table does not have are copied from `before`.
pub fn cluster_document(parts: &TableParts, before: &ClusterDocument) -> ClusterDocument {
    let groups = parts.groups.iter().zip(&parts.owners).map(|(group, owners)| GroupDocument {
        group: group.id.0,
        nodes: parts.nodes.iter().filter(|node| node.group == group.id).map(|node| node.id.0).collect(),
        owners: owners.iter().map(|node| node.0).collect(),
        role: role_text(group.role).to_owned(),
    });
    let says_more = |listed: &ListedNodeDocument| {
        let ListedNodeDocument { node, group, .. } = *listed;
        *listed != ListedNodeDocument { node, group, ..ListedNodeDocument::default() }
    };
    let uniform = parts.partition_epochs.iter().all(|epoch| *epoch == parts.epoch);
    ClusterDocument {
        format: before.format,
        cluster_id: before.cluster_id.clone(),
        epoch: parts.epoch.0,
        partitions: parts.partition_count.get(),
        groups: groups.collect(),
        object_store: before.object_store.clone(),
        strategy: match parts.strategy {
            Strategy::ReplicaGroups => String::new(),
            Strategy::Ring => "ring".to_owned(),
        },
        listed: parts.nodes.iter().map(listed_document).filter(says_more).collect(),
        partition_epochs: match uniform {
            true => Vec::new(),
            false => parts.partition_epochs.iter().map(|epoch| epoch.0).collect(),
        },
    }
}

/// Encodes a node of a table for a document.
pub fn listed_document(entry: &NodeEntry) -> ListedNodeDocument {
    ListedNodeDocument {
        node: entry.id.0,
        group: entry.group.0,
        zone: entry.zone.clone(),
        rack: entry.rack.clone(),
        region: entry.region.clone(),
        drained: entry.drained,
    }
}

/// Decodes a node of a document, without an address.
pub fn listed_entry(listed: &ListedNodeDocument) -> NodeEntry {
    NodeEntry {
        id: NodeId(listed.node),
        group: GroupId(listed.group),
        address: String::new(),
        zone: listed.zone.clone(),
        rack: listed.rack.clone(),
        region: listed.region.clone(),
        drained: listed.drained,
    }
}

/// The name of a group's role in documents; empty while it serves.
pub fn role_text(role: GroupRole) -> &'static str {
    match role {
        GroupRole::Serving => "",
        GroupRole::Maintenance => "maintenance",
        GroupRole::Joining => "joining",
    }
}

/// The role of this name.
///
/// # Errors
/// [`BadTable::Word`] if there is no such role.
pub fn role_of_group(name: &str) -> Result<GroupRole, BadTable> {
    let roles = [GroupRole::Serving, GroupRole::Maintenance, GroupRole::Joining];
    let role = roles.into_iter().find(|role| role_text(*role) == name);
    role.ok_or_else(|| BadTable::Word { what: "role of a group", name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_routing::rebalance::{PlanOptions, TargetShape, plan};
    use kith_wire::documents::DOCUMENT_FORMAT;

    fn start() -> ClusterDocument {
        let group = |group: u32, nodes: [u32; 2]| GroupDocument {
            group,
            nodes: nodes.to_vec(),
            owners: (0..8).map(|partition| nodes[partition % 2]).collect(),
            role: String::new(),
        };
        ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: "c".into(),
            epoch: 1,
            partitions: 8,
            groups: vec![group(0, [0, 1]), group(1, [2, 3])],
            object_store: "objects".into(),
            strategy: String::new(),
            listed: Vec::new(),
            partition_epochs: Vec::new(),
        }
    }

    #[test]
    fn every_table_of_a_rebalance_comes_back_as_it_was() {
        let mut document = start();
        let node = |id: u32, group: u32| NodeEntry {
            id: NodeId(id),
            group: GroupId(group),
            zone: "a".into(),
            ..NodeEntry::default()
        };
        let shapes = [
            TargetShape::AddNodes(vec![node(4, 0)]),
            TargetShape::DrainNodes(vec![NodeId(2)]),
            TargetShape::AddGroup { group: GroupId(5), nodes: vec![node(9, 5)] },
            TargetShape::DrainGroup(GroupId(0)),
        ];
        for shape in shapes {
            let table = RoutingTable::new(table_parts(&document).unwrap()).unwrap();
            let options = PlanOptions { batch_size: 2, ..PlanOptions::default() };
            let plan = plan(&table, &shape, &[], &options).unwrap();
            let mut parts = plan.before.clone();
            for step in plan.steps() {
                plan.apply(step, &mut parts).unwrap();
                let settled = RoutingTable::new(parts.clone()).unwrap().to_parts();
                document = cluster_document(&settled, &document);
                let read = RoutingTable::new(table_parts(&document).unwrap()).unwrap();
                assert_eq!(read.to_parts(), settled, "{shape}");
            }
        }
        assert_eq!(
            (document.object_store.as_str(), document.groups[0].role.as_str()),
            ("objects", "maintenance")
        );
        document.groups[1].role = "resting".into();
        assert_eq!(table_parts(&document).unwrap_err().to_string(), "unknown role of a group \"resting\"");
    }
}
