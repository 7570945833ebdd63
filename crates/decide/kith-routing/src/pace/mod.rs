//! Makes fetches give way to reads: while the p99 of reads is above its value without a fetch, fetches slow down.
//!
//! Voldemort throttles fetches to a fixed rate (§5.4), which must be chosen for the worst hour. Here the reads decide. The
//! rate is reduced by a factor while reads suffer, raised by a smaller factor while they do not, and never falls below a
//! floor, so that every fetch ends. There is no clock: shells pass in what they have counted since the last call.

mod view;

use crate::Latencies;
use kith_types::Timestamp;
use std::{num::NonZeroU64, time::Duration};
use view::{SteadyReads, Verdict, View};

/// After a fetch, files are synced and caches settle for a while. A fetch that begins within this time continues the
/// previous one.
const SETTLE: Duration = Duration::from_secs(5);

/// The parameters of the pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceOptions {
    /// A fetch is too fast while the p99 of reads is above this multiple of its steady value.
    pub p99_ratio_max: f64,
    /// The lowest limit, in bytes per second.
    pub floor: NonZeroU64,
}

impl PaceOptions {
    /// The default of `p99_ratio_max`.
    pub const P99_RATIO_MAX: f64 = 1.2;
    /// One piece per second.
    pub const FLOOR: NonZeroU64 = NonZeroU64::new(4 << 20).expect("it is not 0");
    /// The factor for a rate that is too fast.
    const LOWER: f64 = 0.7;
    /// The factor for a rate that is not too fast. It raises more slowly than `LOWER` reduces.
    const RAISE: f64 = 1.1;
}

impl Default for PaceOptions {
    fn default() -> Self {
        Self { p99_ratio_max: Self::P99_RATIO_MAX, floor: Self::FLOOR }
    }
}

/// The place where reads are timed. Fetches give way to the worse of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenFrom {
    /// At the node: the time that it worked on a read.
    Node,
    /// At routers: the time that they waited for the node, including the network and all queues.
    Routers,
}

/// The events since the last call.
#[derive(Clone, Copy, Debug)]
pub struct PaceSample<'a> {
    /// The reads that ended.
    pub reads: &'a Latencies,
    /// The reads that routers reported.
    pub reported: &'a Latencies,
    /// The bytes fetched.
    pub fetched: u64,
    /// Whether a fetch is running.
    pub is_fetching: bool,
}

/// The rate of fetches that reads tolerate.
#[derive(Clone, Debug)]
pub struct Pace {
    options: PaceOptions,
    /// The steady latencies, by [`SeenFrom`].
    steady: [SteadyReads; 2],
    /// The current fetch, until some time after its end.
    fetch: Option<Fetch>,
}

#[derive(Clone, Debug)]
struct Fetch {
    /// The latencies during the fetch, by [`SeenFrom`].
    views: [View; 2],
    /// The bytes fetched since the last decision.
    fetched: u64,
    since: Timestamp,
    /// The limit in bytes per second; `None` if there is none.
    limit: Option<f64>,
    /// The rate in the last window with any bytes. There may be windows without any, because requests are large and files
    /// are synced.
    rate: f64,
    /// The rate at which it was first too fast.
    unlimited: f64,
    /// The time since which nothing is fetched.
    ended: Option<Timestamp>,
}

impl Fetch {
    fn new(steady: &[SteadyReads; 2], fetched: u64, now: Timestamp) -> Self {
        let views = steady.each_ref().map(|steady| View::new(steady.p99(), now));
        Self { views, fetched, since: now, limit: None, rate: 0.0, unlimited: 0.0, ended: None }
    }

    /// Continues after an interruption. Reads during the interruption say nothing about the fetch.
    fn resume(&mut self, now: Timestamp) {
        self.views.iter_mut().for_each(|view| view.begin_window(now));
        (self.fetched, self.since) = (0, now);
    }

    fn on(&mut self, sample: &PaceSample<'_>, options: &PaceOptions, now: Timestamp) {
        self.fetched += sample.fetched;
        let seen = [sample.reads, sample.reported];
        let views = self.views.iter_mut().zip(seen);
        let heard: Option<Verdict> =
            views.fold(None, |worst, (view, reads)| worst.max(view.on(reads, options.p99_ratio_max, now)));
        let Some(heard) = heard else { return };
        if 0 < self.fetched {
            self.rate = self.fetched as f64 / now.since(self.since).as_secs_f64();
        }
        (self.fetched, self.since) = (0, now);
        let worst = self.views.iter().map(|view| view.verdict).max().unwrap_or(heard);
        match (heard, worst) {
            (Verdict::TooFast, _) => self.lower(options.floor),
            (Verdict::Bearable, Verdict::Bearable) => self.raise(),
            _ => {}
        }
    }

    fn lower(&mut self, floor: NonZeroU64) {
        // A fetch that has not fetched anything yet slows down no reads.
        if self.limit.is_none() && self.rate == 0.0 {
            return;
        }
        let before = self.limit.unwrap_or(self.rate);
        if self.limit.is_none() {
            self.unlimited = self.rate;
        }
        self.limit = Some((before * PaceOptions::LOWER).max(floor.get() as f64));
    }

    /// A limit of more than twice the unlimited rate has no effect and is dropped.
    fn raise(&mut self) {
        let raised = self.limit.map(|limit| limit * PaceOptions::RAISE);
        self.limit = raised.filter(|limit| *limit < 2.0 * self.unlimited);
    }
}

impl Pace {
    /// Returns a pace that knows no reads yet. It limits nothing until it has seen enough of them without a fetch.
    pub fn new(options: PaceOptions) -> Self {
        Self { options, steady: Default::default(), fetch: None }
    }

    /// Takes in what happened since the last call, which should be between a fraction of a second and a few seconds ago.
    /// O(1).
    pub fn on(&mut self, sample: &PaceSample<'_>, now: Timestamp) {
        match (&mut self.fetch, sample.is_fetching) {
            (None, false) => {
                self.steady[SeenFrom::Node as usize].on(sample.reads, now);
                self.steady[SeenFrom::Routers as usize].on(sample.reported, now);
            }
            // It is unknown which of these reads came before the fetch.
            (None, true) => self.fetch = Some(Fetch::new(&self.steady, sample.fetched, now)),
            (Some(fetch), true) => {
                if fetch.ended.take().is_some() {
                    fetch.resume(now);
                }
                fetch.on(sample, &self.options, now);
            }
            (Some(fetch), false) => {
                let ended = *fetch.ended.get_or_insert(now);
                if SETTLE <= now.since(ended) {
                    self.fetch = None;
                }
            }
        }
    }

    /// Returns the limit on all fetches together, in bytes per second; `None` if reads tolerate the current rate.
    pub fn limit(&self) -> Option<NonZeroU64> {
        let limit = self.fetch.as_ref()?.limit?;
        // A value above the greatest integer is converted to that integer.
        NonZeroU64::new(limit as u64)
    }

    /// The p99 of reads without a fetch, to which reads during a fetch are compared; `None` if too few were seen.
    pub fn p99_steady(&self, from: SeenFrom) -> Option<Duration> {
        match &self.fetch {
            Some(fetch) => fetch.views[from as usize].p99_steady,
            None => self.steady[from as usize].p99(),
        }
    }

    /// The p99 of reads during a fetch, in the last window with enough reads; `None` if nothing is fetched, or there are
    /// hardly any reads.
    pub fn p99_fetching(&self, from: SeenFrom) -> Option<Duration> {
        self.fetch.as_ref()?.views[from as usize].p99
    }
}
