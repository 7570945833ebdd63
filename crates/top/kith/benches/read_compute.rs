//! Measures read compute over 5,000 vectors of 64 f32 (Venice §4): nodes compute the scores, or the client fetches the
//! vectors and computes them with the same code, in turn on the same keys. Measured are the CPU time of all processes,
//! the bytes that the client receives, and the time. Answers are compared with each other, bit for bit, and with scores
//! that are computed here in double precision.
//!
//! `KITH_BENCH_PAIRS` sets the number of questions for each side, and `KITH_BENCH_BLOCKS` the number of blocks for
//! which CPU time is measured.

use crate::{
    rig::{
        self,
        cpu::Parts,
        reads, received,
        turns::{Amount, Check, Side, interval_text, take_turns},
    },
    support::cluster::Cluster,
};
use kith_client::{BatchKeys, ComputeAnswer, ComputeAt, ComputeQuery, QueryOptions, Service, TransportKind};
use kith_operators::Record;
use kith_schema::{
    RecordView,
    compute::{ComputeFunction, ComputePlan},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::runtime::Runtime;

const ROWS: u64 = 50_000;
const KEYS: usize = 5_000;
const DIMENSIONS: usize = 64;
const BEST: u32 = 20;
const STORE: &str = "pages";
/// The number of different sets of keys. Further questions repeat these.
const QUESTIONS: usize = 32;
/// The greatest error of a sum of 64 products below 1 in single precision.
const TOLERANCE: f64 = 1e-4;

/// Runs the benchmark.
pub fn run() {
    let mut rng = StdRng::seed_from_u64(5);
    let mut vector = || -> Vec<f32> { (0..DIMENSIONS).map(|_| rng.random_range(-1.0..1.0)).collect() };
    let rows: Vec<Vec<f32>> = (0..ROWS).map(|_| vector()).collect();
    let query = vector();
    let cluster = Cluster::start(&["--processes", "--groups", "1", "--nodes", "3"]);
    push(&cluster, &rows);
    let runtime = Runtime::new().expect("a runtime");
    let ready = cluster.ready();
    let router = ready["routers"][0]["pid"].as_u64().expect("a pid") as u32;
    let own = vec![("client", vec![std::process::id()]), ("nodes", cluster.node_pids(0))];
    let routed = [own.clone(), vec![("router", vec![router])]].concat();
    let scores: Vec<f64> = rows.iter().map(|row| dot(row, &query)).collect();
    let amount = Amount {
        pairs: rig::setting("KITH_BENCH_PAIRS", 150),
        blocks: rig::setting("KITH_BENCH_BLOCKS", 15),
        block: 20,
    };
    println!("{KEYS} vectors of {DIMENSIONS} f32 among {ROWS}, 3 nodes, {} questions in turn", amount.pairs);
    // The kernel counts only bytes that arrive over TCP.
    let tcp = TransportKind::FramedTcp;
    for (way, service, parts) in [
        ("fast client", runtime.block_on(reads::direct_over(&ready, tcp)), own),
        ("through a router", runtime.block_on(reads::routed_over(&ready, tcp)), routed),
    ] {
        let all = ComputePlan::default().operator(ComputeFunction::Dot(query.clone()), "vector", None);
        let best = all.clone().top_k("dot_vector", BEST);
        for (what, plan) in [("dot of each", all), ("dot, the best 20", best)] {
            println!("{way}, {what}");
            Comparison { runtime: &runtime, service: &service, plan, scores: &scores }.run(&parts, amount);
        }
    }
}

/// Serves the rows, as vectors by their number.
fn push(cluster: &Cluster, rows: &[Vec<f32>]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("rows.f32le");
    let bytes: Vec<u8> = rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    fs::write(&file, bytes).expect("room for the rows");
    cluster.must(&["store", "create", STORE, "--key", "id", "--value", "record"]);
    let (file, dims) = (file.to_str().expect("UTF-8"), DIMENSIONS.to_string());
    cluster.must(&["store", "push", STORE, file, "--format", "f32le", "--dims", &dims]);
}

fn dot(row: &[f32], query: &[f32]) -> f64 {
    row.iter().zip(query).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}

/// One plan, through one service.
struct Comparison<'a> {
    runtime: &'a Runtime,
    service: &'a Arc<dyn Service>,
    plan: ComputePlan,
    /// The scores of all rows.
    scores: &'a [f64],
}

