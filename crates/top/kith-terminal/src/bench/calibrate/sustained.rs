//! Finds the highest rate that is sustained. The rate is raised until the 99th percentile leaves its plateau, or answers
//! lag behind or fail. Then the gap is halved a few times. A limit is checked with two further rates, and searched for
//! again while it is in doubt, because a busy moment of the machine looks like a limit. This module only decides; `rates`
//! measures.

use crate::failure::Failure;
use kith_types::ErrorCode;
use serde::{Serialize, Serializer};
use std::fmt;

/// The first rate that is tried, per second. Any machine sustains it.
const RATE_FIRST: f64 = 250.0;
/// The factor from one rate to the next.
const RISE: f64 = 1.5;
/// The highest rate that is tried.
const RATE_MAX: f64 = 500_000.0;
/// The number of times that the search halves the gap between the last sustained rate and the first one that was not.
const HALVINGS: usize = 3;
/// The share of due queries that must be answered in time for a rate to be sustained.
const ANSWERED_MIN: f64 = 0.93;
/// The multiple of the least 99th percentile so far at which a rate is past the knee, if it is also at least
/// [`P99_US_MIN`].
const P99_RISE: f64 = 8.0;
/// The least 99th percentile, in microseconds, at which a rate can be past the knee. Lower values could be hiccups of a
/// busy machine.
const P99_US_MIN: u64 = 20_000;

/// The share of a limit at which it is checked, which must be sustained.
const HELD_SHARE: f64 = 0.8;
/// The multiple of a limit at which it is checked, which must not be sustained. Both checks are further from the limit than
/// the results of two searches are from each other.
const EXCEEDED_SHARE: f64 = 1.25;
/// A limit below this share of an earlier sustained rate is in doubt.
const SEEN_SHARE: f64 = 0.8;
/// The maximum number of searches for a limit that is in doubt.
const ATTEMPTS_MAX: u32 = 3;

/// The result at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateResult {
    /// Requests per second that were due.
    pub due: f64,
    /// Requests per second that were answered.
    pub answered: f64,
    pub p99_us: u64,
    pub errors: u64,
    /// Whether the rate was sustained. [`Search::note`] sets it.
    pub sustained: bool,
    /// Whether this step checks the limit that the earlier steps found. [`Search::note`] sets it.
    pub check: bool,
}

/// The reason why a limit is in doubt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// Even the first rate was not sustained.
    NothingSustained,
    /// The limit is lower than a rate that was seen at another time.
    BelowSeen { limit: f64, seen: f64 },
    /// A lower rate was not sustained a moment later.
    NotHeld { limit: f64, rate: f64 },
    /// A higher rate was sustained a moment later.
    Exceeded { limit: f64, rate: f64 },
}

/// The reason why the limit that `steps` found, in due requests per second, is in doubt; `None` if it is not. `seen` is
/// the number of requests per second that were answered at another time.
pub fn doubt(steps: &[RateResult], seen: f64) -> Option<Doubt> {
    let limit = limit_due(steps);
    if limit == 0.0 {
        return Some(Doubt::NothingSustained);
    }
    if limit < SEEN_SHARE * seen {
        return Some(Doubt::BelowSeen { limit, seen });
    }
    steps.iter().filter(|step| step.check).find_map(|check| match check.sustained {
        false if check.due < limit => Some(Doubt::NotHeld { limit, rate: check.due }),
        true if limit < check.due => Some(Doubt::Exceeded { limit, rate: check.due }),
        _ => None,
    })
}

/// The highest rate that was sustained before the checks; 0 if there is none.
fn limit_due(steps: &[RateResult]) -> f64 {
    let sustained = steps.iter().filter(|step| step.sustained && !step.check);
    sustained.map(|step| step.due).fold(0.0, f64::max)
}

