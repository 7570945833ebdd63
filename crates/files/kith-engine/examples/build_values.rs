//! Builds a store of generated rows, fetches and verifies it, and prints the cost:
//! `cargo run --release -p kith-engine --example build_values -- [million rows] [value bytes] [memory MiB] [threads] [partitions]`.
//!
//! It compares this with two floors. The first is `sort` with the same memory and threads over the same rows as lines,
//! followed by a synced copy. The second is the least that a build with everything in memory must do: sort the (position,
//! number) of every row and write the bytes once.

use kith_engine::{FolderSource, KeyType, VerifyDepth, verify_version};
use kith_files::{ValuesBuilder, ValuesOptions};
use kith_types::{PartitionCount, PartitionId, StoreVersion, fmix64, position_of_key};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| arguments.get(index).map_or(Ok(default), |text| text.parse());
    let rows = (arguments.first().map_or(Ok(1.0), |text| text.parse::<f64>())? * 1e6) as u64;
    let value_bytes = number(1, 1_024)?;
    let partitions = PartitionCount::new(number(4, 24)? as u32).ok_or("1 to 65536 partitions")?;
    let out = tempfile::tempdir_in(std::env::var("KITH_OUT").unwrap_or_else(|_| ".".to_owned()))?;
    let options = ValuesOptions {
        key: KeyType::Id,
        memory_bytes: number(2, 256)? << 20,
        threads: number(3, 2)?,
        ..ValuesOptions::new("example", StoreVersion(1), partitions, out.path().join("example"))
    };
    // The values are printable, so that a row can be a line.
    let noise: Vec<u8> =
        (0..value_bytes as u64 + 8 * 4_096).map(|at| b'0' + (fmix64(at) % 64) as u8).collect();
    let value = |id: u64| &noise[(fmix64(id) % 4_096) as usize * 8..][..value_bytes];

    let (start, cpu) = (Instant::now(), cpu_seconds()?);
    let mut builder = ValuesBuilder::new(options)?;
    for id in 0..rows {
        builder.row(&id.to_le_bytes(), value(id))?;
    }
    let read = start.elapsed();
    let (manifest, summary) = builder.finish(&mut |_| {})?;
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    println!("build     {wall:.2} s ({:.2} s of it taking rows), {summary:?}", read.as_secs_f64());
    println!("cpu       {cpu:.2} s, {:.0} ns per row", cpu * 1e9 / rows as f64);
    println!("peak rss  {} MiB", peak_rss_kib()? / 1024);
    let sorted = by_sort(out.path(), rows, &value, number(2, 256)?, number(3, 2)?)?;
    println!("sort, cp  {sorted:.2} s: build / (sort and copy) = {:.2}", wall / sorted);
    let (floor_wall, floor_cpu) = in_memory(out.path(), rows, &value)?;
    println!(
        "in memory {floor_wall:.2} s, {floor_cpu:.2} s of cpu: build / in memory = {:.2}",
        wall / floor_wall
    );

    let (built, target) = (out.path().join("example/1"), out.path().join("node/1"));
    let all: Vec<PartitionId> = partitions.iter().collect();
    let (start, cpu) = (Instant::now(), cpu_seconds()?);
    let source = FolderSource::new(&built);
    let each = &mut |_: &_| ControlFlow::Continue(());
    kith_engine::fetch(&source, &target, &all, &Default::default(), each)?;
    let bytes = manifest.bytes_of(&all) as f64 / 1e9;
    println!(
        "fetch     {:.2} GB/s, {:.2} GB per second of cpu",
        bytes / start.elapsed().as_secs_f64(),
        bytes / (cpu_seconds()? - cpu)
    );
    let start = Instant::now();
    let report = verify_version(&target, None, VerifyDepth::Deep)?;
    println!(
        "verify    {:.2} GB/s, {} damages",
        report.bytes as f64 / start.elapsed().as_secs_f64() / 1e9,
        report.damages.len()
    );
    Ok(())
}

/// The wall time of `sort` and a synced copy, without the time to write the lines.
fn by_sort<'a>(
    dir: &Path,
    rows: u64,
    value: &dyn Fn(u64) -> &'a [u8],
    memory_mib: usize,
    threads: usize,
) -> Result<f64, Box<dyn Error>> {
    let [lines, sorted, copy] = ["lines", "sorted", "copy"].map(|name| dir.join(name));
    let mut file = std::io::BufWriter::with_capacity(1 << 16, File::create(&lines)?);
    for id in 0..rows {
        write!(file, "{:016x} ", position_of_key(&id.to_le_bytes()))?;
        file.write_all(value(id))?;
        file.write_all(b"\n")?;
    }
    file.into_inner()?.sync_all()?;
    let start = Instant::now();
    let status = Command::new("sort")
        .env("LC_ALL", "C")
        .args(["-S", &format!("{memory_mib}M"), "--parallel", &threads.to_string(), "-T"])
        .arg(dir)
        .arg("-o")
        .args([&sorted, &lines])
        .status()?;
    if !status.success() {
        return Err("sort failed".into());
    }
    std::fs::copy(&sorted, &copy)?;
    File::open(&copy)?.sync_all()?;
    let took = start.elapsed().as_secs_f64();
    for path in [lines, sorted, copy] {
        std::fs::remove_file(path)?;
    }
    Ok(took)
}

/// The wall time and CPU time of sorting the positions of all rows and writing their bytes, synced.
fn in_memory<'a>(
    dir: &Path,
    rows: u64,
    value: &dyn Fn(u64) -> &'a [u8],
) -> Result<(f64, f64), Box<dyn Error>> {
    let (start, cpu) = (Instant::now(), cpu_seconds()?);
    let mut order: Vec<(u64, u64)> = (0..rows).map(|id| (position_of_key(&id.to_le_bytes()), id)).collect();
    order.sort_unstable();
    let mut file = std::io::BufWriter::with_capacity(1 << 16, File::create(dir.join("floor"))?);
    for (_, id) in order {
        file.write_all(&id.to_le_bytes())?;
        file.write_all(value(id))?;
    }
    file.into_inner()?.sync_all()?;
    Ok((start.elapsed().as_secs_f64(), cpu_seconds()? - cpu))
}

fn peak_rss_kib() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// The user and system time of all threads, from fields 14 and 15 of the process's stat line.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("no process name")?.1;
    let ticks: Result<Vec<f64>, _> = after_name.split_whitespace().skip(11).take(2).map(str::parse).collect();
    // Linux has reported 100 ticks per second here on every platform for decades.
    Ok(ticks?.iter().sum::<f64>() / 100.0)
}
