//! Compares Kith with a Redis server that has the same keys and values. The same redis-benchmark asks both in turn: for
//! single keys by 50 clients, with and without pipelining, and for batches of 100 and 1,000 keys. Kith answers through
//! a router in front of a group of three nodes and, like Redis, in one process that has all keys: a node that answers
//! for itself.
//!
//! `KITH_BENCH_RESP_ROWS` sets the number of keys, and `KITH_BENCH_ROUNDS` the number of rounds.

use crate::{
    rig::{
        self,
        cpu::{self, Parts},
        redis::{RedisServer, requests_per_second},
    },
    support::{cluster::Cluster, values},
};
use kith_engine::{KeyType, ValueType};
use kith_terminal::bench::stats::median_interval;
use std::time::Duration;

/// The prefix of the keys of redis-benchmark, which are `key:` and twelve digits: here a store and its keys.
const STORE: &str = "key";
const VALUE_BYTES: usize = 100;

/// A server that is asked.
struct Target {
    name: &'static str,
    port: String,
    parts: Parts,
}

/// The commands of a measurement.
struct Workload {
    name: &'static str,
    requests: usize,
    /// The number of keys of a request.
    keys: usize,
    arguments: Vec<String>,
}

/// Runs the benchmark.
pub fn run() {
    let rows = rig::setting("KITH_BENCH_RESP_ROWS", 100_000) as u64;
    let rounds = rig::setting("KITH_BENCH_ROUNDS", 5);
    let keyed = |prefix: &'static str| {
        (0..rows).map(move |row| (format!("{prefix}{row:012}").into_bytes(), value(row)))
    };
    let Some(redis) = RedisServer::start(keyed("key:")) else { return };
    let routed = started(&["--groups", "1", "--nodes", "3"], keyed(""));
    let alone = started(&["--groups", "1", "--nodes", "1"], keyed(""));
    let (routed_ready, alone_ready) = (routed.ready(), alone.ready());
    let pid = |entry: &serde_json::Value| entry["pid"].as_u64().expect("a pid") as u32;
    let targets = [
        Target { name: "Redis", port: redis.port.clone(), parts: vec![("server", vec![redis.pid])] },
        Target {
            name: "Kith, a node",
            port: port(&alone_ready["nodes"][0]["resp"]),
            parts: vec![("node", alone.node_pids(0))],
        },
        Target {
            name: "Kith, a router and 3 nodes",
            port: port(&routed_ready["resp"]),
            parts: vec![("router", vec![pid(&routed_ready["routers"][0])]), ("nodes", routed.node_pids(0))],
        },
    ];
    println!("{rows} keys of 16 bytes, values of {VALUE_BYTES}; Redis {}; {rounds} rounds", redis.version);
    for workload in workloads() {
        compare(&workload, &targets, rows, rounds);
    }
}

fn value(row: u64) -> Vec<u8> {
    format!("{row:0VALUE_BYTES$}").into_bytes()
}

fn port(addr: &serde_json::Value) -> String {
    addr.as_str().and_then(|addr| addr.rsplit_once(':')).expect("an address").1.to_owned()
}

fn started(shape: &[&str], rows: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Cluster {
    let cluster = Cluster::start(&[&["--processes"], shape].concat());
    let types = (KeyType::String, ValueType::Text);
    values::create(&cluster, STORE, types.0, types.1);
    values::push(&cluster, STORE, types, 1, rows);
    cluster
}

fn workloads() -> [Workload; 4] {
    let get = |more: &[&str]| [&["-t", "get"], more].concat().into_iter().map(str::to_owned).collect();
    let batch = |keys: usize| {
        let mut arguments: Vec<String> = ["-c", "10", "MGET"].map(str::to_owned).to_vec();
        arguments.extend(std::iter::repeat_n("key:__rand_int__".to_owned(), keys));
        arguments
    };
    let scale = rig::setting("KITH_BENCH_RESP_REQUESTS", 200_000);
    [
        Workload { name: "GET, 50 clients", requests: scale, keys: 1, arguments: get(&["-c", "50"]) },
        Workload {
            name: "GET, 50 clients, 16 in a row",
            requests: 4 * scale,
            keys: 1,
            arguments: get(&["-c", "50", "-P", "16"]),
        },
        Workload { name: "MGET of 100, 10 clients", requests: scale / 10, keys: 100, arguments: batch(100) },
        Workload {
            name: "MGET of 1,000, 10 clients",
            requests: scale / 100,
            keys: 1_000,
            arguments: batch(1_000),
        },
    ]
}

/// Measures all targets in turn. Each round begins with another one.
fn compare(workload: &Workload, targets: &[Target], rows: u64, rounds: usize) {
    println!("{}", workload.name);
    let run = |target: &Target, requests: usize| {
        let before = cpu::now(&target.parts);
        let rps = requests_per_second(&target.port, requests, rows, &workload.arguments);
        (rps, before, cpu::now(&target.parts))
    };
    for target in targets {
        run(target, workload.requests / 10);
    }
    let mut rps = vec![Vec::new(); targets.len()];
    // The CPU time of all rounds together, by part.
    let mut used: Vec<Vec<Duration>> =
        targets.iter().map(|target| vec![Duration::ZERO; target.parts.len()]).collect();
    for round in 0..rounds {
        for turn in 0..targets.len() {
            let index = (round + turn) % targets.len();
            let (per_second, before, after) = run(&targets[index], workload.requests);
            rps[index].push(per_second);
            let each = after.iter().zip(&before).map(|(after, before)| after.saturating_sub(*before));
            used[index].iter_mut().zip(each).for_each(|(used, more)| *used += more);
        }
    }
    for (index, target) in targets.iter().enumerate() {
        let ratios: Vec<f64> = rps[index].iter().zip(&rps[0]).map(|(ours, theirs)| ours / theirs).collect();
        let ratio = median_interval(&ratios).expect("there are rounds");
        let mut sorted = rps[index].clone();
        sorted.sort_by(f64::total_cmp);
        let each = workload.requests * rounds;
        println!(
            "  {}: {:.0} requests/s, {:.0} keys/s; to Redis {:.2} ({:.2} to {:.2}); CPU {}",
            target.name,
            sorted[sorted.len() / 2],
            sorted[sorted.len() / 2] * workload.keys as f64,
            ratio.median,
            ratio.low,
            ratio.high,
            per_request(&target.parts, &used[index], each),
        );
    }
}

/// Formats the CPU time of a request, such as `router 3.1 us, nodes 4.0 us: 7.1 us`.
fn per_request(parts: &Parts, used: &[Duration], requests: usize) -> String {
    let each: Vec<f64> = used.iter().map(|used| used.as_secs_f64() * 1e6 / requests as f64).collect();
    let named: Vec<String> =
        parts.iter().zip(&each).map(|((name, _), us)| format!("{name} {us:.1} us")).collect();
    format!("{}: {:.1} us", named.join(", "), each.iter().sum::<f64>())
}
