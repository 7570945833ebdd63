//! Tests of the view of two samples.

use super::*;
use kith_routing::ReportedLatencies;
use serde_json::{Value, json};
use std::time::Duration;

/// Returns the latency counters of `quick` answers of one millisecond, and of `slow` ones of 100.
fn took(quick: u64, slow: u64) -> Vec<u64> {
    let mut latencies = ReportedLatencies::default();
    (0..quick).for_each(|_| latencies.record(Duration::from_millis(1)));
    (0..slow).for_each(|_| latencies.record(Duration::from_millis(100)));
    latencies.counts().to_vec()
}

fn node(node: u32, group: u32, counters: Option<v1::NodeCounters>) -> v1::NodeStatus {
    v1::NodeStatus {
        node,
        group,
        addr: format!("h:{node}"),
        state: if counters.is_some() { "up" } else { "down" }.to_owned(),
        load: counters.as_ref().map(|_| v1::NodeLoad { in_flight: 2, ..Default::default() }),
        counters,
        ..Default::default()
    }
}

fn counted(started_us: u64, requests: u64, latencies: Vec<u64>) -> Option<v1::NodeCounters> {
    Some(v1::NodeCounters { started_us, requests, keys: requests * 10, failed: requests / 10, latencies })
}

fn asked(node: u32, keys: u64, keys_hedged: u64) -> v1::AskedCounters {
    v1::AskedCounters {
        node,
        keys_pending: 50,
        requests_pending: 5,
        requests: keys / 10,
        keys,
        hedges: keys_hedged / 10,
        keys_hedged,
        failed: 1,
        overtaken: keys_hedged / 20,
    }
}

fn counters(queries: u64, nodes: Vec<v1::AskedCounters>) -> v1::RouterCounters {
    let latencies = took(queries, 0);
    v1::RouterCounters {
        started_us: 7,
        queries,
        failed: queries / 10,
        partial: queries / 20,
        latencies,
        nodes,
    }
}

fn sample(at_ms: u64, nodes: Vec<v1::NodeStatus>, routers: &[(&str, Option<v1::RouterCounters>)]) -> Sample {
    Sample {
        at: Duration::from_millis(at_ms),
        status: v1::ClusterStatus { nodes, ..Default::default() },
        routers: routers.iter().map(|(addr, counters)| ((*addr).to_owned(), counters.clone())).collect(),
    }
}

fn view_json(before: &Sample, after: &Sample) -> Value {
    serde_json::to_value(view(before, after)).unwrap()
}

/// Returns the rates of two nodes, one with slow answers and the other with hedges, and those of both together.
fn rates_of_two_and_both() -> [Value; 3] {
    let node_0 = json!({
        "requests_per_second": 100.0, "keys_per_second": 1000.0, "errors_per_second": 10.0,
        "p50_us": 1048, "p99_us": 100_663, "in_flight": 2, "keys_pending": 50, "requests_pending": 5,
        "hedges_per_second": 0.0, "keys_hedged_ratio": 0.0, "overtaken_per_second": 0.0, "failed_per_second": 0.0,
    });
    let node_1 = json!({
        "requests_per_second": 10.0, "keys_per_second": 100.0, "errors_per_second": 1.0,
        "p50_us": 1048, "p99_us": 1048, "in_flight": 2, "keys_pending": 50, "requests_pending": 5,
        "hedges_per_second": 5.0, "keys_hedged_ratio": 0.5, "overtaken_per_second": 2.5, "failed_per_second": 0.5,
    });
    let both = json!({
        "requests_per_second": 110.0, "keys_per_second": 1100.0, "errors_per_second": 11.0,
        "p50_us": 1048, "p99_us": 100_663, "in_flight": 4, "keys_pending": 100, "requests_pending": 10,
        "hedges_per_second": 5.0, "keys_hedged_ratio": 0.0455, "overtaken_per_second": 2.5, "failed_per_second": 0.5,
    });
    [node_0, node_1, both]
}

