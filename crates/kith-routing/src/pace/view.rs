//! Reads before and beside a fetch: what they say of the rate that it was fetched at.

use crate::Latencies;
use kith_types::Timestamp;
use std::time::Duration;

/// Bound of a window's age: with so few reads in so long, there is hardly anybody to give way to.
const WINDOW_MAX: Duration = Duration::from_secs(10);
/// Shorter windows would judge a rate that has only begun to hold.
const WINDOW_MIN: Duration = Duration::from_millis(500);
/// Reads that a window needs for a p99; 1 % of them are enough to tell a rise from chance.
const WINDOW_READS: u64 = 500;
/// Of fewer reads, the median is compared, if there are so many.
const FEW_READS: u64 = 5;
/// Reads from which the steady p99 is taken: twice a window's, as everything is compared with it.
const STEADY_READS: u64 = 2 * WINDOW_READS;
/// After so long, with enough reads, the steady p99 is that of newer reads.
const STEADY_AGE: Duration = Duration::from_secs(30);

/// Reads while nothing is fetched, in two generations: the older one is forgotten when the newer one is old.
#[derive(Clone, Debug, Default)]
pub(super) struct Steady {
    older: Latencies,
    newer: Latencies,
    since: Timestamp,
}

/// Reads beside a fetch, seen from one side.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// What it must not raise; `None`: nobody read before it.
    pub(super) p99_steady: Option<Duration>,
    window: Window,
    /// Of the last window that had enough reads.
    pub(super) p99: Option<Duration>,
    /// Of the last window. A side with few reads is heard seldom: until then it stands by what it said.
    pub(super) verdict: Verdict,
}

#[derive(Clone, Debug)]
struct Window {
    reads: Latencies,
    since: Timestamp,
}

/// What a window says of the rate that it was fetched at, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Bearable,
    /// Above the bound, but by no more than chance may do.
    Unclear,
    TooFast,
}

impl Steady {
    pub(super) fn on(&mut self, reads: &Latencies, now: Timestamp) {
        self.newer.add(reads);
        if STEADY_AGE <= now.since(self.since) && STEADY_READS <= self.newer.count() {
            self.older = std::mem::take(&mut self.newer);
            self.since = now;
        }
    }

    pub(super) fn p99(&self) -> Option<Duration> {
        let mut all = self.older.clone();
        all.add(&self.newer);
        all.per_mille(990).filter(|_| STEADY_READS <= all.count())
    }
}

impl Window {
    fn new(since: Timestamp) -> Self {
        Self { reads: Latencies::default(), since }
    }

    fn is_full(&self, now: Timestamp) -> bool {
        let age = now.since(self.since);
        WINDOW_MAX <= age || (WINDOW_MIN <= age && WINDOW_READS <= self.reads.count())
    }

    /// Whether more reads than 1 in 100 took longer than `bound`, and surely so: by two standard deviations.
    fn verdict(&self, bound: Duration) -> Verdict {
        let (reads, above) = (self.reads.count(), self.reads.above(bound));
        if reads < WINDOW_READS {
            let most = FEW_READS <= reads && reads < 2 * above;
            return if most { Verdict::TooFast } else { Verdict::Bearable };
        }
        let expected = reads as f64 / 100.0;
        match above as f64 {
            above if expected + 2.0 * expected.sqrt() < above => Verdict::TooFast,
            above if expected < above => Verdict::Unclear,
            _ => Verdict::Bearable,
        }
    }
}

impl View {
    pub(super) fn new(p99_steady: Option<Duration>, since: Timestamp) -> Self {
        Self { p99_steady, window: Window::new(since), p99: None, verdict: Verdict::Bearable }
    }

    /// Begins its window anew: what was read so far says nothing.
    pub(super) fn begin_window(&mut self, now: Timestamp) {
        self.window = Window::new(now);
    }

    /// Takes in reads; what they say, once there are enough. Without reads from before the fetch they say nothing.
    pub(super) fn on(&mut self, reads: &Latencies, p99_ratio_max: f64, now: Timestamp) -> Option<Verdict> {
        self.window.reads.add(reads);
        if !self.window.is_full(now) {
            return None;
        }
        let window = std::mem::replace(&mut self.window, Window::new(now));
        if WINDOW_READS <= window.reads.count() {
            self.p99 = window.reads.per_mille(990);
        }
        self.verdict = window.verdict(self.p99_steady?.mul_f64(p99_ratio_max));
        Some(self.verdict)
    }
}
