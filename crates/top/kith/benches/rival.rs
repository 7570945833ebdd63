//! Compares Kith with the rival of the Voldemort paper (§6), MariaDB with MyISAM. In turn, both build, load and swap in
//! the same rows of 1 KiB; then single keys are read at the same rising rates, uniform and zipfian, in an open loop.
//!
//! Kith is read directly (the fast client) and through a router, over TCP; MariaDB over a Unix socket. Every answer is
//! compared with the loaded value. `KITH_BENCH_ROWS` sets the number of rows, and `KITH_BENCH_ROUNDS` the number of
//! times that each rate is measured.

use crate::{
    rig::{
        self,
        cpu::{self, Parts},
        mariadb::{Index, MariaDb, Reader},
    },
    support::cluster::Cluster,
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use kith_client::{BatchKeys, QueryOptions, RouterClient, Service};
use kith_session::{Session, SessionSettings};
use kith_terminal::bench::{
    draw::{Draw, EXPONENT_DEFAULT, Popularity},
    latency::Latencies,
    open_loop::{Schedule, drive},
    stats::median_interval,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::Value;
use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process,
    sync::Arc,
    time::{Duration, Instant},
};

/// The number of random bytes of a value before base64, and the number after it.
const RANDOM_BYTES: usize = 768;
const VALUE_BYTES: usize = 1_024;
/// The first rate; each is √2 times the one before.
const RATE_MIN: f64 = 500.0;
const RATE_MAX: f64 = 200_000.0;
/// The time for which one side is measured at one rate in one round.
const SLICE: Duration = Duration::from_secs(1);
/// A side whose median is above this is overloaded, and does not take part at higher rates.
const OVERLOADED: Duration = Duration::from_millis(20);
/// The medians at which the highest rates are compared.
const MEDIANS_US: [u64; 6] = [200, 500, 1_000, 2_000, 5_000, 10_000];

/// Runs the benchmark.
pub fn run() {
    let rows = rig::setting("KITH_BENCH_ROWS", 1_000_000) as u64;
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Each client has one thread: on two processors, waking a second one costs a client more than its own work.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let Some(mut mariadb) = runtime.block_on(MariaDb::start()) else { return };
    println!("{rows} rows of {VALUE_BYTES} bytes, Kith and MariaDB {}", mariadb.version);
    let file = folder.path().join("rows.csv");
    write_rows(&file, rows);
    let cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "1"]);
    cluster.must(&["store", "create", "people", "--key", "id", "--value", "text"]);
    builds(&cluster, &runtime, &mut mariadb, &file, rows);
    for popularity in [Popularity::Uniform, Popularity::Zipfian] {
        let draw = Draw::new(rows, popularity, EXPONENT_DEFAULT).expect("there are rows");
        let sides = runtime.block_on(sides(&cluster, &mariadb));
        println!("\none key a request, {}, open loop; p50 and p99", popularity.name());
        let ladder = climb(&runtime, &sides, &draw);
        tell(&sides, &ladder);
    }
}

/// The value that was loaded for a key: random text.
fn value(id: u64) -> String {
    let mut bytes = [0; RANDOM_BYTES];
    StdRng::seed_from_u64(id).fill_bytes(&mut bytes);
    BASE64.encode(bytes)
}

fn write_rows(file: &Path, rows: u64) {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file).expect("the folder can be written"));
    writeln!(out, "key,value").expect("there is space");
    (0..rows).for_each(|id| writeln!(out, "{id},{}", value(id)).expect("there is space"));
    out.into_inner().expect("there is space").sync_all().expect("it can be written");
}

fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let started = Instant::now();
    let value = work();
    (started.elapsed().as_secs_f64(), value)
}

/// Builds from the same file of rows, in turn, twice: MariaDB once with each way to build its index.
fn builds(
    cluster: &Cluster,
    runtime: &tokio::runtime::Runtime,
    mariadb: &mut MariaDb,
    file: &Path,
    rows: u64,
) {
    let out = file.with_file_name("built");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    for (version, index) in [("1", Index::PutOff), ("2", Index::Primary)] {
        let arguments = [
            "store",
            "build",
            "people",
            &path(file),
            "--version",
            version,
            "--out",
            &path(&out),
            "-o",
            "json",
        ];
        let (build, built) = timed(|| cluster.must(&arguments));
        let built: Value = serde_json::from_str(&built).expect("JSON");
        assert_eq!(built["records"], rows, "{built}");
        let at = PathBuf::from(built["folder"].as_str().expect("a folder"));
        let (push, _) = timed(|| cluster.must(&["store", "push", "people", &path(&at)]));
        println!("  Kith: build {build:.1} s, fetch and swap {push:.1} s; together {:.1} s", build + push);
        let table = format!("people_{version}");
        let load = runtime.block_on(mariadb.load(&table, file, VALUE_BYTES, index));
        let swap = runtime.block_on(mariadb.swap(&table));
        assert_eq!(runtime.block_on(mariadb.rows()), rows);
        println!(
            "  MariaDB ({index:?} index): load {:.1} s, swap {:.1} ms; Kith / MariaDB {:.2}",
            load.as_secs_f64(),
            swap.as_secs_f64() * 1e3,
            (build + push) / (load + swap).as_secs_f64()
        );
    }
}

