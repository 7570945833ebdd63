//! Benchmarks of the whole system, which start what they compare: `cargo bench -p kith --bench system NAME`, with one of
//! the names below. `docs/benchmarks.md` describes them, and `scripts/bench.sh` runs all of them. They are one program,
//! because each program would be linked with all of Kith.

mod calm;
mod fan_out;
mod gremlin;
mod large_reads;
mod live;
mod memory;
mod read_compute;
mod resp;
mod rig;
mod rival;
mod second_degree;
mod streams;
mod tail;

// Cargo tells only the tests and benchmarks of this package where the binary is, so no crate can hold what starts clusters.
#[path = "../tests/system/support/mod.rs"]
mod support;

/// The allocator of clients, as in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BENCHMARKS: [(&str, fn()); 12] = [
    ("calm", calm::run),
    ("fan_out", fan_out::run),
    ("gremlin", gremlin::run),
    ("large_reads", large_reads::run),
    ("live", live::run),
    ("memory", memory::run),
    ("read_compute", read_compute::run),
    ("resp", resp::run),
    ("rival", rival::run),
    ("second_degree", second_degree::run),
    ("streams", streams::run),
    ("tail", tail::run),
];

fn main() {
    if rig::gather::serve_if_started_for_it() {
        return;
    }
    // Cargo adds `--bench`.
    let name = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    match BENCHMARKS.iter().find(|(known, _)| Some(*known) == name.as_deref()) {
        Some((_, run)) => run(),
        None => {
            let names = BENCHMARKS.map(|(name, _)| name).join(", ");
            eprintln!("name a benchmark, as in `cargo bench -p kith --bench system tail`: {names}");
            std::process::exit(2);
        }
    }
}
