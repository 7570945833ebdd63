//! The highest rate that is sustained: rates rise until the 99th percentile leaves its plateau, answers lag behind
//! or fail; then the gap is halved a few times. Decides only; `rates` measures.

use crate::failure::Failure;
use serde::Serialize;

/// The first rate tried, per second: any machine sustains it.
const RATE_FIRST: f64 = 250.0;
/// How much higher the next one is.
const RISE: f64 = 1.5;
/// Rates above this are not tried.
const RATE_MAX: f64 = 500_000.0;
/// How often the gap between the last good rate and the first bad one is halved.
const HALVINGS: usize = 3;
/// Of the queries that are due, at least so many must be answered in time for a rate to be sustained.
const ANSWERED_MIN: f64 = 0.93;
/// The knee: a 99th percentile that many times the least one so far …
const P99_RISE: f64 = 8.0;
/// … and at least this: below it, a busy machine's hiccups are taken for a knee.
const P99_US_MIN: u64 = 20_000;

/// What was seen at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Requests per second that were due.
    pub due: f64,
    /// Requests per second that were answered.
    pub answered: f64,
    pub p99_us: u64,
    pub errors: u64,
    /// Set by [`Search::note`].
    pub sustained: bool,
}

/// The search for one limit.
#[derive(Clone, Debug, Default)]
pub struct Search {
    pub steps: Vec<Step>,
    halvings: usize,
}

impl Search {
    /// The rate to try next; `None` when the limit is known.
    pub fn next_rate(&mut self) -> Option<f64> {
        let best = self.steps.iter().filter(|step| step.sustained).map(|step| step.due).fold(0.0, f64::max);
        let failed = self.steps.iter().filter(|step| !step.sustained).map(|step| step.due);
        let worst = failed.filter(|rate| best < *rate).fold(f64::INFINITY, f64::min);
        if worst.is_finite() {
            if self.halvings == HALVINGS {
                return None;
            }
            self.halvings += 1;
            return Some(f64::midpoint(best, worst));
        }
        let rate = if best == 0.0 { RATE_FIRST } else { best * RISE };
        (rate <= RATE_MAX).then_some(rate)
    }

    /// Takes in what was seen. A rate that was not sustained is worth a second try before: on a shared machine a
    /// neighbour's moment looks like a knee.
    pub fn note(&mut self, mut step: Step) {
        step.sustained = self.is_sustained(&step);
        self.steps.push(step);
    }

    /// Whether that is a rate kept up.
    pub fn is_sustained(&self, step: &Step) -> bool {
        let base = self.steps.iter().map(|step| step.p99_us).fold(step.p99_us, u64::min);
        let knee = ((base as f64 * P99_RISE) as u64).max(P99_US_MIN);
        step.errors == 0 && ANSWERED_MIN * step.due <= step.answered && step.p99_us <= knee
    }
}

/// The highest rate that was sustained, as it was answered.
///
/// # Errors
/// If not even the lowest was.
pub fn limit(steps: &[Step]) -> Result<f64, Failure> {
    let sustained = steps.iter().filter(|step| step.sustained).map(|step| step.answered);
    sustained.reduce(f64::max).map(f64::round).ok_or_else(|| {
        let message = format!("not even {RATE_FIRST} requests per second are sustained");
        Failure::new("not_sustained", message, "calibrate on a machine that does little else")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system that answers up to `capacity` and queues above it.
    fn run(capacity: f64) -> Search {
        let mut search = Search::default();
        while let Some(due) = search.next_rate() {
            let p99_us = if due <= capacity { 900 } else { 400_000 };
            search.note(Step { due, answered: due.min(capacity), p99_us, errors: 0, sustained: false });
            assert!(search.steps.len() < 40, "the search ends");
        }
        search
    }

    #[test]
    fn the_limit_is_found_within_a_few_percent() {
        for capacity in [300.0, 4_321.0, 77_000.0] {
            let limit = limit(&run(capacity).steps).unwrap();
            assert!(limit <= capacity && 0.93 * capacity <= limit, "{limit} of {capacity}");
        }
    }

    #[test]
    fn errors_end_the_rise_and_a_dead_system_is_told() {
        let mut search = Search::default();
        let mut tries = 0;
        while let Some(due) = search.next_rate() {
            tries += 1;
            search.note(Step { due, answered: due, p99_us: 500, errors: 1, sustained: false });
        }
        assert_eq!(tries, 1 + HALVINGS);
        assert_eq!(limit(&search.steps).unwrap_err().code, "not_sustained");
    }
}
