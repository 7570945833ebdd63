//! Every reference answer, through the binary: under every policy, at every fan-out, with
//! the network cache cold, warm, refreshed and off, in one process and in many, while nodes are killed.
//!
//! Small graphs by default, and where everything is crossed with everything, each combination on
//! records of its own; `KITH_TEST_FULL=1` (`make test-full`) takes all graphs and records.

use crate::support;
use serde_json::{Value, json};
use support::{
    cluster::{Cluster, is_alive, signal},
    is_full,
    reference::{Case, LARGE, Reference, SMALL, differences},
};

const POLICIES: [&str; 8] =
    ["round-robin", "set-cover", "set-cover-norbert", "one-group", "n-groups", "adjust", "borrow", "hybrid"];
const FAN_OUTS: [&str; 4] = ["min", "max", "auto", "groups=2"];
const CONCURRENCY: u32 = 16;
/// Seven million edges: its answers are long, and a record of its own for each combination has to do.
const LARGEST: &str = "kith-metro";

/// Records of a graph, where each is asked about under few settings.
const RECORDS: usize = 100;

/// Chooses processes of a cluster.
type Victims = dyn Fn(&Cluster) -> Vec<u32>;

/// The graphs to test: those that `KITH_TEST_GRAPHS` names, else the small ones or all.
fn references() -> Vec<Reference> {
    let named = std::env::var("KITH_TEST_GRAPHS").ok();
    let wanted = |name: &&str| match &named {
        Some(names) => names.split(',').any(|wanted| wanted == *name),
        None => SMALL.contains(name) || is_full(),
    };
    SMALL.into_iter().chain(LARGE).filter(wanted).filter_map(Reference::open).collect()
}

fn load(cluster: &Cluster, reference: &Reference) {
    let arguments = reference.load_arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    cluster.must(&arguments);
}

/// Asks every case with `extra` fields; fails with the first differences.
fn check(cluster: &Cluster, reference: &Reference, records: usize, extra: Value) {
    let cases = reference.cases(records, &extra);
    assert!(records < cases.len(), "{} has cases", reference.name);
    verify(cluster, reference, &cases, &extra);
}

fn verify(cluster: &Cluster, reference: &Reference, cases: &[Case], extra: &Value) {
    verify_while(cluster, reference, cases, extra, || ());
}

/// As [`verify`]; `then` happens when a quarter of the answers have come.
fn verify_while(
    cluster: &Cluster,
    reference: &Reference,
    cases: &[Case],
    extra: &Value,
    then: impl FnOnce(),
) {
    let requests: Vec<Value> = cases.iter().map(|case| case.request.clone()).collect();
    let (answers, exit) = cluster.run_and_then(&requests, CONCURRENCY, cases.len() / 4, then);
    let wrong = differences(cases, &answers, &reference.edges());
    assert!(
        wrong.is_empty(),
        "{} {extra}: {} of {} differ, as\n{}",
        reference.name,
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(5)].join("\n")
    );
    assert_eq!(exit, 0, "{} {extra}: all lines succeed", reference.name);
}

/// Every policy at every fan-out, with `extra`.
fn combinations(extra: &Value) -> Vec<Value> {
    let both = POLICIES.iter().flat_map(|policy| FAN_OUTS.map(|fan_out| (policy, fan_out)));
    let with = |(policy, fan_out)| {
        let mut fields = json!({"policy": policy, "fan_out": fan_out});
        fields.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        fields
    };
    both.map(with).collect()
}

/// Records where each is asked about under few settings: fewer unless everything is tested.
fn records() -> usize {
    if is_full() { RECORDS } else { 40 }
}

/// Records that each combination is asked about, each about others than the one before.
fn records_each() -> usize {
    // A quarter of them: each record then meets every policy, and each policy at each fan-out 25 records.
    if is_full() { 25 } else { 1 }
}

#[test]
fn every_answer_is_right_under_every_policy_and_fan_out() {
    let cluster = Cluster::start(&["--groups", "3", "--nodes", "2"]);
    for reference in references() {
        load(&cluster, &reference);
        let combinations = combinations(&json!({"cache": "bypass"}));
        if is_full() && reference.name != LARGEST {
            combinations.into_iter().for_each(|extra| check(&cluster, &reference, RECORDS, extra));
            continue;
        }
        let records = if is_full() { records_each() } else { 6 };
        let cases = reference.cases_of_each(&combinations, records);
        verify(&cluster, &reference, &cases, &json!("every combination"));
    }
}

#[test]
fn every_answer_is_right_with_the_cache_cold_warm_and_refreshed() {
    let cluster = Cluster::start(&["--groups", "2", "--nodes", "3"]);
    for reference in references() {
        load(&cluster, &reference);
        for extra in [
            json!({"cache": "bypass"}),
            json!({}),
            json!({}),
            json!({"cache": "refresh"}),
            json!({"workflow": "background"}),
        ] {
            check(&cluster, &reference, records(), extra);
        }
    }
}

/// Networks are one exchange with all nodes then.
#[test]
fn every_answer_is_right_where_one_small_group_holds_everything() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "3"]);
    for reference in references() {
        load(&cluster, &reference);
        for extra in [json!({"cache": "bypass"}), json!({})] {
            check(&cluster, &reference, records(), extra);
        }
    }
}

