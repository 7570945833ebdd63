//! The cluster's shape, for metrics and the status: nodes that are down, and groups that are taken out.

use kith_types::NodeId;
use kith_wire::{
    documents::{GroupDocument, TopologyDocument},
    v1,
};
use std::collections::BTreeMap;

/// A group and a zone. Nodes without a label are in the zone with the empty name.
type GroupZone = (u32, String);

/// The numbers of nodes in use in one group and zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Nodes {
    listed: u32,
    down: u32,
}

/// The shape that the metrics show.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shape {
    nodes: BTreeMap<GroupZone, Nodes>,
    /// Whether each group is taken out of service.
    groups: BTreeMap<u32, bool>,
}

impl Shape {
    fn of(topology: &TopologyDocument, is_up: impl Fn(NodeId) -> bool) -> Self {
        let cluster = &topology.cluster;
        let mut shape = Self::default();
        for group in &cluster.groups {
            shape.groups.insert(group.group, state(group) == "out");
            for &node in &group.nodes {
                let listed = cluster.listed.iter().find(|listed| listed.node == node);
                // A drained node holds nothing, so it does not matter whether it is down.
                if listed.is_some_and(|listed| listed.drained) {
                    continue;
                }
                let document = topology.nodes.iter().find(|document| document.node == node);
                let zone = listed.map(|listed| &listed.zone).filter(|zone| !zone.is_empty());
                let zone = zone.or(document.map(|document| &document.zone)).cloned().unwrap_or_default();
                let nodes = shape.nodes.entry((group.group, zone)).or_default();
                nodes.listed += 1;
                nodes.down += u32::from(document.is_none() || !is_up(NodeId(node)));
            }
        }
        shape
    }

    /// Shows a topology in the metrics. Gauges of labels that are gone are set to 0.
    pub fn show(&mut self, topology: &TopologyDocument, is_up: impl Fn(NodeId) -> bool) {
        let now = Self::of(topology, is_up);
        for label in self.nodes.keys().filter(|label| !now.nodes.contains_key(*label)) {
            nodes(label, Nodes::default());
        }
        for group in self.groups.keys().filter(|group| !now.groups.contains_key(*group)) {
            out(*group, false);
        }
        now.nodes.iter().for_each(|(label, counted)| nodes(label, *counted));
        now.groups.iter().for_each(|(group, is_out)| out(*group, *is_out));
        *self = now;
    }
}

/// Returns the status of each group. `down` lists the nodes that are down.
pub(crate) fn groups(topology: &TopologyDocument, down: &[u32]) -> Vec<v1::GroupStatus> {
    let group = |group: &GroupDocument| v1::GroupStatus {
        group: group.group,
        state: state(group).to_owned(),
        nodes: group.nodes.len() as u32,
        nodes_down: group.nodes.iter().filter(|node| down.contains(node)).count() as u32,
    };
    topology.cluster.groups.iter().map(group).collect()
}

/// Returns the state of a group in one word.
fn state(group: &GroupDocument) -> &'static str {
    match (group.takes_reads(), group.is_filled()) {
        (true, _) => "serving",
        (false, true) => "out",
        (false, false) => "joining",
    }
}

fn nodes((group, zone): &GroupZone, Nodes { listed, down }: Nodes) {
    let labels = [("group", group.to_string()), ("zone", zone.clone())];
    metrics::gauge!("kith_router_nodes", &labels).set(listed);
    metrics::gauge!("kith_router_nodes_down", &labels).set(down);
}

fn out(group: u32, is_out: bool) {
    metrics::gauge!("kith_router_group_out", "group" => group.to_string()).set(f64::from(u8::from(is_out)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nodes_are_counted_by_group_and_zone_unless_they_are_drained() {
        let node = |node: u32, zone: &str| json!({"format": 1, "node": node, "addr": "a:1", "http": "", "pid": 1, "zone": zone});
        let group = |group: u32, nodes: &[u32], role: &str| json!({"group": group, "nodes": nodes, "owners": nodes, "role": role});
        let topology: TopologyDocument = serde_json::from_value(json!({
            "format": 1, "revision": 1, "routers": [], "stores": [],
            "nodes": [node(0, "a"), node(1, "a"), node(2, "b"), node(3, "")],
            "cluster": {
                "format": 1, "cluster_id": "", "epoch": 1, "partitions": 2, "object_store": "",
                "groups": [group(0, &[0, 1, 2], ""), group(1, &[3, 4], "maintenance")],
                "listed": [{"node": 1, "group": 0, "drained": true}, {"node": 2, "group": 0, "zone": "c"}],
            },
        }))
        .expect("a document");
        // Node 1 is down, and drained; node 4 has never come.
        let shape = Shape::of(&topology, |node| node != NodeId(1) && node != NodeId(2));
        let places: Vec<(u32, &str, u32, u32)> = shape
            .nodes
            .iter()
            .map(|((group, zone), nodes)| (*group, zone.as_str(), nodes.listed, nodes.down))
            .collect();
        assert_eq!(places, [(0, "a", 1, 0), (0, "c", 1, 1), (1, "", 2, 1)]);
        assert_eq!(shape.groups, BTreeMap::from([(0, false), (1, true)]));
        let statuses = groups(&topology, &[2, 4]);
        let statuses: Vec<(u32, &str, u32, u32)> =
            statuses.iter().map(|it| (it.group, it.state.as_str(), it.nodes, it.nodes_down)).collect();
        assert_eq!(statuses, [(0, "serving", 3, 1), (1, "out", 2, 1)]);
    }
}
