//! Whether reads of a store feel what else goes on (Voldemort §6.2, Fig. 9 and 10): pairs of two stretches of single-key reads
//! at a set rate, one alone and one beside a fetch of another store, a deep verification of it, or a swap of the store that
//! is read, in turn.
//!
//! `KITH_BENCH_RATE` requests a second, `KITH_BENCH_PAIRS` pairs of each kind, `KITH_BENCH_FETCH_MIB` how much
//! each node fetches a second.

#[path = "rig/mod.rs"]
mod rig;
#[path = "../src/bench/stats.rs"]
#[allow(dead_code, reason = "quantiles are for calibration")]
mod stats;
#[path = "../tests/support/mod.rs"]
mod support;

use kith_engine::{KeyType, ValueType};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use rig::{
    latency::Latencies,
    reads::{self, Store},
};
use serde_json::Value;
use stats::median_interval;
use std::{
    process::{Child, Stdio},
    time::Duration,
};
use support::{cluster::Cluster, values};

const ROWS: u64 = 20_000;
const OTHER_ROWS: u64 = 200_000;
const SLICE: Duration = Duration::from_secs(1);
/// As good as none.
const NO_FETCH: &str = "1KiB/s";
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);

struct Rig {
    cluster: Cluster,
    runtime: tokio::runtime::Runtime,
    store: Store,
    pairs: u64,
    rate: f64,
}

fn main() {
    let cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "2"]);
    for (store, rows, versions) in [("people", ROWS, 2), ("other", OTHER_ROWS, 1)] {
        values::create(&cluster, store, TYPES.0, TYPES.1);
        (1..=versions).for_each(|version| values::push(&cluster, store, TYPES, version, reads::rows(rows)));
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let service = runtime.block_on(reads::direct(&cluster.ready()));
    let store = Store { name: "people", service };
    let pairs = rig::setting("KITH_BENCH_PAIRS", 20) as u64;
    let rate = rig::setting("KITH_BENCH_RATE", 500) as f64;
    let rig = Rig { cluster, runtime, store, pairs, rate };
    println!("{rate} lookups/s; beside / alone");
    rig.compare("nothing else", |_| (), |()| ());
    rig.swaps();
    rig.verification();
    rig.fetch();
}

impl Rig {
    fn read(&self, seed: u64) -> Latencies {
        let mut rng = StdRng::seed_from_u64(seed);
        let singles = self.store.read_singles(self.rate, SLICE, seed, || rng.random_range(0..ROWS));
        self.runtime.block_on(singles)
    }

    /// Stretches with what `begin` starts, and `end` ends, and such without, in turn.
    fn compare<T>(&self, name: &str, mut begin: impl FnMut(u64) -> T, mut end: impl FnMut(T)) {
        let (mut p50, mut p99) = (Vec::new(), Vec::new());
        let mut all = [Latencies::default(), Latencies::default()];
        self.read(u64::MAX);
        for pair in 0..self.pairs {
            let mut one = [Latencies::default(), Latencies::default()];
            for turn in [pair % 2, 1 - pair % 2] {
                one[turn as usize] = if turn == 0 {
                    self.read(pair)
                } else {
                    let begun = begin(pair);
                    let latencies = self.read(pair);
                    end(begun);
                    latencies
                };
            }
            p50.push(one[1].quantile_us(0.5) as f64 / one[0].quantile_us(0.5) as f64);
            p99.push(one[1].quantile_us(0.99) as f64 / one[0].quantile_us(0.99) as f64);
            all.iter_mut().zip(&one).for_each(|(all, one)| all.add(one));
        }
        for (quantile, share, ratios) in [("p50", 0.5, &p50), ("p99", 0.99, &p99)] {
            let ratio = median_interval(ratios).expect("there are pairs");
            println!(
                "  {name}: {quantile} {:.2} ({:.2} to {:.2}, {} pairs); {} and {} us",
                ratio.median,
                ratio.low,
                ratio.high,
                ratio.pairs,
                all[1].quantile_us(share),
                all[0].quantile_us(share)
            );
        }
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.cluster.kith(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("kith runs")
    }

    /// The second after a swap: the command itself has ended.
    fn swaps(&self) {
        let swap = |pair: u64| {
            let version = (1 + pair % 2).to_string();
            self.cluster.must(&["store", "swap", "people", &version]);
        };
        self.compare("after a swap", swap, |()| ());
    }

    fn verification(&self) {
        let verify = |_| self.spawn(&["store", "verify", "other", "--deep"]);
        self.compare("verification", verify, finish);
    }

    /// One fetch, as long as all pairs take; its rate is as good as none while reads are to be alone.
    fn fetch(&self) {
        let rate = rig::setting("KITH_BENCH_FETCH_MIB", 32) as u64;
        let set = |rate: &str| drop(self.cluster.must(&["cluster", "fetch-rate", rate]));
        let is_fetching = || {
            let versions = self.cluster.must(&["store", "versions", "other", "-o", "json"]);
            let versions: Value = serde_json::from_str(&versions).expect("JSON");
            versions.as_array().expect("a list").iter().any(|version| version["state"] == "fetching")
        };
        // Either node of a group fetches half of it.
        let rows = (self.pairs + 2) * SLICE.as_secs() * rate * 1_024 * 2;
        set(NO_FETCH);
        std::thread::scope(|scope| {
            let push = scope.spawn(|| values::push(&self.cluster, "other", TYPES, 2, reads::rows(rows)));
            while !is_fetching() {
                assert!(!push.is_finished(), "the push ended before nodes fetched");
                std::thread::sleep(Duration::from_millis(100));
            }
            let name = format!("fetch at {rate} MiB/s a node");
            self.compare(&name, |_| set(&format!("{rate}MiB/s")), |()| set(NO_FETCH));
            assert!(is_fetching(), "the fetch ended before the last pair");
            set("off");
        });
    }
}

fn finish(mut child: Child) {
    assert!(child.wait().expect("kith ends").success());
}
