//! Every reference answer, through the binary: under every policy, at every fan-out, with
//! the network cache cold, warm and off, in one process and in many, while nodes are killed.
//!
//! Small graphs by default; `KITH_TEST_FULL=1` (`make test-full`) takes all of them.

mod support;

use serde_json::{Value, json};
use support::{
    cluster::{Cluster, is_alive, signal},
    is_full,
    reference::{Case, LARGE, Reference, SMALL, differences},
};

const POLICIES: [&str; 8] =
    ["round-robin", "set-cover", "set-cover-norbert", "one-group", "n-groups", "adjust", "borrow", "hybrid"];
const CONCURRENCY: u32 = 16;

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
    let requests: Vec<Value> = cases.iter().map(|case| case.request.clone()).collect();
    let (answers, exit) = cluster.run(&requests, CONCURRENCY);
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

#[test]
fn every_answer_is_right_under_every_policy_and_fan_out() {
    let cluster = Cluster::start(&["--groups", "3", "--nodes", "2"]);
    for reference in references() {
        load(&cluster, &reference);
        let records = if is_full() { 100 } else { 12 };
        for policy in POLICIES {
            for fan_out in ["min", "max", "auto", "groups=2"] {
                check(
                    &cluster,
                    &reference,
                    records,
                    json!({"policy": policy, "fan_out": fan_out, "cache": "bypass"}),
                );
            }
        }
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
            check(&cluster, &reference, 100, extra);
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
            check(&cluster, reference, 100, json!({}));
        }
    }
}

#[test]
fn every_answer_is_right_with_several_routers() {
    let cluster = Cluster::start(&["--routers", "3", "--processes", "--nodes", "1"]);
    let reference = Reference::open("kith-village").expect("it comes with the project");
    load(&cluster, &reference);
    check(&cluster, &reference, 100, json!({}));
    check(&cluster, &reference, 100, json!({}));
}

#[test]
fn every_answer_is_right_while_nodes_die_and_return() {
    let mut cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "2"]);
    for reference in references().iter().take(if is_full() { 8 } else { 2 }) {
        load(&cluster, reference);
        let cases = reference.cases(if is_full() { 100 } else { 40 }, &json!({"cache": "bypass"}));
        // One node of each group in turn, then a whole group; every time while queries run.
        let victims: [&Victims; 3] = [
            &|cluster| cluster.node_pids(0)[..1].to_vec(),
            &|cluster| cluster.node_pids(1)[1..].to_vec(),
            &|cluster| cluster.node_pids(1),
        ];
        for victims in victims {
            let before = victims(&cluster);
            std::thread::scope(|scope| {
                let cluster = &cluster;
                let asking = scope.spawn(|| verify(cluster, reference, &cases, &json!("while nodes die")));
                for pid in &before {
                    signal(*pid, "KILL");
                }
                asking.join().expect("the answers are right");
            });
            cluster.wait_until("the dead are replaced", |cluster| {
                let now = victims(cluster);
                now.iter().all(|pid| !before.contains(pid)) && now.iter().all(|pid| is_alive(*pid))
            });
            verify(&cluster, reference, &cases, &json!("after they returned"));
        }
    }
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