impl Comparison<'_> {
    fn run(&self, parts: &Parts, amount: Amount) {
        let mut rng = StdRng::seed_from_u64(6);
        let questions: Vec<Vec<u64>> =
            (0..QUESTIONS).map(|_| (0..KEYS).map(|_| rng.random_range(0..ROWS)).collect()).collect();
        for ids in &questions {
            let (on_nodes, here) = (self.ask(ids, ComputeAt::Nodes).0, self.ask(ids, ComputeAt::Client).0);
            assert_eq!(on_nodes.best, here.best);
            assert!(on_nodes.answer.records == here.answer.records, "equal, bit for bit");
        }
        let bytes = [ComputeAt::Nodes, ComputeAt::Client].map(|at| {
            let before = received::now()?;
            questions.iter().for_each(|ids| drop(self.ask(ids, at)));
            Some((received::now()? - before) / QUESTIONS as u64)
        });
        let questions = &questions;
        let side = |name, at| Side {
            name,
            parts: parts.clone(),
            ask: Box::new(move |question, how| {
                let ids = &questions[question % QUESTIONS];
                let (answer, took) = self.ask(ids, at);
                self.check(ids, &answer, how);
                took
            }),
        };
        let mut sides = [side("on nodes", ComputeAt::Nodes), side("at the client", ComputeAt::Client)];
        let seen = take_turns(&mut sides, amount);
        for side in &seen {
            println!("  {}: {}", side.name, side.describe());
        }
        let (cpu, time) = (seen[0].cpu_to(&seen[1]), seen[0].time_to(&seen[1]));
        println!("  on nodes / at the client: CPU {}, time {}", interval_text(cpu), interval_text(time));
        if let [Some(on_nodes), Some(here)] = bytes {
            let less = 100.0 * (1.0 - on_nodes as f64 / here as f64);
            println!("  bytes received: {on_nodes} and {here}: {less:.1} % fewer");
        }
    }

    fn ask(&self, ids: &[u64], at: ComputeAt) -> (ComputeAnswer, Duration) {
        let keys = BatchKeys::Ids(ids.to_vec());
        let (query, options) = (ComputeQuery { plan: self.plan.clone(), at }, QueryOptions::default());
        let started = Instant::now();
        let answer = self.runtime.block_on(self.service.read_compute(STORE, &keys, &query, &options));
        (answer.expect("an answer"), started.elapsed())
    }

    fn check(&self, ids: &[u64], answer: &ComputeAnswer, how: Check) {
        assert_eq!(answer.answer.counts().found, KEYS as u64);
        let Some(best) = &answer.best else {
            let step = if how == Check::Whole { 1 } else { 50 };
            for index in (0..KEYS).step_by(step) {
                self.check_score(ids, answer, index);
            }
            return;
        };
        if how == Check::Whole {
            let mut scores: Vec<f64> = ids.iter().map(|id| self.scores[*id as usize]).collect();
            scores.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(best.len(), BEST as usize);
            for (position, score) in best.iter().zip(scores) {
                let got = self.check_score(ids, answer, *position as usize);
                assert!((got - score).abs() < TOLERANCE, "{got} where {score} is next");
            }
        }
    }

    /// The score of the key at `index`, which is the right one.
    fn check_score(&self, ids: &[u64], answer: &ComputeAnswer, index: usize) -> f64 {
        let id = ids[index];
        let Some(Record::Found(record)) = answer.answer.records.get(index) else { panic!("key {id}") };
        let view = RecordView::new(&answer.result, record).expect("a record of the result");
        let score = view.at(0).expect("undamaged").and_then(|field| field.as_f64()).expect("a number");
        assert!((score - self.scores[id as usize]).abs() < TOLERANCE, "key {id}: {score}");
        score
    }
}
