//! Makes a plan from a user's request: resolves the names of nodes and determines the sizes of stores.

use super::{
    Dead,
    document::settled,
    refused::{bad_shape, plan_status},
    restore::check_is_current,
    sizes::SizeReader,
    unavailable,
};
use crate::admin::ClusterHandle;
use kith_cluster::metadata::{keys, records};
use kith_routing::rebalance::{PlanOptions, RebalancePlan, TargetShape, plan};
use kith_routing::{NodeEntry, RoutingTable};
use kith_types::{GroupId, NodeId};
use kith_wire::{
    documents::{ClusterDocument, Document, NodeDocument, TopologyDocument},
    v1,
};
use std::{collections::BTreeMap, sync::Arc};
use tonic::Status;

/// A plan, and the state that it is based on.
pub(super) struct PlannedRebalance {
    pub plan: RebalancePlan,
    pub cluster: ClusterDocument,
    pub cluster_revision: u64,
    pub dead: Dead,
}

/// Makes plans from the cluster as it is now.
pub(super) struct Planner<'a> {
    pub cluster: &'a ClusterHandle,
}

impl Planner<'_> {
    /// Plans the change to a shape.
    pub async fn plan(&self, asked: &v1::ShapeRequest) -> Result<PlannedRebalance, Status> {
        let snapshot = self.cluster.metadata.read(keys::CLUSTER).await.map_err(unavailable)?;
        let other = |detail: String| records::other_release(detail);
        let entry = snapshot.get(keys::CLUSTER).ok_or_else(|| other("there is no cluster yet".to_owned()))?;
        let cluster = ClusterDocument::decode(&entry.value).map_err(|error| other(error.to_string()))?;
        let before = settled(&cluster).map_err(|error| other(error.to_string()))?;
        let table = RoutingTable::new(before).map_err(|error| other(error.to_string()))?;
        let topology = Arc::clone(&self.cluster.topology.borrow());
        let shape = shape_of(asked, &cluster, &topology)?;
        let dead = self.dead(&table, &shape, &topology).await?;
        let stores = SizeReader { dialer: &self.cluster.dialer }.sizes(&topology, &dead).await?;
        let mut options = PlanOptions { dead: dead.clone(), ..PlanOptions::default() };
        if 0 < asked.batch_size {
            options.batch_size = asked.batch_size as usize;
        }
        let plan = plan(&table, &shape, &stores, &options).map_err(|refusal| plan_status(&refusal))?;
        if let TargetShape::RestoreGroup(id) = shape
            && let Some(group) = cluster.groups.iter().find(|group| group.group == id.0)
        {
            check_is_current(&self.cluster.dialer, group, &topology).await?;
        }
        Ok(PlannedRebalance { plan, cluster, cluster_revision: entry.revision, dead })
    }

    /// Returns the nodes of the table that are down. Fails if a node that would receive partitions is down.
    async fn dead(
        &self,
        table: &RoutingTable,
        shape: &TargetShape,
        topology: &TopologyDocument,
    ) -> Result<Dead, Status> {
        let added: &[NodeEntry] = match shape {
            TargetShape::AddNodes(nodes) | TargetShape::AddGroup { nodes, .. } => nodes,
            TargetShape::ReplaceNode { new, .. } => std::slice::from_ref(new),
            _ => &[],
        };
        let nodes = table.nodes().iter().chain(added).map(|node| node.id).collect();
        let dead = super::nodes::dead(&*self.cluster.metadata, &self.cluster.dialer, topology, &nodes)
            .await
            .map_err(unavailable)?;
        match added.iter().find(|node| dead.contains(&node.id)) {
            Some(node) => Err(bad_shape(
                format!("node {} does not answer", node.id),
                "start it with `kith node`, then ask again",
            )),
            None => Ok(dead),
        }
    }
}

