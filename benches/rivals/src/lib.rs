//! The parts that the comparisons share: processor time, ratios, and the rivals themselves.

pub mod avro;
pub mod floor;
pub mod plain_table;
#[path = "../../../crates/top/kith-terminal/src/bench/stats.rs"]
pub mod stats;

use rustix::time::{ClockId, clock_gettime};
use stats::median_interval;
use std::time::Duration;

/// The time that this thread had a processor.
pub fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

/// Reads a number from the environment, which says how much to measure.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The name of a side, and the work to be measured. All sides must return the same number.
pub type Side<'a> = (&'static str, Box<dyn FnMut(usize) -> u64 + 'a>);

/// Runs every side in each round, each time with another one first. Returns the nanoseconds of processor time per item,
/// by side and round.
///
/// # Panics
/// If two sides disagree.
pub fn rounds(sides: &mut [Side<'_>], rounds: usize, pieces: usize) -> Vec<Vec<f64>> {
    let mut took = vec![Vec::new(); sides.len()];
    // The first round warms up.
    for round in 0..=rounds {
        let mut seen = None;
        for turn in 0..sides.len() {
            let index = (round + turn) % sides.len();
            let (name, run) = &mut sides[index];
            let start = processor_time();
            let sum = run(round);
            let each = (processor_time() - start).as_secs_f64() * 1e9 / pieces as f64;
            assert_eq!(*seen.get_or_insert(sum), sum, "{name} answers as the others do");
            if 0 < round {
                took[index].push(each);
            }
        }
    }
    took
}

/// Prints what each side took, and the ratio of the first to it.
pub fn print(sides: &[Side<'_>], took: &[Vec<f64>]) {
    for ((name, _), theirs) in sides.iter().zip(took) {
        let middle = median_interval(theirs).expect("there are rounds").median;
        let ratios: Vec<f64> = took[0].iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        let ratio = median_interval(&ratios).expect("there are rounds");
        println!(
            "  {name}: {middle:.1} ns; {} / it: {:.3} ({:.3} to {:.3})",
            sides[0].0, ratio.median, ratio.low, ratio.high
        );
    }
}
