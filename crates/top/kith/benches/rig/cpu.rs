//! CPU time by process, and its form in reports.

pub use kith_terminal::bench::cpu::{Parts, now};

use std::time::Duration;

/// The results of two readings of CPU time, before and after something.
pub type Reading = (Vec<Duration>, Vec<Duration>);

/// The CPU time of each part in all readings together.
pub fn sums(readings: &[Reading]) -> Vec<Duration> {
    let parts = readings.first().map_or(0, |(before, _)| before.len());
    let used =
        |part: usize| readings.iter().map(move |(before, after)| after[part].saturating_sub(before[part]));
    (0..parts).map(|part| used(part).sum()).collect()
}

/// Formats the CPU time of each part per query, such as `client 41 us, router 80 us, nodes 95 us: 216 us`.
pub fn describe(parts: &Parts, used: &[Duration], queries: usize) -> String {
    let each: Vec<f64> = used.iter().map(|used| used.as_secs_f64() * 1e6 / queries as f64).collect();
    let named = parts.iter().zip(&each).map(|((name, _), us)| format!("{name} {us:.0} us"));
    format!("{}: {:.0} us", named.collect::<Vec<_>>().join(", "), each.iter().sum::<f64>())
}