/// The search for one limit.
#[derive(Clone, Debug)]
pub struct Search {
    /// The steps of the last attempt.
    pub steps: Vec<RateResult>,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of requests per second that were answered at another time.
    seen: f64,
    halvings: usize,
    /// Whether the limit is being checked.
    is_checking: bool,
}

impl Search {
    /// Begins a search for a limit that is known to be above `seen` requests per second.
    pub fn new(seen: f64) -> Self {
        Self { steps: Vec::new(), attempts: 1, seen, halvings: 0, is_checking: false }
    }

    /// The next rate to try; `None` when the limit is known, or was in doubt too often.
    pub fn next_rate(&mut self) -> Option<f64> {
        if !self.is_checking {
            let rate = self.next_rising();
            self.is_checking = rate.is_none();
            if rate.is_some() {
                return rate;
            }
        }
        if self.doubt().is_none() {
            return self.next_check();
        }
        if self.attempts == ATTEMPTS_MAX {
            return None;
        }
        *self = Self { attempts: self.attempts + 1, ..Self::new(self.seen) };
        self.next_rising()
    }

    /// The reason why the limit is in doubt; `None` if it is not.
    pub fn doubt(&self) -> Option<Doubt> {
        doubt(&self.steps, self.seen)
    }

    fn next_rising(&mut self) -> Option<f64> {
        let best = limit_due(&self.steps);
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

    fn next_check(&self) -> Option<f64> {
        let checks = self.steps.iter().filter(|step| step.check).count();
        [HELD_SHARE, EXCEEDED_SHARE].get(checks).map(|share| share * limit_due(&self.steps))
    }

    /// Adds the result at a rate. A rate that was not sustained should be tried a second time before, because a busy moment
    /// of a shared machine looks like a knee.
    pub fn note(&mut self, mut step: RateResult) {
        step.sustained = self.is_sustained(&step);
        step.check = self.is_checking;
        self.steps.push(step);
    }

    /// Whether the rate was sustained.
    pub fn is_sustained(&self, step: &RateResult) -> bool {
        let base = self.steps.iter().map(|step| step.p99_us).fold(step.p99_us, u64::min);
        let knee = ((base as f64 * P99_RISE) as u64).max(P99_US_MIN);
        step.errors == 0 && ANSWERED_MIN * step.due <= step.answered && step.p99_us <= knee
    }
}

/// The highest rate that was sustained before the checks, in answered requests per second.
///
/// # Errors
/// If even the lowest rate was not sustained.
pub fn limit(steps: &[RateResult]) -> Result<f64, Failure> {
    let sustained = steps.iter().filter(|step| step.sustained && !step.check).map(|step| step.answered);
    sustained.reduce(f64::max).map(f64::round).ok_or_else(|| {
        let message = format!("{}, {ATTEMPTS_MAX} times", Doubt::NothingSustained);
        Failure::new(ErrorCode::NotSustained, message, "calibrate on a machine that is otherwise idle")
    })
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Doubt::NothingSustained => write!(f, "not even {RATE_FIRST} requests/s were sustained"),
            Doubt::BelowSeen { limit, seen } => {
                write!(f, "only {limit:.0} requests/s were sustained, but {seen:.0} at another moment")
            }
            Doubt::NotHeld { limit, rate } => {
                write!(f, "{limit:.0} requests/s were sustained, but not even {rate:.0} a moment later")
            }
            Doubt::Exceeded { limit, rate } => {
                write!(f, "only {limit:.0} requests/s were sustained, but {rate:.0} a moment later")
            }
        }
    }
}

