//! Fan-out of real clusters, counted: requests per query are those of equation 3 (Moolle §III-B), and a plan of
//! one group never asks more nodes than the group has. Counts only, no clock.

use crate::support;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::{cluster::Cluster, reference::Reference};

const GROUPS: u32 = 3;
const NODES: u32 = 4;
/// Members asked about at each limit.
const MEMBERS: usize = 400;

/// Equation 3: expected requests of a query with `keys` uniformly random keys over `groups` groups.
fn expected_requests(keys: f64, groups: u32) -> f64 {
    let candidates = f64::from(groups * NODES);
    candidates * (1.0 - ((candidates - 1.0) / candidates).powf(keys))
}

fn cluster(partitions: &str) -> (Cluster, Reference) {
    let (groups, nodes) = (GROUPS.to_string(), NODES.to_string());
    let cluster = Cluster::start(&["--groups", &groups, "--nodes", &nodes, "--partitions", partitions]);
    let village = Reference::open("kith-village").expect("it comes with the project");
    let arguments = village.load_arguments();
    let edges = arguments.iter().map(String::as_str).take_while(|argument| *argument != "--entities");
    cluster.must(&edges.collect::<Vec<_>>());
    (cluster, village)
}

/// The fan-out rounds of network queries about many members: those after the first-degree look-up.
fn fan_outs(cluster: &Cluster, village: &Reference, options: &Value) -> Vec<Value> {
    let mut members: Vec<u64> = village.edges().iter().map(|(src, _)| *src).collect();
    members.dedup();
    let step = members.len() / MEMBERS;
    let requests: Vec<Value> = members
        .iter()
        .step_by(step)
        .map(|id| {
            let mut request = json!({"op": "network", "graph": "kith-village", "id": id, "return": "size",
                                     "cache": "bypass", "profile": true, "hedge": "off"});
            let fields = request.as_object_mut().expect("an object");
            fields.extend(options.as_object().cloned().unwrap_or_default());
            request
        })
        .collect();
    let (answers, exit) = cluster.run(&requests, 4);
    assert_eq!(exit, 0, "every query is answered");
    let rounds = answers.iter().flat_map(|answer| answer["profile"]["rounds"].as_array().expect("rounds"));
    rounds.filter(|round| round["kind"] == "sync-union").cloned().collect()
}

fn requests_of(round: &Value) -> &Vec<Value> {
    round["requests"].as_array().expect("requests")
}

fn check_equation_3(partitions: &str) {
    let (cluster, village) = cluster(partitions);
    for groups in 1..=GROUPS {
        let options = json!({"policy": "n-groups", "fan_out": format!("groups={groups}")});
        let rounds = fan_outs(&cluster, &village, &options);
        assert!(MEMBERS * 9 / 10 <= rounds.len(), "{} fan-outs", rounds.len());
        let measured: usize = rounds.iter().map(|round| requests_of(round).len()).sum();
        let expected: f64 =
            rounds.iter().map(|round| expected_requests(round["keys"].as_f64().expect("keys"), groups)).sum();
        let ratio = measured as f64 / expected;
        eprintln!(
            "{partitions} partitions, {groups} groups: {measured} requests, equation 3 says {expected:.0} ({ratio:.3})"
        );
        assert!(
            (0.95..=1.05).contains(&ratio),
            "{groups} groups: measured {measured}, expected {expected:.1}"
        );
    }
}

#[test]
fn requests_per_query_are_those_of_equation_3() {
    check_equation_3("24");
}

#[test]
fn the_number_of_partitions_does_not_change_that() {
    check_equation_3("240");
}

#[test]
fn a_plan_of_one_group_stays_within_its_nodes() {
    let (cluster, village) = cluster("24");
    for options in [
        json!({"policy": "one-group"}),
        json!({"policy": "n-groups", "fan_out": "min"}),
        json!({"policy": "adjust", "fan_out": "min"}),
    ] {
        for round in fan_outs(&cluster, &village, &options) {
            let requests = requests_of(&round);
            assert!(requests.len() <= NODES as usize, "{options}: {round}");
            assert!(
                requests.iter().all(|request| request["group"] == requests[0]["group"]),
                "{options}: {round}"
            );
        }
    }
}

