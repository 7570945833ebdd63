//! `kith bench build`: builds an edge type as `kith load graph` does, in a folder that is removed afterwards.

use super::process;
use crate::{
    failure::{Exit, Failure},
    output::{self, Format},
    table::{Side, bytes, count, table},
};
use anyhow::Context;
use clap::Args;
use kith_build::{LoadOptions, MEMORY_BYTES_DEFAULT, load_graph};
use kith_types::{PartitionCount, StoreVersion};
use serde::Serialize;
use std::{path::PathBuf, time::Instant};

#[derive(Debug, Args)]
pub struct BuildBenchFlags {
    /// Files of edges, one edge per line
    #[arg(long, value_name = "FILE", required = true)]
    edges: Vec<PathBuf>,
    /// Edges are directed
    #[arg(long)]
    directed: bool,
    /// Partition counts to build for
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "24,1536")]
    partitions: Vec<u32>,
    /// Threads to sort and write with [default: the machine's cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Number of builds for each partition count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Where to build [default: the folder for temporary files]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// The result of one build. Field names are a contract: `docs/benchmarks.md`.
#[derive(Clone, Debug, Serialize)]
struct Build {
    partitions: u32,
    edges: u64,
    members: u64,
    seconds: f64,
    edges_per_second: f64,
    cpu_seconds: Option<f64>,
    peak_memory_bytes: Option<u64>,
    /// The size of the adjacency lists per edge and direction.
    adjacency_bytes_per_edge: f64,
    postings_bytes_per_edge: f64,
    bytes: u64,
}

/// Runs the builds and prints the results.
///
/// # Errors
/// If the files are refused or the folder cannot be written.
pub fn run(format: Format, flags: &BuildBenchFlags) -> anyhow::Result<Exit> {
    let mut builds = Vec::new();
    for _ in 0..flags.rounds {
        for &partitions in &flags.partitions {
            let count = PartitionCount::new(partitions).ok_or_else(|| {
                let message = format!("{partitions} is not a valid number of partitions");
                Failure::usage(message, format!("give 1 to {}", PartitionCount::MAX))
            })?;
            builds.push(build(flags, count)?);
        }
    }
    builds.sort_by_key(|build| build.partitions);
    output::print(format, &builds, |builds| render(builds))?;
    Ok(Exit::Done)
}

fn build(flags: &BuildBenchFlags, partitions: PartitionCount) -> anyhow::Result<Build> {
    let parent = flags.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new().prefix("kith-bench-").tempdir_in(&parent);
    let folder = folder.with_context(|| format!("make a folder in {}", parent.display()))?;
    let mut options = LoadOptions::new("bench", StoreVersion(1), partitions, folder.path().to_owned());
    options.edges.clone_from(&flags.edges);
    options.directed = flags.directed;
    options.memory_bytes = MEMORY_BYTES_DEFAULT;
    options.threads = flags.threads.map_or(options.threads, usize::from);
    process::reset_peak_memory();
    let (started, cpu) = (Instant::now(), process::cpu());
    let report = load_graph(&options, &mut |_| {})?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = process::cpu().zip(cpu).map(|(now, before)| (now - before).as_secs_f64());
    let (_, summary) = report.components.first().context("a build makes a component")?;
    let directions = 2.0 * summary.edges.max(1) as f64;
    Ok(Build {
        partitions: partitions.get(),
        edges: summary.edges,
        members: summary.members,
        seconds,
        edges_per_second: summary.edges as f64 / seconds,
        cpu_seconds,
        peak_memory_bytes: process::peak_memory(),
        adjacency_bytes_per_edge: summary.adjacency_bytes as f64 / directions,
        postings_bytes_per_edge: summary.postings_bytes as f64 / directions,
        bytes: summary.bytes,
    })
}

fn render(builds: &[Build]) -> String {
    let columns = [
        ("partitions", Side::Right),
        ("edges", Side::Right),
        ("seconds", Side::Right),
        ("edges/s", Side::Right),
        ("CPU seconds", Side::Right),
        ("peak memory", Side::Right),
        ("adjacency B", Side::Right),
        ("postings B", Side::Right),
        ("files", Side::Right),
    ];
    let rows = builds.iter().map(|build| {
        vec![
            count(build.partitions.into()),
            count(build.edges),
            format!("{:.2}", build.seconds),
            count(build.edges_per_second as u64),
            build.cpu_seconds.map_or(String::new(), |seconds| format!("{seconds:.2}")),
            build.peak_memory_bytes.map_or(String::new(), bytes),
            format!("{:.2}", build.adjacency_bytes_per_edge),
            format!("{:.2}", build.postings_bytes_per_edge),
            bytes(build.bytes),
        ]
    });
    format!("{}\nB: bytes per edge and direction\n", table(&columns, rows))
}
