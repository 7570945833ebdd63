//! The part of the cluster's status about live graphs: the leaders of their partitions, and how far their replicas are
//! behind.

use kith_cluster::metadata::{MetadataStore, keys};
use kith_routing::Leaders;
use kith_topology::leaders_of;
use kith_types::{NodeId, PartitionId};
use kith_wire::{
    documents::{DatabaseDocument, LiveGraphDocument, TopologyDocument},
    v1,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// The reports of the nodes that are up about live graphs, by node.
pub(crate) type LogsByNode = BTreeMap<u32, Vec<v1::AppliedLogs>>;

/// Returns the status of each live graph of the cluster.
pub(crate) fn graphs(topology: &TopologyDocument, reports: &LogsByNode) -> Vec<v1::LiveGraphStatus> {
    topology.live.iter().map(|graph| status_of(graph, topology, reports)).collect()
}

fn status_of(
    graph: &LiveGraphDocument,
    topology: &TopologyDocument,
    reports: &LogsByNode,
) -> v1::LiveGraphStatus {
    let leaders = topology.leaders.iter().find(|leaders| leaders.graph == graph.name);
    let leaders = leaders.map(leaders_of).unwrap_or_default();
    let reports: BTreeMap<u32, &v1::AppliedLogs> = reports
        .iter()
        .filter_map(|(node, logs)| Some((*node, logs.iter().find(|logs| logs.graph == graph.name)?)))
        .collect();
    let applied = applied(&reports);
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for (&partition, &position) in applied.values().flatten() {
        let end = ends.entry(partition).or_default();
        *end = position.max(*end);
    }
    let partitions = 0..topology.cluster.partitions;
    let is_led = |partition: &u32| {
        let leader = leaders.of(PartitionId(*partition));
        leader.is_some_and(|leader| applied.contains_key(&leader.node.0))
    };
    v1::LiveGraphStatus {
        graph: graph.name.clone(),
        storage: graph.storage.clone(),
        leaderless: partitions.filter(|partition| !is_led(partition)).count() as u32,
        position: ends.values().sum(),
        nodes: nodes(topology, &leaders, &reports, &ends),
    }
}

/// Whether a live graph answers everything: all partitions have leaders, and all nodes that are up hold their partitions and
/// have built the adjacency lists.
pub(crate) fn is_ready(graph: &str, topology: &TopologyDocument, reports: &LogsByNode) -> bool {
    let Some(document) = topology.live.iter().find(|document| document.name == graph) else { return false };
    let has_opened = |(node, logs): (&u32, &Vec<v1::AppliedLogs>)| {
        let owned = topology.cluster.partitions_of(*node).len();
        let report = logs.iter().find(|logs| logs.graph == graph);
        owned == 0 || report.is_some_and(|report| owned <= report.partitions.len() && report.unbuilt == 0)
    };
    status_of(document, topology, reports).leaderless == 0 && reports.iter().all(has_opened)
}

/// Returns, for each node that has opened the graph, the positions that it has applied, by partition.
fn applied(reports: &BTreeMap<u32, &v1::AppliedLogs>) -> BTreeMap<u32, BTreeMap<u32, u64>> {
    // The report about a graph that is not open has an error and no partitions.
    let open = reports.iter().filter(|(_, logs)| logs.error.is_empty() || !logs.partitions.is_empty());
    open.map(|(node, logs)| (*node, positions(logs).collect())).collect()
}

fn positions(logs: &v1::AppliedLogs) -> impl Iterator<Item = (u32, u64)> {
    logs.partitions.iter().copied().zip(logs.positions.iter().copied())
}

fn nodes(
    topology: &TopologyDocument,
    leaders: &Leaders,
    reports: &BTreeMap<u32, &v1::AppliedLogs>,
    ends: &BTreeMap<u32, u64>,
) -> Vec<v1::LiveNodeStatus> {
    let owners = topology.cluster.groups.iter().flat_map(|group| group.owners.iter().copied());
    let leading = leaders.by_partition.iter().flatten().map(|leader| leader.node.0);
    let nodes: BTreeSet<u32> = owners.chain(leading).collect();
    let status = |node: u32| {
        let report = reports.get(&node);
        let behind: Vec<u64> = report
            .into_iter()
            .flat_map(|logs| positions(logs))
            .map(|(partition, position)| ends[&partition] - position)
            .collect();
        v1::LiveNodeStatus {
            node,
            leads: leaders.led_by(NodeId(node)) as u32,
            follows: behind.len() as u32,
            behind: behind.iter().sum(),
            behind_max: behind.iter().copied().max().unwrap_or_default(),
            error: report.map(|report| report.error.clone()).unwrap_or_default(),
        }
    };
    nodes.into_iter().map(status).collect()
}

/// Returns the status of the processes with embedded databases: `up` while the lease of the process lasts. Waits for the
/// metadata store no longer than `timeout`; after that, the state is `unknown`.
pub(crate) async fn database_statuses(
    metadata: &dyn MetadataStore,
    databases: &[DatabaseDocument],
    timeout: Duration,
) -> Vec<v1::DatabaseStatus> {
    let lives = metadata.read(keys::LIVE);
    let lives = match databases.is_empty() {
        true => None,
        false => tokio::time::timeout(timeout, lives).await.ok().and_then(Result::ok),
    };
    let status = |document: &DatabaseDocument| {
        let is_alive = lives.as_ref().map(|it| it.get(&keys::live_database(document.database)).is_some());
        let state = match is_alive {
            Some(true) => "up",
            Some(false) => "down",
            None => "unknown",
        };
        v1::DatabaseStatus {
            database: document.database,
            addr: document.addr.clone(),
            http: document.http.clone(),
            pid: document.pid,
            state: state.to_owned(),
        }
    };
    databases.iter().map(status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replicas_are_compared_with_the_furthest_one_and_leaders_that_do_not_answer_do_not_count() {
        let topology: TopologyDocument = serde_json::from_value(json!({
            "format": 1, "revision": 1, "routers": [], "stores": [], "nodes": [],
            "cluster": {
                "format": 1, "cluster_id": "", "epoch": 1, "partitions": 3, "object_store": "",
                "groups": [
                    {"group": 0, "nodes": [0, 1], "owners": [0, 0, 1], "role": ""},
                    {"group": 1, "nodes": [2], "owners": [2, 2, 2], "role": ""},
                ],
            },
            "live": [{"format": 1, "name": "social", "types": {"identity": "", "revision": 1, "bytes": 0, "digest": ""}, "storage": "database:0", "who": ""}],
            "leaders": [{"format": 1, "graph": "social", "term_last": 4, "nodes": [0, 2, 1], "terms": [1, 2, 4]}],
        }))
        .expect("the document is valid");
        let logs = |graph: &str, positions: &[(u32, u64)]| {
            let (partitions, positions) = positions.iter().copied().unzip();
            v1::AppliedLogs { graph: graph.to_owned(), partitions, positions, ..Default::default() }
        };
        let unopened = v1::AppliedLogs {
            graph: "social".to_owned(),
            error: "access denied".to_owned(),
            ..Default::default()
        };
        let stalled = v1::AppliedLogs {
            error: "it does not answer".to_owned(),
            ..logs("social", &[(0, 7), (1, 8), (2, 5)])
        };
        let reports = LogsByNode::from([
            (0, vec![logs("social", &[(0, 10), (1, 3)])]),
            (1, vec![logs("other", &[(2, 99)]), unopened]),
            (2, vec![stalled]),
        ]);
        let statuses = graphs(&topology, &reports);
        let [status] = &statuses[..] else { panic!("{statuses:?}") };
        assert_eq!((status.leaderless, status.position), (1, 10 + 8 + 5), "{status:?}");
        let node = |node, leads, follows, behind, behind_max, error: &str| v1::LiveNodeStatus {
            node,
            leads,
            follows,
            behind,
            behind_max,
            error: error.to_owned(),
        };
        let expected = [
            node(0, 1, 2, 5, 5, ""),
            node(1, 1, 0, 0, 0, "access denied"),
            node(2, 1, 3, 3, 3, "it does not answer"),
        ];
        assert_eq!(status.nodes, expected);
    }
    #[test]
    fn a_graph_is_ready_if_its_partitions_are_led_and_its_lists_are_built() {
        let topology = |leaders: serde_json::Value| -> TopologyDocument {
            serde_json::from_value(json!({
                "format": 1, "revision": 1, "routers": [], "stores": [], "nodes": [],
                "cluster": {
                    "format": 1, "cluster_id": "", "epoch": 1, "partitions": 2, "object_store": "",
                    "groups": [{"group": 0, "nodes": [0, 1], "owners": [0, 1], "role": ""}],
                },
                "live": [{"format": 1, "name": "social", "types": {"identity": "", "revision": 1, "bytes": 0, "digest": ""}, "storage": "database:0", "who": ""}],
                "leaders": [{"format": 1, "graph": "social", "term_last": 2, "nodes": leaders, "terms": [1, 2]}],
            }))
            .expect("the document is valid")
        };
        let logs = |partition, unbuilt| {
            let (graph, partitions, positions) = ("social".to_owned(), vec![partition], vec![0]);
            vec![v1::AppliedLogs { graph, partitions, positions, unbuilt, ..Default::default() }]
        };
        let led = topology(json!([0, 1]));
        assert!(is_ready("social", &led, &LogsByNode::from([(0, logs(0, 0)), (1, logs(1, 0))])));
        assert!(!is_ready("social", &led, &LogsByNode::from([(0, logs(0, 0)), (1, logs(1, 1))])));
        assert!(!is_ready("social", &led, &LogsByNode::from([(0, logs(0, 0)), (1, vec![])])));
        assert!(!is_ready("other", &led, &LogsByNode::from([(0, logs(0, 0)), (1, logs(1, 0))])));
        // Node 1 is down, and leads a partition.
        assert!(!is_ready("social", &led, &LogsByNode::from([(0, logs(0, 0))])));
        assert!(is_ready("social", &topology(json!([0, 0])), &LogsByNode::from([(0, logs(0, 0))])));
    }
}
