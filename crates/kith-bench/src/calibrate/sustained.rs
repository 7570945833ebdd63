//! The highest rate that is sustained: rates rise until the 99th percentile leaves its plateau, answers lag behind
//! or fail; then the gap is halved a few times. A limit is checked by two more rates, and searched for again while it is
//! not to be trusted: a busy moment of the machine looks like one. Decides only; `rates` measures.

use crate::failure::Failure;
use kith_types::ErrorCode;
use serde::{Serialize, Serializer};
use std::fmt;

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

/// A limit is checked at this fraction of it, which must be sustained.
const HELD_SHARE: f64 = 0.8;
/// A limit is checked at this multiple of it, which must not be sustained. Both checks are further from the limit than two
/// searches are from each other.
const EXCEEDED_SHARE: f64 = 1.25;
/// A limit below this fraction of what was sustained before is not trusted.
const SEEN_SHARE: f64 = 0.8;
/// How often a limit is searched for, until it is to be trusted.
const ATTEMPTS_MAX: u32 = 3;

/// What was seen at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateResult {
    /// Requests per second that were due.
    pub due: f64,
    /// Requests per second that were answered.
    pub answered: f64,
    pub p99_us: u64,
    pub errors: u64,
    /// Set by [`Search::note`].
    pub sustained: bool,
    /// Whether it checks the limit that the steps before came to. Set by [`Search::note`].
    pub check: bool,
}

/// Why a limit is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Doubt {
    /// Not even the first rate was sustained.
    NothingSustained,
    /// It is less than was seen at other times.
    BelowSeen { limit: f64, seen: f64 },
    /// A moment later, less was not sustained.
    NotHeld { limit: f64, rate: f64 },
    /// A moment later, more was sustained.
    Exceeded { limit: f64, rate: f64 },
}

/// Why the limit that `steps` came to, in requests due per second, is not to be trusted; `None`: it is. `seen` are
/// requests per second that were answered at another time.
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

/// The highest rate that was sustained before it was checked; 0: none.
fn limit_due(steps: &[RateResult]) -> f64 {
    let sustained = steps.iter().filter(|step| step.sustained && !step.check);
    sustained.map(|step| step.due).fold(0.0, f64::max)
}

/// The search for one limit.
#[derive(Clone, Debug)]
pub struct Search {
    /// Those of the last attempt.
    pub steps: Vec<RateResult>,
    /// How often it was begun.
    pub attempts: u32,
    /// Requests per second that were answered at another time.
    seen: f64,
    halvings: usize,
    /// Whether the limit is being checked.
    is_checking: bool,
}

impl Search {
    /// A search for a limit of which `seen` requests per second are known to be below it.
    pub fn new(seen: f64) -> Self {
        Self { steps: Vec::new(), attempts: 1, seen, halvings: 0, is_checking: false }
    }

    /// The rate to try next; `None` when the limit is known, or was in doubt too often.
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

    /// Why the limit is not to be trusted.
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

    /// Takes in what was seen. A rate that was not sustained is worth a second try before: on a shared machine a
    /// neighbour's moment looks like a knee.
    pub fn note(&mut self, mut step: RateResult) {
        step.sustained = self.is_sustained(&step);
        step.check = self.is_checking;
        self.steps.push(step);
    }

    /// Whether that is a rate kept up.
    pub fn is_sustained(&self, step: &RateResult) -> bool {
        let base = self.steps.iter().map(|step| step.p99_us).fold(step.p99_us, u64::min);
        let knee = ((base as f64 * P99_RISE) as u64).max(P99_US_MIN);
        step.errors == 0 && ANSWERED_MIN * step.due <= step.answered && step.p99_us <= knee
    }
}

/// The highest rate that was sustained before it was checked, as it was answered.
///
/// # Errors
/// If not even the lowest was.
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

    /// A system that answers up to `capacity` and queues above it; `is_busy` says at which tries the machine does something
    /// else, so that nothing is sustained.
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
        // The first rate and those that halve the gap; one in the middle of the rise; the check itself.
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
        // A client had 9,156 requests a second answered by six nodes.
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
