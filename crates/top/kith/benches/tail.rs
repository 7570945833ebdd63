//! Measures reads of 5,000 values of a kibibyte while one node of six is ten times as slow as the others (Venice §5).
//! The settings take turns: no slow node, a slow node with hedges of late requests, and one without, each under the
//! policy that avoids loaded groups and under one that does not. Each setting has a session of its own, which does not
//! know the measurements of the others.
//!
//! `KITH_BENCH_ROUNDS` sets the number of rounds (12), and `KITH_BENCH_READS` the number of reads of each setting in a
//! round (40).

use crate::{
    rig::{
        self,
        reads::{self, Store},
        slow::Slow,
    },
    support::{cluster::Cluster, values},
};
use kith_client::{BatchKeys, QueryOptions};
use kith_engine::{KeyType, ValueType};
use kith_routing::load::Hedging;
use kith_terminal::bench::{latency::Latencies, stats::median_interval};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::time::{Duration, Instant};

const ROWS: u64 = 60_000;
const KEYS: usize = 5_000;
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);
/// The time for which the slow node is stopped: nine tenths of its time.
const STOPPED: Duration = Duration::from_millis(27);
const RUNNING: Duration = Duration::from_millis(3);
/// The number of reads at the beginning of a turn that do not count.
const WARM_READS: usize = 10;
/// The number of reads of each session before all turns, without a slow node, so that the session learns when a request
/// is late.
const READS_BEFORE: usize = 300;
/// Whether a node is slow, and whether late requests are hedged.
const SETTINGS: [(bool, Hedging); 3] = [(false, Hedging::Live), (true, Hedging::Live), (true, Hedging::Off)];

/// Runs the benchmark.
pub fn run() {
    let cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "3"]);
    values::create(&cluster, "people", TYPES.0, TYPES.1);
    values::push(&cluster, "people", TYPES, 1, reads::rows(ROWS));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let slow = cluster.node_pids(1)[0];
    println!(
        "{KEYS} keys of a kibibyte, one read at a time; 2 groups of 3 nodes, one of them ten times as slow"
    );
    for policy in ["least-loaded", "n-groups"] {
        let session =
            |_| Store { name: "people", service: runtime.block_on(reads::direct(&cluster.ready())) };
        Rig { stores: [0, 1, 2].map(session), runtime: &runtime, slow }.compare(policy);
    }
}

struct Rig<'a> {
    /// One session per setting.
    stores: [Store; 3],
    runtime: &'a tokio::runtime::Runtime,
    /// The process that is made slow.
    slow: u32,
}

impl Rig<'_> {
    fn compare(&self, policy: &str) {
        let (rounds, count) = (rig::setting("KITH_BENCH_ROUNDS", 12), rig::setting("KITH_BENCH_READS", 40));
        let mut all: [Latencies; 3] = Default::default();
        let mut ratios: [Vec<f64>; 2] = Default::default();
        for (store, (_, hedging)) in self.stores.iter().zip(SETTINGS) {
            self.turn(store, policy, (false, hedging), READS_BEFORE, rounds as u64);
        }
        for round in 0..rounds {
            let mut p99 = [0.0; 3];
            for turn in 0..SETTINGS.len() {
                let setting = (round + turn) % SETTINGS.len();
                let seen = self.turn(&self.stores[setting], policy, SETTINGS[setting], count, round as u64);
                p99[setting] = seen.quantile_us(0.99) as f64;
                all[setting].add(&seen);
            }
            ratios[0].push(p99[1] / p99[0]);
            ratios[1].push(p99[2] / p99[1]);
        }
        println!("{policy}, {} reads each", rounds * count);
        for (name, seen) in ["no fault", "slow, hedged", "slow, not hedged"].into_iter().zip(&all) {
            let [p50, p90, p99] = [0.5, 0.9, 0.99].map(|share| seen.quantile_us(share) as f64 / 1e3);
            println!("  {name}: p50 {p50:.1}, p90 {p90:.1}, p99 {p99:.1} ms");
        }
        let of_all = |a: usize, b: usize| all[a].quantile_us(0.99) as f64 / all[b].quantile_us(0.99) as f64;
        let names = ["slow and hedged / no fault", "not hedged / hedged"];
        for ((name, ratios), all) in names.into_iter().zip(&ratios).zip([of_all(1, 0), of_all(2, 1)]) {
            let ratio = median_interval(ratios).expect("there are rounds");
            println!(
                "  p99, {name}: {all:.2}; in turn {:.2} ({:.2} to {:.2})",
                ratio.median, ratio.low, ratio.high
            );
        }
    }

    /// Reads one after the other, and checks every answer.
    fn turn(
        &self,
        store: &Store,
        policy: &str,
        (is_slow, hedging): (bool, Hedging),
        count: usize,
        seed: u64,
    ) -> Latencies {
        let slow = is_slow.then(|| Slow::start(self.slow, STOPPED, RUNNING));
        let options = QueryOptions {
            policy: Some(policy.to_owned()),
            hedging: Some(hedging),
            ..QueryOptions::default()
        };
        let mut rng = StdRng::seed_from_u64(seed);
        let mut seen = Latencies::default();
        for read in 0..WARM_READS + count {
            let keys: Vec<u64> = (0..KEYS).map(|_| rng.random_range(0..ROWS)).collect();
            let asked = BatchKeys::Ids(keys.clone());
            let start = Instant::now();
            let answer = self.runtime.block_on(store.service.multi_get(store.name, &asked, &options));
            let took = start.elapsed();
            let answer = answer.expect("no read fails");
            for (index, &id) in keys.iter().enumerate() {
                assert!(answer.records.value(index).is_some_and(|got| got == reads::value(id)), "key {id}");
            }
            if WARM_READS <= read {
                seen.record(took, Duration::ZERO);
            }
        }
        drop(slow);
        seen
    }
}