/// One of the two systems that are compared.
struct Side {
    name: &'static str,
    asked: Arc<Target>,
    parts: Parts,
}

enum Target {
    Kith(Arc<dyn Service>),
    MariaDb(Reader),
}

impl Target {
    async fn get(&self, id: u64) -> Result<Option<Vec<u8>>, String> {
        match self {
            Target::MariaDb(reader) => reader.get(id).await,
            Target::Kith(service) => {
                let keys = BatchKeys::Ids(vec![id]);
                let answer = service.multi_get("people", &keys, &QueryOptions::default()).await;
                let value = answer.map_err(|error| error.to_string())?.records.value(0);
                Ok(value.map(|value| value.to_vec()))
            }
        }
    }
}

async fn sides(cluster: &Cluster, mariadb: &MariaDb) -> Vec<Side> {
    let ready = cluster.ready();
    let pids = |field: &str| -> Vec<u32> {
        let all = ready[field].as_array().expect("a list").iter();
        all.map(|entry| entry["pid"].as_u64().expect("a process") as u32).collect()
    };
    let addr = vec![ready["router"].as_str().expect("an address").to_owned()];
    let session =
        Session::connect(addr.clone(), SessionSettings::default()).await.expect("the cluster is up");
    let router = RouterClient::connect(&addr).await.expect("the router is up");
    let client = ("client", vec![process::id()]);
    vec![
        Side {
            name: "MariaDB",
            asked: Arc::new(Target::MariaDb(mariadb.reader().await)),
            parts: vec![client.clone(), ("server", vec![mariadb.pid])],
        },
        Side {
            name: "Kith, direct",
            asked: Arc::new(Target::Kith(Arc::new(session))),
            parts: vec![client.clone(), ("node", pids("nodes"))],
        },
        Side {
            name: "Kith, router",
            asked: Arc::new(Target::Kith(Arc::new(router))),
            parts: vec![client, ("router", pids("routers")), ("node", pids("nodes"))],
        },
    ]
}

/// The measurements of one side at one rate.
#[derive(Default)]
struct Step {
    all: Latencies,
    /// The measurements of each round.
    medians: Vec<f64>,
    used: Vec<Duration>,
    /// The number of rounds in which not all requests could be sent.
    cut: usize,
}

impl Step {
    fn median(&self) -> u64 {
        self.all.quantile_us(0.5)
    }

    /// Whether all requests could be sent in most rounds. A short pause of the machine is enough to fail one round.
    fn is_sent(&self) -> bool {
        2 * self.cut < self.medians.len()
    }

    fn is_overloaded(&self) -> bool {
        !self.is_sent() || OVERLOADED < Duration::from_micros(self.median())
    }
}

/// The measurements of each side at each rate; `None` for a side that was overloaded at a lower rate.
type Ladder = Vec<(f64, Vec<Option<Step>>)>;

fn climb(runtime: &tokio::runtime::Runtime, sides: &[Side], draw: &Draw) -> Ladder {
    let rounds = rig::setting("KITH_BENCH_ROUNDS", 3).max(1);
    // Pages, connections and statements become warm.
    sides.iter().for_each(|side| slice(runtime, side, draw, RATE_MIN, u64::MAX, &mut Step::default()));
    let mut ladder: Ladder = Vec::new();
    let mut rate = RATE_MIN;
    while rate < RATE_MAX {
        let goes_on = |index: usize| {
            let last = ladder.last().map(|(_, steps)| &steps[index]);
            last.is_none_or(|step| step.as_ref().is_some_and(|step| !step.is_overloaded()))
        };
        let mut steps: Vec<Option<Step>> =
            (0..sides.len()).map(|index| goes_on(index).then(Step::default)).collect();
        if steps.iter().all(Option::is_none) {
            break;
        }
        for round in 0..rounds {
            let mut order: Vec<usize> = (0..sides.len()).collect();
            order.rotate_left(round % sides.len());
            for index in order {
                if let Some(step) = &mut steps[index] {
                    slice(runtime, &sides[index], draw, rate, round as u64, step);
                }
            }
        }
        ladder.push((rate, steps));
        rate *= std::f64::consts::SQRT_2;
    }
    ladder
}