#[test]
fn every_answer_is_right_while_entries_are_stale() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("router.toml");
    std::fs::write(&config, "[cache]\nfresh-ms = 1\nstale-ms = 600000\n").expect("the settings are written");
    let cluster = Cluster::start(&["--config", config.to_str().expect("UTF-8")]);
    for reference in references().iter().take(if is_full() { 8 } else { 2 }) {
        load(&cluster, reference);
        for _ in 0..2 {
            check(&cluster, reference, records(), json!({}));
        }
    }
}

#[test]
fn every_answer_is_right_with_several_routers() {
    let cluster = Cluster::start(&["--routers", "3", "--processes", "--nodes", "1"]);
    let reference = Reference::open("kith-village").expect("it comes with the project");
    load(&cluster, &reference);
    check(&cluster, &reference, records(), json!({}));
    check(&cluster, &reference, records(), json!({}));
}

#[test]
fn every_answer_is_right_in_many_processes_however_they_are_asked() {
    let cluster = Cluster::start(&["--processes", "--groups", "3", "--nodes", "2", "--routers", "2"]);
    for reference in references().iter().take(if is_full() { 8 } else { 2 }) {
        load(&cluster, reference);
        let off = reference.cases_of_each(&combinations(&json!({"cache": "bypass"})), records_each());
        verify(&cluster, reference, &off, &json!("cache off"));
        // Records of its own for each: every combination finds the cache cold, and fills it.
        let cold = reference.cases_of_each(&combinations(&json!({})), if is_full() { 3 } else { 1 });
        verify(&cluster, reference, &cold, &json!("cache cold"));
        let warm = reference.cases_of_each(&combinations(&json!({})), records_each());
        verify(&cluster, reference, &warm, &json!("cache warm"));
        let refreshed = reference.cases_of_each(&combinations(&json!({"cache": "refresh"})), records_each());
        verify(&cluster, reference, &refreshed, &json!("cache refreshed"));
    }
}

#[test]
fn every_answer_is_right_while_nodes_die_and_return() {
    let mut cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "2"]);
    for reference in references().iter().take(if is_full() { 8 } else { 2 }) {
        load(&cluster, reference);
        let records = if is_full() { 8 } else { 2 };
        let mut cases = reference.cases_of_each(&combinations(&json!({"cache": "bypass"})), records);
        cases.extend(reference.cases_of_each(&combinations(&json!({"cache": "refresh"})), 1));
        cases.extend(reference.cases_of_each(&combinations(&json!({})), 1));
        // One node of each group in turn, then a whole group; every time while queries run.
        let victims: [&Victims; 3] = [
            &|cluster| cluster.node_pids(0)[..1].to_vec(),
            &|cluster| cluster.node_pids(1)[1..].to_vec(),
            &|cluster| cluster.node_pids(1),
        ];
        for victims in victims {
            let before = victims(&cluster);
            verify_while(&cluster, reference, &cases, &json!("while nodes die"), || {
                before.iter().for_each(|pid| signal(*pid, "KILL"));
            });
            cluster.wait_until("the dead are replaced", |cluster| {
                let now = victims(cluster);
                now.iter().all(|pid| !before.contains(pid)) && now.iter().all(|pid| is_alive(*pid))
            });
            verify(&cluster, reference, &cases[..cases.len() / 4], &json!("after they returned"));
        }
    }
}

/// A second leaves time for one round of requests that ends at the dead node and one that goes around it, no more.
/// A machine can be too busy for that by itself: one run of three in which no query failed is proof enough, for what
/// takes longer than a second takes so every time.
#[test]
fn a_dead_node_costs_no_query_that_has_a_second() {
    let mut cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "2"]);
    let reference = Reference::open("kith-village").expect("it comes with the project");
    load(&cluster, &reference);
    let ids = [9043u64, 7739, 1007, 1005, 10000, 8323, 4005, 5386];
    let combinations = combinations(&json!({"cache": "bypass", "deadline_ms": 1_000}));
    let requests: Vec<Value> = (0..600)
        .map(|index| {
            let mut request = combinations[index % combinations.len()].clone();
            request["op"] = json!("network");
            request["graph"] = json!(reference.name);
            request["id"] = json!(ids[index % ids.len()]);
            request["return"] = json!("size");
            request
        })
        .collect();
    let mut failed = Vec::new();
    for group in [0, 1, 0] {
        let victim = cluster.node_pids(group)[0];
        // While it stands still, the supervisor starts nobody again: the dead stay dead.
        signal(cluster.pid(), "STOP");
        let (answers, _) = cluster.run_and_then(&requests, 4, 100, || signal(victim, "KILL"));
        signal(cluster.pid(), "CONT");
        failed = answers.into_iter().filter(|answer| answer.get("error").is_some()).collect();
        if failed.is_empty() {
            return;
        }
        cluster.wait_until("the node is back", |cluster| cluster.node_pids(group)[0] != victim);
    }
    panic!("{} of {} queries failed for a dead node, as {}", failed.len(), requests.len(), failed[0]);
}

#[test]
fn a_frozen_node_is_routed_around() {
    let cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "1"]);
    let reference = Reference::open("kith-village").expect("it comes with the project");
    load(&cluster, &reference);
    let frozen = cluster.node_pids(0)[0];
    signal(frozen, "STOP");
    check(&cluster, &reference, 20, json!({"cache": "bypass"}));
    signal(frozen, "CONT");
    check(&cluster, &reference, 20, json!({"cache": "bypass"}));
}
