//! Nodes crash, pause, slow down and return while queries run, on random schedules. No answer is wrong, no query fails while
//! another replica of its keys is running, and clients soon stop sending requests to a dead node. A failing test prints the
//! seed of its schedule, which reproduces it.

use kith_routing::execution::Verdict;
use kith_sim::cluster::{ClusterConfig, Fault, FaultAt, QueryRecord, Strategy, Trace, simulate};
use kith_sim::workload::{KeyCounts, Workload};
use kith_types::{NodeId, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::time::Duration;

const GROUPS: u32 = 3;
const NODES: u32 = 4;

/// The duration of one bout of faults. Queries must not span two bouts, because a key might then fail on every replica in
/// turn, although the replicas were never all down at once.
const BOUT: Duration = Duration::from_secs(5);

fn config(policy: &str, faults: Vec<FaultAt>, seed: u64) -> ClusterConfig {
    let mut workload = Workload::mixed(40.0);
    workload.keys = KeyCounts { median: 60.0, spread: 0.8, least: 5, most: 400 };
    ClusterConfig {
        groups: GROUPS,
        nodes_per_group: NODES,
        partitions: 96,
        clients: 3,
        warm_up: Duration::ZERO,
        until: Duration::from_secs(22),
        faults,
        ..ClusterConfig::of_the_paper(Strategy::of_policy(policy, policy), workload, seed)
    }
}

/// Returns four bouts of faults. In each, nodes of all groups but one fail and recover.
fn schedule(seed: u64, slow_max: f64) -> Vec<FaultAt> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut faults = Vec::new();
    for bout in 0..4u32 {
        let start = BOUT * bout + Duration::from_millis(500);
        let spared = rng.random_range(0..GROUPS);
        for group in (0..GROUPS).filter(|group| *group != spared) {
            // Faults affect one node, some nodes, or the whole group.
            for node in 0..rng.random_range(1..=NODES) {
                let fault = match rng.random_range(0..3) {
                    0 => Fault::Crash,
                    1 => Fault::Pause,
                    _ => Fault::Slow(rng.random_range(2.0..slow_max)),
                };
                let at = Timestamp(start + Duration::from_millis(rng.random_range(0..1_000)));
                let back = at + Duration::from_millis(rng.random_range(50..2_200));
                let node = NodeId(group * NODES + node);
                faults.push(FaultAt { at, node, fault });
                faults.push(FaultAt { at: back, node, fault: Fault::Return });
            }
        }
    }
    faults
}

fn counters_are_clean(trace: &Trace, seed: u64, policy: &str) {
    assert_eq!(trace.unended, 0, "seed {seed}, {policy}: every query ends");
    assert_eq!(trace.outstanding_keys, 0, "seed {seed}, {policy}: load counters return to zero");
    assert_eq!(trace.late_sends, 0, "seed {seed}, {policy}: no client sends to a silent node after a second");
    for query in &trace.queries {
        assert_eq!(query.wrong_keys, 0, "seed {seed}, {policy}: {query:?}");
    }
}

#[test]
fn no_query_fails_while_another_replica_lives() {
    let mut retries = 0;
    for seed in 0..12 {
        let policy = kith_routing::policy::ALL[seed as usize % kith_routing::policy::ALL.len()].name();
        let trace = simulate(&config(policy, schedule(seed, 20.0), seed));
        counters_are_clean(&trace, seed, policy);
        assert!(2_000 < trace.queries.len(), "seed {seed}: {} queries", trace.queries.len());
        for query in &trace.queries {
            assert_eq!(query.verdict, Some(Verdict::Complete), "seed {seed}, {policy}: {query:?}");
        }
        retries += trace.queries.iter().map(|query| u64::from(query.retries)).sum::<u64>();
    }
    assert!(500 < retries, "the faults cause retries: {retries}");
}

