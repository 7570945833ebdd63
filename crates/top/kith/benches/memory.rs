//! Measures a store ten times as large as the memory that its node may use, as in Voldemort §6.2: reads of single keys,
//! uniform and zipfian, from the moment at which a cold version is swapped in; the number of disk reads per lookup; and
//! whether requests that wait for the disk delay those of another store that need not wait.
//!
//! The node runs in a control group of its own, which takes the right to make one. `KITH_BENCH_MEMORY_MIB` sets its
//! limit, `KITH_BENCH_RATE` the requests per second, `KITH_BENCH_SECONDS` the length of a curve, and `KITH_BENCH_OUT`
//! the file for the drawn curves.

use crate::{
    rig::{
        self,
        reads::{self, Store},
    },
    support::{cluster::Cluster, limits::MemoryGroup, values},
};
use kith_engine::{KeyType, ValueType};
use kith_sim::figures::{Axis, Drawing, Panel, Series, Style, write_drawing};
use kith_terminal::bench::{
    draw::{Draw, EXPONENT_DEFAULT, Popularity},
    latency::Latencies,
    stats::median_interval,
};
use rand::{SeedableRng, rngs::StdRng};
use std::{path::PathBuf, time::Duration};

const SMALL_ROWS: u64 = 10_000;
const SMALL_RATE: f64 = 300.0;
/// The number of pairs with and without the reads of the other store.
const PAIRS: u64 = 16;
const SLICE: Duration = Duration::from_secs(1);
const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);

struct Rig {
    cluster: Cluster,
    group: MemoryGroup,
    runtime: tokio::runtime::Runtime,
    rows: u64,
    rate: f64,
}

/// One second of a curve.
struct Second {
    latencies: Latencies,
    reads_per_lookup: f64,
}

/// Runs the benchmark.
pub fn run() {
    let memory = (rig::setting("KITH_BENCH_MEMORY_MIB", 160) as u64) << 20;
    let Some(group) = MemoryGroup::new(memory) else { return };
    let cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "1"]);
    group.add(cluster.node_pids(0)[0]);
    let rows = memory * 10 / 1_024;
    println!("{rows} rows of 1 KiB, {} MiB for the node", memory >> 20);
    for (store, rows) in [("large", rows), ("small", SMALL_ROWS)] {
        values::create(&cluster, store, TYPES.0, TYPES.1);
        values::push(&cluster, store, TYPES, 1, reads::rows(rows));
    }
    values::push(&cluster, "large", TYPES, 2, reads::rows(rows));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let rate = rig::setting("KITH_BENCH_RATE", 1_000) as f64;
    let rig = Rig { cluster, group, runtime, rows, rate };
    for (popularity, version) in [(Popularity::Uniform, "1"), (Popularity::Zipfian, "2")] {
        rig.warm_up(popularity, version);
    }
    rig.others();
}

impl Rig {
    fn store(&self, name: &'static str) -> Store {
        let service = self.runtime.block_on(reads::direct(&self.cluster.ready()));
        Store { name, service }
    }

    /// Swaps in a version of which nothing is in memory, and continues to read.
    fn warm_up(&self, popularity: Popularity, version: &str) {
        let large = self.store("large");
        let draw = Draw::new(self.rows, popularity, EXPONENT_DEFAULT).expect("there are rows");
        let mut rng = StdRng::seed_from_u64(7);
        self.group.drop_caches();
        self.cluster.must(&["store", "swap", "large", version]);
        let seconds = rig::setting("KITH_BENCH_SECONDS", 30) as u64;
        let curve: Vec<Second> = (0..seconds)
            .map(|second| {
                let before = self.group.disk_reads();
                let singles = large.read_singles(self.rate, SLICE, second, || draw.next(&mut rng));
                let latencies = self.runtime.block_on(singles);
                let reads = (self.group.disk_reads() - before) as f64;
                Second { reads_per_lookup: reads / latencies.count() as f64, latencies }
            })
            .collect();
        println!(
            "\n{}, {} lookups/s, after the swap of a version that is on the disk only",
            popularity.name(),
            self.rate
        );
        println!("  second: p50, p99 us; reads of the disk a lookup");
        for (number, second) in curve.iter().enumerate() {
            if number < 5 || (number + 1) % 5 == 0 {
                let [p50, p99] = [0.5, 0.99].map(|share| second.latencies.quantile_us(share));
                println!("  {:>6}: {p50}, {p99}; {:.2}", number + 1, second.reads_per_lookup);
            }
        }
        let most = curve.iter().map(|second| second.reads_per_lookup).fold(0.0, f64::max);
        println!("  most reads of the disk a lookup, of any second: {most:.2}");
        if let Some(out) = std::env::var_os("KITH_BENCH_OUT") {
            let name = format!("memory-{}", popularity.name());
            write_drawing(
                &name,
                "Reads after the swap of a cold version, ten times as large as memory",
                &drawing(&curve),
                &PathBuf::from(out),
            )
            .expect("the folder can be written");
        }
    }

