//! Reads before and during a fetch, and whether they show that its rate is too fast.

use crate::Latencies;
use kith_types::Timestamp;
use std::time::Duration;

/// The longest window. With so few reads in this time, there is hardly anything to give way to.
const WINDOW_MAX: Duration = Duration::from_secs(10);
/// The shortest window. A shorter one would judge a rate that has only just taken effect.
const WINDOW_MIN: Duration = Duration::from_millis(500);
/// The number of reads that a window needs for a p99. One per cent of them is enough to tell a rise from chance.
const WINDOW_READS: u64 = 500;
/// The number of reads from which at least the median is compared.
const FEW_READS: u64 = 5;
/// The number of reads for the steady p99. It is twice that of a window, because everything is compared with it.
const STEADY_READS: u64 = 2 * WINDOW_READS;
/// The time after which the steady p99 is taken from newer reads, if there are enough.
const STEADY_AGE: Duration = Duration::from_secs(30);

/// Reads while nothing is fetched, in two generations. The older one is dropped when the newer one has become old.
#[derive(Clone, Debug, Default)]
pub(super) struct SteadyReads {
    older: Latencies,
    newer: Latencies,
    since: Timestamp,
}

/// The reads during a fetch, seen from one side.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// The p99 that the fetch must not raise; `None` if there were too few reads before it.
    pub(super) p99_steady: Option<Duration>,
    window: Window,
    /// The p99 of the last window with enough reads.
    pub(super) p99: Option<Duration>,
    /// The verdict of the last window. A side with few reads gives verdicts rarely, so its last one stays in force.
    pub(super) verdict: Verdict,
}

#[derive(Clone, Debug)]
struct Window {
    reads: Latencies,
    since: Timestamp,
}

/// The verdict of a window about the rate of the fetch, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Bearable,
    /// Reads are slower than allowed, but by no more than chance may cause.
    Unclear,
    TooFast,
}

impl SteadyReads {
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

    /// Whether more than 1 in 100 reads took longer than `bound`, with a significance of two standard deviations.
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

    /// Starts a new window. The reads so far do not count.
    pub(super) fn begin_window(&mut self, now: Timestamp) {
        self.window = Window::new(now);
    }

    /// Takes in reads. Returns a verdict once there are enough of them; `None` if there were no reads before the fetch.
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
