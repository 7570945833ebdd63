//! Tests of how `least-loaded` spreads keys over groups: one caller, nodes with a queue each, in simulated time.

mod support;

use kith_routing::load::{Charge, RequestEnd, Work};
use kith_routing::{Availability, GroupLimit, LoadMeter, PolicyInputs, PolicyState, RoutingTable, policy};
use kith_types::{FanOutKind, NodeId, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;
use support::{random_keys, table};

struct Load {
    /// Queries per second.
    rate: f64,
    queries: u32,
    /// The slowdown of each group compared with the fastest one.
    slowness: Vec<f64>,
}

/// Returns the number of keys requested from each group.
fn keys_by_group(table: &RoutingTable, load: &Load, seed: u64) -> Vec<u64> {
    let up = Availability::all(table);
    let view = table.view(&up);
    let policy = policy::by_name("least-loaded").expect("a registered policy");
    let (mut state, mut rng) = (PolicyState::new(seed), StdRng::seed_from_u64(seed));
    let mut meter = LoadMeter::default();
    let work = Work::values(FanOutKind::NonUnion);
    let mut free: BTreeMap<NodeId, f64> = BTreeMap::new();
    // The open requests by the time when they end, in nanoseconds.
    let mut open: BTreeMap<(u64, u32, NodeId), Charge> = BTreeMap::new();
    let mut keys_by_group = vec![0; table.groups().len()];
    let mut now = 0.0f64;
    let at = |seconds: f64| Timestamp(Duration::from_secs_f64(seconds));
    for query in 0..load.queries {
        now += -rng.random_range(f64::MIN_POSITIVE..1.0).ln() / load.rate;
        while open.first_key_value().is_some_and(|((end, ..), _)| *end as f64 / 1e9 <= now) {
            let ((end, ..), charge) = open.pop_first().expect("looked at above");
            meter.on_end(charge, RequestEnd::Answered, at(end as f64 / 1e9));
        }
        let keys = random_keys(table, 5_000f64.powf(rng.random_range(0.0..1.0)) as usize, &mut rng);
        let snapshot = meter.snapshot(at(now));
        let inputs = PolicyInputs { view, keys: &keys, limit: GroupLimit(1), load: &snapshot };
        let plan = policy.plan(&inputs, &mut state, &mut rng);
        for assignment in plan.expect("all is up").assignments {
            let (node, keys) = (assignment.node, assignment.keys.len());
            let group = table.node(node).expect("of the table").group.0 as usize;
            keys_by_group[group] += keys as u64;
            let noise = -rng.random_range(f64::MIN_POSITIVE..1.0).ln();
            let service = (100e-6 + 2e-6 * keys as f64) * load.slowness[group] * (0.5 + 0.5 * noise);
            let end = free.get(&node).copied().unwrap_or(0.0).max(now) + service;
            free.insert(node, end);
            open.insert(((end * 1e9) as u64, query, node), meter.on_send(work, node, keys, at(now)));
        }
    }
    keys_by_group
}

fn shares(keys: &[u64]) -> Vec<f64> {
    let all: u64 = keys.iter().sum();
    keys.iter().map(|keys| *keys as f64 / all as f64).collect()
}

/// 9.9 and Venice's issue 3009: batches of 1 to 5,000 keys (log-uniform) and five groups whose latencies differ by at most a
/// factor of 1.18. Each group gets 15 to 25 % of the keys, whether the cluster is idle or busy.
#[test]
fn no_group_gets_two_fifths_for_being_a_little_quicker() {
    let table = table(5, 4, 240, 3);
    for rate in [100.0, 2_000.0, 12_000.0] {
        let slowness = vec![1.0, 1.04, 1.09, 1.13, 1.18];
        let keys = keys_by_group(&table, &Load { rate, queries: 4_000, slowness }, 1);
        let shares = shares(&keys);
        eprintln!("{rate} queries a second: {shares:.3?}");
        assert!(shares.iter().all(|share| (0.15..0.25).contains(share)), "at {rate} a second: {shares:?}");
    }
}

/// A group that is ten times slower than the others gets few keys, but some.
#[test]
fn a_slow_group_gets_little() {
    let table = table(3, 4, 240, 3);
    let slowness = vec![1.0, 10.0, 1.0];
    let keys = keys_by_group(&table, &Load { rate: 1_000.0, queries: 4_000, slowness }, 2);
    let shares = shares(&keys);
    assert!((0.001..0.12).contains(&shares[1]), "{shares:?}");
}