    /// Reads the small store, in turn alone and during reads of the large one that wait for the disk.
    fn others(&self) {
        let (large, small) = (self.store("large"), self.store("small"));
        let uniform = |rows| Draw::new(rows, Popularity::Uniform, EXPONENT_DEFAULT).expect("there are rows");
        let (mut p50, mut p99) = (Vec::new(), Vec::new());
        let (mut alone, mut beside) = (Latencies::default(), Latencies::default());
        for pair in 0..PAIRS {
            let mut one = [Latencies::default(), Latencies::default()];
            for turn in [pair % 2, 1 - pair % 2] {
                let mut rngs = [pair * 4 + turn, pair * 4 + 2 + turn].map(StdRng::seed_from_u64);
                let [of_small, of_large] = &mut rngs;
                let (small_draw, large_draw) = (uniform(SMALL_ROWS), uniform(self.rows));
                let wanted = small.read_singles(SMALL_RATE, SLICE, pair, || small_draw.next(of_small));
                one[turn as usize] = if turn == 0 {
                    self.runtime.block_on(wanted)
                } else {
                    let others = large.read_singles(self.rate, SLICE, pair, || large_draw.next(of_large));
                    self.runtime.block_on(async { tokio::join!(wanted, others).0 })
                };
            }
            p50.push(one[1].quantile_us(0.5) as f64 / one[0].quantile_us(0.5) as f64);
            p99.push(one[1].quantile_us(0.99) as f64 / one[0].quantile_us(0.99) as f64);
            alone.add(&one[0]);
            beside.add(&one[1]);
        }
        println!(
            "\nthe small store, {SMALL_RATE} lookups/s: beside {} lookups/s of the large one / alone",
            self.rate
        );
        for (name, share, ratios) in [("p50", 0.5, &p50), ("p99", 0.99, &p99)] {
            let ratio = median_interval(ratios).expect("there are pairs");
            println!(
                "  {name}: {:.2} ({:.2} to {:.2}, {} pairs); {} and {} us",
                ratio.median,
                ratio.low,
                ratio.high,
                ratio.pairs,
                beside.quantile_us(share),
                alone.quantile_us(share)
            );
        }
    }
}

fn drawing(curve: &[Second]) -> Drawing {
    let line = |name: &str, value: &dyn Fn(&Second) -> f64| Series {
        name: name.to_owned(),
        points: curve.iter().enumerate().map(|(at, second)| (at as f64 + 1.0, value(second))).collect(),
    };
    let panel = |title: &str, y: Axis, series: Vec<Series>| Panel {
        title: title.to_owned(),
        x: Axis::linear("seconds since the swap", "second"),
        y,
        style: Style::Lines,
        series,
    };
    let quantile = |share: f64| move |second: &Second| second.latencies.quantile_us(share) as f64;
    Drawing {
        panels: vec![
            panel(
                "latency, from when a request was due",
                Axis::logarithmic("microseconds", "latency_us"),
                vec![line("p50", &quantile(0.5)), line("p99", &quantile(0.99))],
            ),
            panel(
                "the disk",
                Axis::linear("reads a lookup", "disk_reads_per_lookup"),
                vec![line("reads", &|second| second.reads_per_lookup)],
            ),
        ],
        tables: Vec::new(),
    }
}