#[test]
fn with_a_deadline_every_query_ends_by_it() {
    let deadline = Duration::from_millis(300);
    for seed in 100..106 {
        let mut config = config("n-groups", schedule(seed, 200.0), seed);
        config.deadline = Some(deadline);
        let trace = simulate(&config);
        counters_are_clean(&trace, seed, "n-groups");
        let late: Vec<&QueryRecord> = trace.queries.iter().filter(|query| deadline < query.took).collect();
        assert!(late.is_empty(), "seed {seed}: {late:?}");
        assert!(trace.queries.iter().any(|query| query.verdict == Some(Verdict::Failed)), "seed {seed}");
        let complete = trace.queries.iter().filter(|query| query.verdict == Some(Verdict::Complete)).count();
        assert!(0.9 * trace.queries.len() as f64 <= complete as f64, "seed {seed}: {complete}");
    }
}

#[test]
fn equal_seeds_fail_alike() {
    let run = || simulate(&config("hybrid", schedule(7, 20.0), 7));
    assert_eq!(run(), run());
}

fn took_between(trace: &Trace, from: Duration, to: Duration) -> Duration {
    let within = |query: &&QueryRecord| Timestamp(from) <= query.began && query.began < Timestamp(to);
    trace.queries.iter().filter(within).map(|query| query.took).max().unwrap_or_default()
}

#[test]
fn a_paused_group_is_noticed_within_a_second_and_used_again() {
    let at = Timestamp(Duration::from_secs(5));
    let back = Timestamp(Duration::from_secs(10));
    let group = || (0..NODES).map(NodeId);
    let mut faults: Vec<FaultAt> = group().map(|node| FaultAt { at, node, fault: Fault::Pause }).collect();
    faults.extend(group().map(|node| FaultAt { at: back, node, fault: Fault::Return }));
    let trace = simulate(&config("one-group", faults, 3));
    counters_are_clean(&trace, 3, "one-group");
    assert!(trace.queries.iter().all(|query| query.verdict == Some(Verdict::Complete)));

    for node in group() {
        assert!(Timestamp(Duration::from_secs(21)) < trace.last_served[&node], "{node} is used again");
    }
    let stall = took_between(&trace, Duration::from_millis(4_900), Duration::from_secs(6));
    assert!(Duration::from_millis(400) < stall && stall < Duration::from_millis(1_400), "{stall:?}");
    let after = took_between(&trace, Duration::from_secs(6), Duration::from_secs(10));
    assert!(
        after < Duration::from_millis(400),
        "after the detection, only the tail of the network remains: {after:?}"
    );
}

#[test]
fn a_crash_costs_a_retry_and_no_more() {
    let crash = FaultAt { at: Timestamp(Duration::from_secs(5)), node: NodeId(2), fault: Fault::Crash };
    let back = FaultAt { at: Timestamp(Duration::from_secs(8)), fault: Fault::Return, ..crash };
    let trace = simulate(&config("n-groups", vec![crash, back], 4));
    counters_are_clean(&trace, 4, "n-groups");
    let slowest = took_between(&trace, Duration::from_millis(4_500), Duration::from_secs(8));
    assert!(slowest < Duration::from_millis(700), "at worst, two draws from the tail: {slowest:?}");
    assert!(Timestamp(Duration::from_secs(21)) < trace.last_served[&NodeId(2)], "the node is used again");
    let retried = trace.queries.iter().filter(|query| 0 < query.retries).count();
    assert!(
        (1..200).contains(&retried),
        "{retried} queries ran during the crash or began before its detection"
    );
}

#[test]
fn when_every_replica_is_dead_queries_fail_and_still_end() {
    let at = Timestamp(Duration::from_secs(3));
    let all: Vec<FaultAt> =
        (0..GROUPS * NODES).map(|node| FaultAt { at, node: NodeId(node), fault: Fault::Crash }).collect();
    let trace = simulate(&config("n-groups", all, 5));
    assert_eq!((trace.unended, trace.outstanding_keys), (0, 0));
    let after = trace.queries.iter().filter(|query| at < query.began);
    assert!(
        after.clone().count() > 1_000 && after.clone().all(|query| query.verdict == Some(Verdict::Failed))
    );
    let slowest = after.map(|query| query.took).max().unwrap();
    assert!(slowest < Duration::from_millis(1_200), "refusals are quick: {slowest:?}");
}