#[test]
fn the_contract_of_one_sample() {
    let before = sample(
        1_000,
        vec![node(0, 0, counted(3, 100, took(100, 0))), node(1, 0, counted(3, 0, vec![]))],
        &[("r:1", Some(counters(100, vec![asked(0, 1_000, 0)])))],
    );
    let after = sample(
        3_000,
        vec![node(0, 0, counted(3, 300, took(200, 100))), node(1, 0, counted(3, 20, took(18, 0)))],
        &[("r:1", Some(counters(140, vec![asked(0, 3_000, 0), asked(1, 200, 100)])))],
    );
    let [node_0, node_1, both] = rates_of_two_and_both();
    let with = |mut fields: Value, rates: &Value| {
        fields.as_object_mut().unwrap().extend(rates.as_object().unwrap().clone());
        fields
    };
    let expected = json!({
        "interval_s": 2.0,
        "cluster": both,
        "groups": [with(json!({"group": 0, "nodes": 2, "nodes_up": 2}), &both)],
        "nodes": [
            with(json!({"group": 0, "node": 0, "state": "up", "addr": "h:0"}), &node_0),
            with(json!({"group": 0, "node": 1, "state": "up", "addr": "h:1"}), &node_1),
        ],
        "routers": [{
            "addr": "r:1", "state": "up", "queries_per_second": 20.0, "p50_us": 1048, "p99_us": 1048,
            "failed_per_second": 2.0, "partial_per_second": 1.0, "keys_pending": 100,
            "hedges_per_second": 5.0, "keys_hedged_ratio": 0.0455,
        }],
        "live_graphs": [],
        "databases": [],
    });
    assert_eq!(view_json(&before, &after), expected);
}

#[test]
fn live_graphs_show_who_leads_and_how_fast_they_change() {
    let at = |at_ms, graphs: &[(&str, u64)]| {
        let mut sample = sample(at_ms, vec![], &[]);
        let node = v1::LiveNodeStatus {
            node: 4,
            leads: 3,
            follows: 8,
            behind: 2,
            behind_max: 1,
            error: String::new(),
        };
        let graph = |(graph, position): &(&str, u64)| v1::LiveGraphStatus {
            graph: (*graph).to_owned(),
            position: *position,
            leaderless: 1,
            nodes: vec![node.clone()],
            ..Default::default()
        };
        sample.status.live_graphs = graphs.iter().map(graph).collect();
        sample.status.databases =
            vec![v1::DatabaseStatus { addr: "d:1".to_owned(), state: "up".to_owned(), ..Default::default() }];
        sample
    };
    let view = view_json(&at(1_000, &[("old", 10)]), &at(3_000, &[("new", 7), ("old", 110)]));
    let node = json!({"node": 4, "leads": 3, "follows": 8, "behind": 2, "behind_max": 1});
    let graph = |graph, position, changes: Option<f64>| json!({"graph": graph, "position": position, "changes_per_second": changes, "leaderless": 1, "nodes": [node]});
    assert_eq!(view["live_graphs"], json!([graph("new", 7, None), graph("old", 110, Some(50.0))]));
    assert_eq!(view["databases"], json!([{"database": 0, "state": "up", "addr": "d:1"}]));
}

#[test]
fn what_is_unknown_is_null_and_never_a_wrong_rate() {
    let nodes = |started_us, requests| {
        vec![node(0, 0, counted(started_us, requests, took(requests, 0))), node(1, 1, None)]
    };
    let before =
        sample(0, nodes(3, 500), &[("r:1", Some(counters(500, vec![asked(0, 500, 0)]))), ("r:2", None)]);
    let mut restarted = counters(7, vec![asked(0, 90, 80)]);
    restarted.started_us = 8;
    let mut spare = node(9, 0, None);
    spare.spare = true;
    let mut after = sample(1_000, nodes(4, 7), &[("r:1", Some(restarted)), ("r:2", None)]);
    after.status.nodes.push(spare);
    let view = view_json(&before, &after);
    for pointer in ["/nodes/0", "/nodes/1", "/groups/1", "/cluster"] {
        let rates = view.pointer(pointer).unwrap();
        assert_eq!(
            (&rates["requests_per_second"], &rates["p99_us"]),
            (&Value::Null, &Value::Null),
            "{pointer}"
        );
    }
    assert_eq!(view["nodes"][0]["keys_pending"], 50, "what is pending now is known all the same");
    assert_eq!(view["nodes"][0]["hedges_per_second"], 0.0);
    let router =
        |index: usize| (&view["routers"][index]["state"], &view["routers"][index]["queries_per_second"]);
    assert_eq!(router(0), (&json!("up"), &Value::Null));
    assert_eq!(router(1), (&json!("down"), &Value::Null));
    assert_eq!((&view["nodes"][2]["group"], view["groups"].as_array().unwrap().len()), (&Value::Null, 2));
    assert_eq!(view["groups"][1]["nodes_up"], 0);
}

#[test]
fn no_time_and_counters_that_shrink_are_no_rates() {
    let before = sample(1_000, vec![node(0, 0, counted(3, 100, took(100, 0)))], &[]);
    let after = sample(1_000, vec![node(0, 0, counted(3, 50, took(50, 0)))], &[]);
    let view = view_json(&before, &after);
    assert_eq!((&view["nodes"][0]["requests_per_second"], &view["interval_s"]), (&json!(0.0), &json!(0.0)));
    assert_eq!(view["nodes"][0]["p50_us"], Value::Null);
}
