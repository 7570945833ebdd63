//! Measures whether other work slows reads of a store (Voldemort §6.2, Fig. 9 and 10). Each pair has two periods of
//! single-key reads at a set rate, in turn: one alone, and one during a fetch of another store, a deep verification of
//! it, the copies of a node that joins, or a swap of the store that is read.
//!
//! `KITH_BENCH_RATE` sets the requests per second, `KITH_BENCH_PAIRS` the pairs of each kind, and
//! `KITH_BENCH_FETCH_MIB` the MiB that each node fetches per second. `KITH_BENCH_BESIDE` selects kinds from
//! `nothing,swap,verification,fetch,copy,rollback`.

use crate::{
    rig::{
        self,
        reads::{self, Store},
    },
    support::{
        cluster::Cluster,
        spare::{Spare, run_json},
        values,
    },
};
use kith_client::{BatchKeys, QueryOptions};
use kith_engine::{KeyType, ValueType};
use kith_terminal::bench::{latency::Latencies, stats::median_interval};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::Value;
use std::{
    process::{Child, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

const KINDS: &str = "nothing,swap,verification,fetch,copy,rollback";
const ROWS: u64 = 20_000;
/// The number of rows is so large that their verification takes longer than a period.
const OTHER_ROWS: u64 = 3_000_000;
/// The time after which a command has started on this machine. The start takes more processor time than the work of the
/// command.
const STARTS: Duration = Duration::from_millis(200);
const SLICE: Duration = Duration::from_secs(1);
/// A rate so low that almost nothing is fetched.
const NO_FETCH: &str = "1KiB/s";
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);

struct Rig {
    cluster: Cluster,
    runtime: tokio::runtime::Runtime,
    store: Store,
    pairs: u64,
    rate: f64,
}

/// Runs the benchmark.
pub fn run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data").display().to_string();
    let mut cluster = Cluster::start(&["--processes", "--groups", "2", "--nodes", "2", "--data", &data]);
    let spare = Spare::start(&mut cluster, 100, folder.path());
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
    let kinds = std::env::var("KITH_BENCH_BESIDE").unwrap_or_else(|_| KINDS.to_owned());
    for kind in kinds.split(',') {
        match kind {
            "nothing" => rig.compare("nothing else", |_| (), |()| ()),
            "swap" => rig.swaps(),
            "verification" => rig.verification(),
            "fetch" => rig.fetch(),
            "copy" => rig.rebalance(&spare),
            "rollback" => rig.rollbacks(),
            other => panic!("KITH_BENCH_BESIDE: {other:?} is none of {KINDS}"),
        }
    }
}

impl Rig {
    fn read(&self, seed: u64) -> Latencies {
        let mut rng = StdRng::seed_from_u64(seed);
        let singles = self.store.read_singles(self.rate, SLICE, seed, || rng.random_range(0..ROWS));
        self.runtime.block_on(singles)
    }

    /// Measures periods with the work that `begin` starts and `end` ends, and periods without it, in turn.
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

    /// Measures the second after a swap, when the command itself has ended.
    fn swaps(&self) {
        let swap = |pair: u64| {
            let version = (1 + pair % 2).to_string();
            self.cluster.must(&["store", "swap", "people", &version]);
        };
        self.compare("after a swap", swap, |()| ());
    }

    fn verification(&self) {
        let verify = |_| {
            let verify = self.spawn(&["store", "verify", "other", "--deep"]);
            std::thread::sleep(STARTS);
            verify
        };
        self.compare("verification", verify, finish);
    }

    /// Measures during one fetch that lasts as long as all pairs. Its rate is almost zero in the periods in which reads
    /// are alone.
    fn fetch(&self) {
        let rate = fetch_rate();
        let set = |rate: &str| self.set_fetch_rate(rate);
        let is_fetching = || {
            let versions = self.cluster.must(&["store", "versions", "other", "-o", "json"]);
            let versions: Value = serde_json::from_str(&versions).expect("JSON");
            versions.as_array().expect("a list").iter().any(|version| version["state"] == "fetching")
        };
        // Either node of a group fetches half of it, and the one that joins a third.
        let rows = (self.pairs + 2) * SLICE.as_secs() * rate * 1_024 * 3;
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

    /// Measures while one node joins the first group and copies a third of everything from the others, as long as all
    /// pairs take.
    fn rebalance(&self, spare: &Spare) {
        let rate = fetch_rate();
        let state = || run_json(&self.cluster, &["cluster", "rebalance", "--status"])["state"].clone();
        self.set_fetch_rate(NO_FETCH);
        // All partitions are in one batch, so owners change once, at the end.
        run_json(&self.cluster, &["cluster", "add-node", &spare.addr, "--batch", "1000", "--detach"]);
        let name = format!("a rebalance's copy at {rate} MiB/s");
        self.compare(
            &name,
            |_| self.set_fetch_rate(&format!("{rate}MiB/s")),
            |()| self.set_fetch_rate(NO_FETCH),
        );
        assert_ne!(state(), "finished", "it ended before the last pair");
        self.set_fetch_rate("off");
    }

    /// Measures the time from the command `kith store rollback` to the last answer of the version that was rolled back,
    /// with a reader that does not pause.
    fn rollbacks(&self) {
        let mut last_ms = Vec::new();
        // Refused where version 1 serves already.
        let _ = self.cluster.kith(&["store", "swap", "people", "1"]).output();
        for _ in 0..self.pairs {
            self.cluster.must(&["store", "swap", "people", "2", "--force"]);
            let is_over = AtomicBool::new(false);
            let last = std::thread::scope(|scope| {
                let reader = scope.spawn(|| self.last_answer_of(2, &is_over));
                std::thread::sleep(Duration::from_millis(20));
                let asked = Instant::now();
                self.cluster.must(&["store", "rollback", "people", "--to", "1"]);
                is_over.store(true, Ordering::SeqCst);
                reader.join().expect("it reads").saturating_duration_since(asked)
            });
            last_ms.push(last.as_secs_f64() * 1e3);
        }
        let ratio = median_interval(&last_ms).expect("there are rollbacks");
        let worst = last_ms.iter().copied().fold(0.0, f64::max);
        println!(
            "  rollback, from the command to the last answer of the old version: median {:.1} ms, worst {worst:.1} ms, of {}",
            ratio.median, ratio.pairs
        );
    }

    /// The time of the last answer of `version`. Reads until `is_over`, and then on to the first answer of another
    /// version.
    fn last_answer_of(&self, version: u64, is_over: &AtomicBool) -> Instant {
        let (keys, options) = (BatchKeys::Ids(vec![7]), QueryOptions::default());
        let mut last = Instant::now();
        loop {
            let asked = self.store.service.multi_get("people", &keys, &options);
            let answer = self.runtime.block_on(asked).expect("an answer");
            if answer.served.first().is_some_and(|(_, served)| *served == version) {
                last = Instant::now();
            } else if is_over.load(Ordering::SeqCst) {
                return last;
            }
        }
    }

    fn set_fetch_rate(&self, rate: &str) {
        self.cluster.must(&["cluster", "fetch-rate", rate]);
    }
}

/// The MiB per second that each node fetches.
fn fetch_rate() -> u64 {
    rig::setting("KITH_BENCH_FETCH_MIB", 32) as u64
}

fn finish(mut child: Child) {
    assert!(child.try_wait().expect("it runs").is_none(), "it ended before the stretch");
    assert!(child.wait().expect("kith ends").success());
}
