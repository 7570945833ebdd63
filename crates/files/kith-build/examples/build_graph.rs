//! Builds the component of an edge file and prints the cost: `cargo run --release -p kith-build --example build_graph --
//! edges.csv.gz [partitions] [memory MiB] [threads]`.

use kith_build::{LoadOptions, LoadProgress, Progress, load_graph};
use kith_types::{PartitionCount, StoreVersion};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| arguments.get(index).map_or(Ok(default), |text| text.parse());
    let edges = arguments.first().ok_or("usage: build_graph EDGES [PARTITIONS] [MEMORY_MIB] [THREADS]")?;
    let partitions = PartitionCount::new(number(1, 24)? as u32).ok_or("1 to 65536 partitions")?;
    let out = tempfile::tempdir_in(std::env::var("KITH_OUT").unwrap_or_else(|_| ".".to_owned()))?;
    let options = LoadOptions {
        edges: vec![edges.into()],
        memory_bytes: number(2, 256)? << 20,
        threads: number(3, 2)?,
        ..LoadOptions::new("example", StoreVersion(1), partitions, out.path().to_owned())
    };

    let start = Instant::now();
    let checked = load_graph(&LoadOptions { dry_run: true, ..options.clone() }, &mut |_| {})?;
    let (lines, dry) = (checked.files[0].report.lines, start.elapsed());
    let cpu_before = cpu_seconds()?;

    let start = Instant::now();
    let mut read = Duration::ZERO;
    let report = load_graph(&options, &mut |progress| {
        if let Progress::Graph(LoadProgress::Reading(_)) = progress {
            read = start.elapsed();
        }
    })?;
    let elapsed = start.elapsed();

    let (manifest, built) = &report.components[0];
    let entries = 2 * built.edges;
    println!("{built:#?}\nmanifest {}", manifest.hash());
    println!("dry run   {:.2} s, {:.2} M lines/s", dry.as_secs_f64(), rate(lines, dry));
    println!("reading   {:.2} s of {:.2} s", read.as_secs_f64(), elapsed.as_secs_f64());
    println!("whole     {:.2} M edges/s", rate(built.edges, elapsed));
    println!("cpu       {:.2} s (and {cpu_before:.2} s of the dry run)", cpu_seconds()? - cpu_before);
    println!("peak rss  {} MiB", peak_rss_kib()? / 1024);
    let per_entry = |bytes: u64| bytes as f64 / entries.max(1) as f64;
    println!("adjacency {:.2} bytes per edge and direction", per_entry(built.adjacency_bytes));
    println!("postings  {:.2} bytes per pair", per_entry(built.postings_bytes));
    Ok(())
}

fn rate(edges: u64, elapsed: Duration) -> f64 {
    edges as f64 / elapsed.as_secs_f64() / 1e6
}

fn peak_rss_kib() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The user and system time of all threads, including those that have ended, from fields 14 and 15 of the process's stat
/// line.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("no process name")?.1;
    let ticks: Result<Vec<f64>, _> = after_name.split_whitespace().skip(11).take(2).map(str::parse).collect();
    // Linux has reported 100 ticks per second here on every platform for decades.
    Ok(ticks?.iter().sum::<f64>() / 100.0)
}
