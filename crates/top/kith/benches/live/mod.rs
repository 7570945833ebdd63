//! Benchmarks of the live graph: writes against the same transactions sent to MariaDB directly, cached lists against a
//! `get`, the second degree against the same graph loaded, reads of a store during writes, and the wait of writes for a new
//! leader.
//!
//! `KITH_BENCH_WHAT` selects some of `writes,ranges,second_degree,beside,leader`. `KITH_BENCH_WRITES` is the number of
//! single writes, `KITH_BENCH_ROUNDS` is the number of rounds with many writes in flight, `KITH_BENCH_QUERIES` is the number
//! of reads of each kind, `KITH_BENCH_GRAPH` is the graph whose second degree is read, `KITH_BENCH_PAIRS` is the number of
//! pairs of read periods with and without writes, and `KITH_BENCH_DEATHS` is the number of leaders that are killed.

mod beside;
mod direct;
mod leader;
mod ranges;
mod second_degree;
mod site;
mod writes;

const PARTS: &str = "writes,ranges,second_degree,beside,leader";

/// Runs the benchmark.
pub fn run() {
    let what = std::env::var("KITH_BENCH_WHAT").unwrap_or_else(|_| PARTS.to_owned());
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for part in what.split(',') {
        match part {
            "writes" => runtime.block_on(writes::run()),
            "ranges" => runtime.block_on(ranges::run()),
            "second_degree" => runtime.block_on(second_degree::run()),
            "beside" => runtime.block_on(beside::run()),
            "leader" => runtime.block_on(leader::run()),
            other => panic!("KITH_BENCH_WHAT: {other:?} is not one of {PARTS}"),
        }
    }
}