fn slice(runtime: &tokio::runtime::Runtime, side: &Side, draw: &Draw, rate: f64, seed: u64, step: &mut Step) {
    let schedule = Schedule::new(rate, SLICE, seed);
    let mut rng = StdRng::seed_from_u64(seed ^ rate.to_bits());
    let ids: Arc<Vec<u64>> = Arc::new(schedule.due.iter().map(|_| draw.next(&mut rng)).collect());
    let ask = {
        let (asked, ids) = (Arc::clone(&side.asked), Arc::clone(&ids));
        move |index: usize| {
            let (asked, id) = (Arc::clone(&asked), ids[index]);
            async move { asked.get(id).await }
        }
    };
    let before = cpu::now(&side.parts);
    let driven = runtime.block_on(drive(schedule, ask));
    let after = cpu::now(&side.parts);
    let (mut this, mut not_sent) = (Latencies::default(), 0);
    for seen in driven.observations {
        let id = ids[seen.index];
        match seen.outcome {
            Some(Ok(Some(got))) => {
                assert!(got == value(id).as_bytes(), "{} answered key {id} wrongly", side.name);
                this.record(seen.latency, seen.lag);
            }
            Some(other) => panic!("{}, key {id}: {other:?}", side.name),
            None => not_sent += 1,
        }
    }
    step.cut += usize::from(0 < not_sent);
    step.medians.push(this.quantile_us(0.5) as f64);
    step.all.add(&this);
    step.used.resize(side.parts.len(), Duration::ZERO);
    for ((sum, after), before) in step.used.iter_mut().zip(after).zip(before) {
        *sum += after.saturating_sub(before);
    }
}

fn tell(sides: &[Side], ladder: &Ladder) {
    for (rate, steps) in ladder {
        let cells = sides.iter().zip(steps).map(|(side, step)| {
            let Some(step) = step else { return format!("{} overloaded", side.name) };
            let late = if step.is_overloaded() { " (overloaded)" } else { "" };
            format!("{} {} and {} us{late}", side.name, step.median(), step.all.quantile_us(0.99))
        });
        println!("  {rate:>6.0}/s: {}", cells.collect::<Vec<_>>().join("; "));
    }
    for (index, side) in sides.iter().enumerate() {
        let steps: Vec<&Step> = ladder.iter().filter_map(|(_, steps)| steps[index].as_ref()).collect();
        let mut used = vec![Duration::ZERO; side.parts.len()];
        for step in &steps {
            used.iter_mut().zip(&step.used).for_each(|(sum, used)| *sum += *used);
        }
        let answers: u64 = steps.iter().map(|step| step.all.count()).sum();
        println!(
            "  CPU a request, {}: {}",
            side.name,
            cpu::describe(&side.parts, &used, answers.max(1) as usize)
        );
        if index != 0 {
            println!("    p50 / MariaDB's at the same rate, same turn: {}", ratio(ladder, index));
        }
    }
    for limit in MEDIANS_US {
        let highest: Vec<Option<f64>> = (0..sides.len()).map(|index| highest(ladder, index, limit)).collect();
        let Some(theirs) = highest[0] else { continue };
        let cells = sides.iter().zip(&highest).map(|(side, rate)| match rate {
            Some(rate) => format!("{} {rate:.0}/s ({:.2})", side.name, rate / theirs),
            None => format!("{} at none", side.name),
        });
        println!("  highest rate with a median up to {limit} us: {}", cells.collect::<Vec<_>>().join(", "));
    }
}

/// The comparison over all rounds in which both took part.
fn ratio(ladder: &Ladder, index: usize) -> String {
    let pairs = ladder.iter().filter_map(|(_, steps)| Some((steps[0].as_ref()?, steps[index].as_ref()?)));
    let ratios: Vec<f64> = pairs
        .flat_map(|(theirs, ours)| ours.medians.iter().zip(&theirs.medians).map(|(a, b)| a / b))
        .collect();
    median_interval(&ratios).map_or("none".to_owned(), |ratio| {
        format!("{:.2} ({:.2} to {:.2}, {} pairs)", ratio.median, ratio.low, ratio.high, ratio.pairs)
    })
}

/// The highest rate whose median stays within `limit`, and at which all requests could be sent.
fn highest(ladder: &Ladder, index: usize, limit: u64) -> Option<f64> {
    let held = ladder.iter().filter(|(_, steps)| {
        steps[index].as_ref().is_some_and(|step| step.is_sent() && step.median() <= limit)
    });
    held.map(|(rate, _)| *rate).next_back()
}