fn shape_of(
    asked: &v1::ShapeRequest,
    cluster: &ClusterDocument,
    topology: &TopologyDocument,
) -> Result<TargetShape, Status> {
    let group = || {
        let group = asked.group.ok_or_else(|| bad_shape("no group is named".to_owned(), "name one"))?;
        Ok::<_, Status>(GroupId(group))
    };
    let ids =
        || named(asked, topology)?.iter().map(|it| Ok(NodeId(it.node))).collect::<Result<Vec<_>, Status>>();
    Ok(match asked.shape.as_str() {
        "add-node" => TargetShape::AddNodes(into_groups(&named(asked, topology)?, asked.group, cluster)),
        "replace-node" => {
            let old = node_of(&asked.replaces, topology)?;
            let own = cluster.groups.iter().find(|group| group.nodes.contains(&old.node));
            let own = own.map(|group| group.group).ok_or_else(|| {
                bad_shape(format!("node {} is in no group", old.node), "it needs no replacement")
            })?;
            match named(asked, topology)?.as_slice() {
                [new] => TargetShape::ReplaceNode { old: NodeId(old.node), new: entry(new, own) },
                _ => {
                    return Err(bad_shape(
                        "exactly one node can replace another".to_owned(),
                        "name one node",
                    ));
                }
            }
        }
        "add-group" => {
            let next = cluster.groups.iter().map(|group| group.group + 1).max().unwrap_or(0);
            let group = asked.group.unwrap_or(next);
            let nodes = named(asked, topology)?.iter().map(|node| entry(node, group)).collect();
            TargetShape::AddGroup { group: GroupId(group), nodes }
        }
        "drain" => TargetShape::DrainNodes(ids()?),
        "remove-node" => TargetShape::RemoveNodes(ids()?),
        "drain-group" => TargetShape::DrainGroup(group()?),
        "remove-group" => TargetShape::RemoveGroup(group()?),
        "restore-group" => TargetShape::RestoreGroup(group()?),
        "even" => TargetShape::Even,
        other => {
            let message = format!("there is no shape {other:?}");
            return Err(bad_shape(message, "use a kith of the cluster's release"));
        }
    })
}

/// Returns the named nodes; fails if none is named.
fn named<'a>(
    asked: &v1::ShapeRequest,
    topology: &'a TopologyDocument,
) -> Result<Vec<&'a NodeDocument>, Status> {
    if asked.nodes.is_empty() {
        return Err(bad_shape("no node is named".to_owned(), "name nodes by address or id"));
    }
    asked.nodes.iter().map(|name| node_of(name, topology)).collect()
}

/// Returns the registered node with this address or id.
fn node_of<'a>(name: &str, topology: &'a TopologyDocument) -> Result<&'a NodeDocument, Status> {
    let id: Option<u32> = name.strip_prefix('n').unwrap_or(name).parse().ok();
    // If several nodes have used an address, it belongs to the one that registered last.
    let known = topology
        .nodes
        .iter()
        .rev()
        .find(|node| node.addr == name || node.http == name || Some(node.node) == id);
    known.ok_or_else(|| {
        let help = "start it with `kith node --node ID --metadata HOST:PORT` (with etcd: `--metadata etcd://HOST:PORT,… --cluster NAME`); `kith cluster status` lists spare nodes";
        bad_shape(format!("no node {name:?} has registered"), help)
    })
}

fn entry(node: &NodeDocument, group: u32) -> NodeEntry {
    NodeEntry {
        id: NodeId(node.node),
        group: GroupId(group),
        address: String::new(),
        zone: node.zone.clone(),
        rack: node.rack.clone(),
        region: node.region.clone(),
        drained: false,
    }
}

