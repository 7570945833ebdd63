//! CPU time by process, and how it is told.

#[path = "../../../kith-bench/src/cpu.rs"]
mod by_process;

#[allow(unused_imports, reason = "each benchmark uses a part of it")]
pub use by_process::{Parts, now};

use std::time::Duration;

/// `client 41 us, router 80 us, nodes 95 us: 216 us` of what was used between two readings, for each of `queries`.
pub fn describe(parts: &Parts, before: &[Duration], after: &[Duration], queries: usize) -> String {
    let each: Vec<f64> = after
        .iter()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(*before).as_secs_f64() * 1e6 / queries as f64)
        .collect();
    let named = parts.iter().zip(&each).map(|((name, _), us)| format!("{name} {us:.0} us"));
    format!("{}: {:.0} us", named.collect::<Vec<_>>().join(", "), each.iter().sum::<f64>())
}
