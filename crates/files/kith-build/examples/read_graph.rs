//! Builds the component of an edge file, opens it and prints the cost of reads: `cargo run --release -p kith-build
//! --example read_graph -- edges.csv.gz [partitions]`.

use kith_build::{LoadOptions, load_graph, version_dir};
use kith_engine::{ComponentReader, GraphReader, verify_component};
use kith_schema::{EdgeSelector, NeighbourSource};
use kith_types::{Direction, PartitionCount, PartitionId, StoreVersion, fmix64};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// The keys of one request, as in a second-degree query.
const BATCH: usize = 500;
const BATCHES: u64 = 400;
const NEIGHBOURS: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let edges = arguments.next().ok_or("usage: read_graph EDGES [PARTITIONS]")?;
    let count = arguments.next().map_or(Ok(24), |text| text.parse())?;
    let partitions = PartitionCount::new(count).ok_or("1 to 65536 partitions")?;
    let out = tempfile::tempdir_in(std::env::var("KITH_OUT").unwrap_or_else(|_| ".".to_owned()))?;
    let options = LoadOptions {
        edges: vec![edges.into()],
        memory_bytes: 256 << 20,
        threads: 2,
        ..LoadOptions::new("example", StoreVersion(1), partitions, out.path().to_owned())
    };
    let report = load_graph(&options, &mut |_| {})?;
    let manifest = &report.components[0].0;
    let dir = version_dir(&options.component_dir(&manifest.component), manifest.version);

    let start = Instant::now();
    let report = verify_component(&dir, None)?;
    println!(
        "verify    {:.2} GB/s, {} damages",
        report.bytes as f64 / start.elapsed().as_secs_f64() / 1e9,
        report.damages.len()
    );
    let all: Vec<PartitionId> = partitions.iter().collect();
    let start = Instant::now();
    let component = Arc::new(ComponentReader::open(&dir, &all)?);
    println!("open      {:.2} ms for {} files", start.elapsed().as_secs_f64() * 1e3, manifest.files.len());
    component.warm(u64::MAX);
    let edge = EdgeSelector { kind: manifest.component.clone(), direction: Direction::Both, filter: None };
    let members = members_of(&component, &all)?;
    let source = GraphReader::new(partitions, vec![component])?;
    read_lists(&source, &edge, &members)?;
    read_postings(&source, &edge, &members, &all)
}

fn members_of(component: &ComponentReader, partitions: &[PartitionId]) -> Result<Vec<u64>, Box<dyn Error>> {
    let mut members = Vec::new();
    for &partition in partitions {
        members.extend(component.partition(partition).ok_or("every partition is open")?.members().ids()?);
    }
    Ok(members)
}

fn read_lists(source: &GraphReader, edge: &EdgeSelector, members: &[u64]) -> Result<(), Box<dyn Error>> {
    let (mut ids, mut lists) = (0u64, 0u64);
    let pick = |seed: u64| members[(fmix64(seed) % members.len() as u64) as usize];
    let batches: Vec<Vec<u64>> = (0..BATCHES)
        .map(|batch| (0..BATCH as u64).map(|key| pick(batch * BATCH as u64 + key + 1)).collect())
        .collect();
    let start = Instant::now();
    for keys in &batches {
        source.lists(edge, keys, &mut |_, list| {
            lists += 1;
            ids += list.map_or(0, |list| list.len() as u64);
            ControlFlow::Continue(())
        })?;
    }
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9;
    println!(
        "lists     {:.0} ns per list, {:.2} ns per id",
        nanoseconds / lists as f64,
        nanoseconds / ids as f64
    );
    let absent: Vec<u64> = (0..100_000).map(|key| fmix64(key) | 1 << 63).collect();
    let start = Instant::now();
    source.lists(edge, &absent, &mut |_, list| {
        assert!(list.is_none(), "ids beyond all members");
        ControlFlow::Continue(())
    })?;
    println!("absent    {:.0} ns per key", start.elapsed().as_secs_f64() * 1e9 / absent.len() as f64);
    Ok(())
}

fn read_postings(
    source: &GraphReader,
    edge: &EdgeSelector,
    members: &[u64],
    partitions: &[PartitionId],
) -> Result<(), Box<dyn Error>> {
    let mut found = Vec::new();
    let start = Instant::now();
    for seed in 0..NEIGHBOURS {
        let id = members[(fmix64(seed) % members.len() as u64) as usize];
        for &partition in partitions {
            source.postings(edge, partition, id, &mut found)?;
        }
    }
    let lookups = NEIGHBOURS as f64 * partitions.len() as f64;
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9;
    println!(
        "postings  {:.0} ns per partition, {:.1} keys each",
        nanoseconds / lookups,
        found.len() as f64 / lookups
    );
    Ok(())
}