/// Returns the nodes with their groups: the named group; else a drained node's own group; else the group with the fewest
/// nodes.
fn into_groups(nodes: &[&NodeDocument], group: Option<u32>, cluster: &ClusterDocument) -> Vec<NodeEntry> {
    let mut sizes: BTreeMap<u32, usize> =
        cluster.groups.iter().map(|group| (group.group, group.nodes.len())).collect();
    if cluster.strategy == "ring" {
        sizes.retain(|group, _| *group == 0);
    }
    let mut entries = Vec::new();
    for node in nodes {
        let own =
            cluster.groups.iter().find(|group| group.nodes.contains(&node.node)).map(|group| group.group);
        let smallest =
            || sizes.iter().min_by_key(|(group, count)| (**count, **group)).map(|(group, _)| *group);
        let chosen = group.or(own).or_else(smallest).unwrap_or_default();
        *sizes.entry(chosen).or_default() += 1;
        entries.push(entry(node, chosen));
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;
    use kith_wire::documents::{DOCUMENT_FORMAT, GroupDocument};

    fn cluster(groups: &[(u32, &[u32])]) -> ClusterDocument {
        let group = |(group, nodes): &(u32, &[u32])| GroupDocument {
            group: *group,
            nodes: nodes.to_vec(),
            owners: vec![nodes[0]; 4],
            role: String::new(),
        };
        ClusterDocument {
            format: DOCUMENT_FORMAT,
            cluster_id: String::new(),
            epoch: 1,
            partitions: 4,
            groups: groups.iter().map(group).collect(),
            object_store: String::new(),
            strategy: String::new(),
            listed: vec![],
            partition_epochs: vec![],
        }
    }

    fn registered(node: u32) -> NodeDocument {
        NodeDocument {
            format: DOCUMENT_FORMAT,
            node,
            addr: format!("10.0.0.{node}:7"),
            http: format!("10.0.0.{node}:8"),
            resp: String::new(),
            pid: 1,
            zone: "a".into(),
            rack: String::new(),
            region: String::new(),
        }
    }

    fn topology(cluster: ClusterDocument, nodes: &[u32]) -> TopologyDocument {
        TopologyDocument {
            format: DOCUMENT_FORMAT,
            revision: 1,
            cluster,
            nodes: nodes.iter().copied().map(registered).collect(),
            routers: vec![],
            stores: vec![],
            kept: vec![],
            live: vec![],
            types: Default::default(),
            leaders: vec![],
            databases: vec![],
            rebalance: None,
        }
    }

    fn asked(shape: &str, nodes: &[&str]) -> v1::ShapeRequest {
        let nodes = nodes.iter().map(ToString::to_string).collect();
        v1::ShapeRequest { shape: shape.to_owned(), nodes, ..Default::default() }
    }

    #[test]
    fn new_nodes_go_where_the_fewest_are_unless_a_group_is_named_and_drained_ones_where_they_were() {
        let cluster = cluster(&[(0, &[0, 1]), (3, &[2])]);
        let topology = topology(cluster.clone(), &[0, 1, 2, 7, 8, 9]);
        let groups = |asked: &v1::ShapeRequest| match shape_of(asked, &cluster, &topology).unwrap() {
            TargetShape::AddNodes(nodes) => nodes.iter().map(|node| node.group.0).collect::<Vec<_>>(),
            other => panic!("{other}"),
        };
        assert_eq!(groups(&asked("add-node", &["10.0.0.7:7", "8", "n9"])), [3, 0, 3]);
        assert_eq!(groups(&asked("add-node", &["7", "2"])), [3, 3]);
        assert_eq!(groups(&v1::ShapeRequest { group: Some(0), ..asked("add-node", &["7", "8"]) }), [0, 0]);
        let next = shape_of(&asked("add-group", &["7"]), &cluster, &topology).unwrap();
        assert!(matches!(&next, TargetShape::AddGroup { group: GroupId(4), nodes } if nodes[0].zone == "a"));
    }

    #[test]
    fn what_is_named_must_be_there() {
        let cluster = cluster(&[(0, &[0, 1])]);
        let topology = topology(cluster.clone(), &[0, 1, 7]);
        let replace = |replaces: &str, nodes: &[&str]| v1::ShapeRequest {
            replaces: replaces.to_owned(),
            ..asked("replace-node", nodes)
        };
        shape_of(&replace("1", &["7"]), &cluster, &topology).unwrap();
        for wrong in [
            asked("add-node", &[]),
            asked("drain", &["10.0.0.9:7"]),
            asked("drain-group", &[]),
            asked("shrink", &[]),
            replace("7", &["0"]),
            replace("1", &["7", "0"]),
            replace("", &["7"]),
        ] {
            let refused = shape_of(&wrong, &cluster, &topology).unwrap_err();
            assert_eq!(kith_wire::code_of(&refused), ErrorCode::BadShape, "{wrong:?}");
        }
    }
}
