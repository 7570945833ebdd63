//! `kith bench`: measures a cluster under load, the rates that it sustains, and builds of graphs. It is a client like
//! any other, and changes nothing in the cluster.
//!
//! ```text
//! workload ─► open loop: sent when due ─► settings in turn, slice by slice ─► tally, latency, CPU ─► report, table
//! ```
//!
//! - `graph`: the mix of Moolle's evaluation, or a record of queries, under several settings.
//! - `kv`: keys of a store at fixed rates. `calibrate`: the numbers by which controllers steer.
//! - `build`: a build as `kith load graph` makes it.
//! - `open_loop`, `workload`, `population`, `setting`: when and what is asked, of whom, and under which settings.
//! - `twin`: correct answers from the lists themselves, with which answers are compared.
//! - `latency`, `tally`, `stats`, `cpu`, `process`: what is measured.
//!
//! Compared settings take turns with equal queries (`docs/benchmarks.md`): on a shared machine, only results that were
//! measured side by side can be compared. Latency counts from the time at which a query was due.
//!
//! To add a benchmark, add a variant of [`BenchCommand`] and a module. Benchmarks that start other programs are in
//! `crates/top/kith/benches`.

mod build;
mod calibrate;
pub mod cpu;
mod graph;
mod kv;
pub mod latency;
pub mod open_loop;
mod population;
mod process;
mod setting;
pub mod stats;
mod tally;
mod twin;
mod workload;

pub use kv::draw;

use crate::{connect::TargetFlags, failure::Exit, output::Format};
use clap::Subcommand;

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Query a graph at fixed rates, under several settings in turn
    ///
    /// The loop is open: queries are sent when they are due, and latency counts from then. Every answer is checked.
    Graph(Box<graph::GraphBenchFlags>),
    /// Read keys of a store at fixed rates
    ///
    /// The loop is open: requests are sent when they are due, and latency counts from then.
    Kv(Box<kv::KvBenchFlags>),
    /// Measure the limits that controllers steer by, and write them as a router's settings
    Calibrate(calibrate::CalibrateFlags),
    /// Build an edge type from files, and print what that took
    Build(build::BuildBenchFlags),
}

/// Runs a benchmark.
///
/// # Errors
/// If the benchmark cannot be run. Failed queries and wrong answers are counted, and make the exit code 3.
pub async fn run(target: &TargetFlags, format: Format, command: BenchCommand) -> anyhow::Result<Exit> {
    match command {
        BenchCommand::Graph(flags) => graph::run(target, format, &flags).await,
        BenchCommand::Kv(flags) => kv::run(target, format, &flags).await,
        BenchCommand::Calibrate(flags) => calibrate::run(target, format, &flags).await,
        BenchCommand::Build(flags) => build::run(format, &flags),
    }
}