#[test]
fn a_network_is_one_exchange_where_one_small_group_holds_everything() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "3"]);
    let village = Reference::open("kith-village").expect("it comes with the project");
    cluster.must(&village.load_arguments().iter().map(String::as_str).collect::<Vec<_>>());
    let members: BTreeSet<u64> = village.edges().iter().flat_map(|(a, b)| [*a, *b]).collect();
    let some: Vec<u64> = members.into_iter().step_by(40).collect();
    let requests = |options: &Value| -> Vec<Value> {
        let request = |id: &u64| {
            let mut request = json!({"op": "network", "graph": "kith-village", "id": id, "return": "sha",
                                     "cache": "bypass", "profile": true, "hedge": "off"});
            let fields = request.as_object_mut().expect("an object");
            fields.extend(options.as_object().cloned().unwrap_or_default());
            request
        };
        some.iter().map(request).collect()
    };
    let (mut at_once, exit) = cluster.run(&requests(&json!({})), 4);
    assert_eq!(exit, 0, "every query is answered");
    let (mut in_turn, _) = cluster.run(&requests(&json!({"fan_out": "groups=1"})), 4);
    for (once, turn) in at_once.iter_mut().zip(&mut in_turn) {
        let rounds = |answer: &mut Value| -> Vec<(Value, usize)> {
            let profile = answer.as_object_mut().expect("an object").remove("profile").expect("a profile");
            let rounds = profile["rounds"].as_array().expect("rounds");
            rounds.iter().map(|round| (round["name"].clone(), requests_of(round).len())).collect()
        };
        assert_eq!(rounds(once), [(json!("both degrees"), 3)]);
        let names: Vec<Value> = rounds(turn).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["first degree", "second-degree union"]);
        assert_eq!(once, turn);
    }
    let unknown = json!({"op": "network", "graph": "kith-village", "id": 77_777_777, "return": "size"});
    let (answers, exit) = cluster.run(&[unknown], 1);
    assert_eq!((exit, &answers[0]["error"]["code"]), (3, &json!("member_not_found")), "{answers:?}");
}

#[test]
fn badges_and_what_two_have_in_common_need_no_node_where_lists_are_at_hand() {
    let (mut cluster, village) = cluster("24");
    let members: BTreeSet<u64> = village.edges().iter().flat_map(|(a, b)| [*a, *b]).collect();
    let lists = |cluster: &Cluster| cluster.metric("kith_router_list_cache_entries").unwrap_or(0.0);
    // One edge type, no entities: every member once.
    cluster.wait_until("every list is at hand", |cluster| lists(cluster) == members.len() as f64);
    let members: Vec<u64> = members.into_iter().collect();
    let me = members[0];
    let size = json!({"op": "network", "graph": "kith-village", "id": me, "return": "size"});
    cluster.run(&[size], 1);
    let badges: Vec<Value> = members
        .chunks(20)
        .map(|to| json!({"op": "distance", "graph": "kith-village", "id": me, "to": to, "profile": true}))
        .collect();
    let (answers, exit) = cluster.run(&badges, 1);
    assert_eq!(exit, 0, "every badge is answered");
    let far = |answer: &Value| {
        let distances = answer["distances"].as_array().expect("distances");
        distances.iter().any(|distance| distance.as_u64().is_none_or(|steps| 2 < steps))
    };
    assert!(answers.iter().any(far), "some targets lie beyond the network, which alone needs no list");
    let common = |pair: &[u64]| json!({"op": "common", "graph": "kith-village", "id": pair[0], "to": pair[1], "profile": true});
    let (shared, exit) = cluster.run(&members.chunks_exact(2).map(common).collect::<Vec<_>>(), 1);
    assert_eq!(exit, 0, "every question of what two have in common is answered");
    for answer in answers.iter().chain(&shared) {
        assert_eq!(answer["profile"]["requests"], 0, "{answer}");
    }
}