impl Serialize for Doubt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(due: f64, sustained: bool, check: bool) -> RateResult {
        let (answered, p99_us) = if sustained { (due, 900) } else { (due / 2.0, 400_000) };
        RateResult { due, answered, p99_us, errors: 0, sustained, check }
    }

    /// Simulates a system that answers up to `capacity` requests and queues those above it. `is_busy` tells for which tries
    /// the machine is busy, so that nothing is sustained.
    fn run(capacity: f64, seen: f64, is_busy: impl Fn(usize) -> bool) -> Search {
        let mut search = Search::new(seen);
        let mut tries = 0;
        while let Some(due) = search.next_rate() {
            search.note(step(due, due <= capacity && !is_busy(tries), false));
            tries += 1;
            assert!(tries < 120, "the search ends");
        }
        search
    }

    #[test]
    fn the_limit_is_found_within_a_few_percent() {
        for capacity in [300.0, 4_321.0, 77_000.0] {
            let search = run(capacity, 0.0, |_| false);
            let limit = limit(&search.steps).unwrap();
            assert!(limit <= capacity && 0.93 * capacity <= limit, "{limit} of {capacity}");
            assert_eq!((search.attempts, search.doubt()), (1, None));
        }
    }

    #[test]
    fn a_limit_that_a_busy_moment_cut_is_searched_for_again() {
        // Busy at the first rate, at the rates that halve the gap, at one in the middle of the rise, and at the check.
        for busy in [0..1, 0..4, 3..4, 5..9, 12..13] {
            let search = run(4_321.0, 0.0, |tries| busy.contains(&tries));
            let limit = limit(&search.steps).unwrap();
            assert!((4_000.0..=4_321.0).contains(&limit), "{limit} while busy at {busy:?}");
            assert_eq!((search.attempts, search.doubt()), (2, None), "busy at {busy:?}");
        }
    }

    #[test]
    fn a_machine_that_is_always_busy_is_given_up_and_the_limit_in_doubt() {
        let search = run(4_321.0, 0.0, |tries| tries % 4 == 3);
        assert_eq!(search.attempts, ATTEMPTS_MAX);
        assert!(search.doubt().is_some());
        let dead = run(4_321.0, 0.0, |_| true);
        assert_eq!((dead.attempts, dead.doubt()), (ATTEMPTS_MAX, Some(Doubt::NothingSustained)));
        assert_eq!(limit(&dead.steps).unwrap_err().code, ErrorCode::NotSustained);
    }

    #[test]
    fn a_node_that_answered_more_before_has_a_higher_limit() {
        // Six nodes together had answered 9,156 requests per second of a client.
        let steps = [step(250.0, false, false), step(182.0, true, false), step(250.0, false, false)];
        let seen = 9_156.0 / 6.0;
        assert_eq!(doubt(&steps, seen), Some(Doubt::BelowSeen { limit: 182.0, seen }));
        assert_eq!(doubt(&steps, 200.0), None, "a fifth less is chance");
        let search = run(182.0, seen, |_| false);
        assert_eq!((search.attempts, search.doubt().is_some()), (ATTEMPTS_MAX, true));
    }

    #[test]
    fn a_limit_must_hold_below_it_and_not_above() {
        let found = [step(1_000.0, true, false), step(1_500.0, false, false)];
        let checked = |below, above| {
            doubt(&[&found[..], &[step(800.0, below, true), step(1_250.0, above, true)]].concat(), 0.0)
        };
        assert_eq!(checked(true, false), None);
        assert_eq!(checked(false, false), Some(Doubt::NotHeld { limit: 1_000.0, rate: 800.0 }));
        assert_eq!(checked(true, true), Some(Doubt::Exceeded { limit: 1_000.0, rate: 1_250.0 }));
        assert_eq!(
            checked(true, true).unwrap().to_string(),
            "only 1000 requests/s were sustained, but 1250 a moment later"
        );
    }

    #[test]
    fn errors_end_the_rise() {
        let mut search = Search::new(0.0);
        let mut tries = 0;
        while let Some(due) = search.next_rate() {
            tries += 1;
            search.note(RateResult { errors: 1, ..step(due, true, false) });
        }
        assert_eq!(tries, (1 + HALVINGS) * ATTEMPTS_MAX as usize);
        assert_eq!(limit(&search.steps).unwrap_err().code, ErrorCode::NotSustained);
    }
}
