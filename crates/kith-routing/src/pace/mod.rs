//! Fetches give way to reads: while the p99 of reads is above what it was without a fetch, fetches slow down.
//!
//! Voldemort throttles fetches by a fixed rate (§5.4), which somebody has to choose for the worst hour. Here the reads say it.
//! Down by a factor while they suffer, up by a smaller one while they do not, never below a floor: a fetch always ends. No
//! clock: shells feed it what they have counted since the last time.

mod view;

use crate::Latencies;
use kith_types::Timestamp;
use std::{num::NonZeroU64, time::Duration};
use view::{Steady, Verdict, View};

/// Files are synced and caches settle for a while after a fetch; a fetch that begins in it goes on as the one before.
const SETTLE: Duration = Duration::from_secs(5);

/// How fetches give way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceOptions {
    /// A fetch is too fast while the p99 of reads is above so many times its steady value.
    pub p99_ratio_max: f64,
    /// Never slower, in bytes a second.
    pub floor: NonZeroU64,
}

impl PaceOptions {
    /// What a rise of the p99 may be, by default.
    pub const P99_RATIO_MAX: f64 = 1.2;
    /// A piece a second.
    pub const FLOOR: NonZeroU64 = NonZeroU64::new(4 << 20).expect("it is not 0");
    /// What remains of a rate that is too fast.
    const LOWER: f64 = 0.7;
    /// What becomes of one that is not: slower up than down.
    const RAISE: f64 = 1.1;
}

impl Default for PaceOptions {
    fn default() -> Self {
        Self { p99_ratio_max: Self::P99_RATIO_MAX, floor: Self::FLOOR }
    }
}

/// Where reads are timed. Fetches give way by the worse of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenFrom {
    /// At the node: how long it worked on them.
    Node,
    /// At routers: how long they waited for it, with what the way there and back and every queue add.
    Routers,
}

/// What has happened since the last time.
#[derive(Clone, Copy, Debug)]
pub struct PaceSample<'a> {
    /// Reads that ended.
    pub reads: &'a Latencies,
    /// Reads that routers have told of.
    pub told: &'a Latencies,
    /// Bytes fetched.
    pub fetched: u64,
    /// Whether anything is being fetched.
    pub is_fetching: bool,
}

/// How fast fetches may be, as reads bear it.
#[derive(Clone, Debug)]
pub struct Pace {
    options: PaceOptions,
    /// By [`SeenFrom`].
    steady: [Steady; 2],
    /// While something is fetched, and until it has settled.
    fetch: Option<Fetch>,
}

#[derive(Clone, Debug)]
struct Fetch {
    /// By [`SeenFrom`].
    views: [View; 2],
    /// Fetched since the last decision.
    fetched: u64,
    since: Timestamp,
    /// Bytes a second; `None`: as fast as it goes.
    limit: Option<f64>,
    /// What it fetched at in the last window in which anything came: requests are large, and files are synced.
    rate: f64,
    /// What it fetched at when it was first too fast.
    unlimited: f64,
    /// Since when nothing is fetched.
    ended: Option<Timestamp>,
}

impl Fetch {
    fn new(steady: &[Steady; 2], fetched: u64, now: Timestamp) -> Self {
        let views = steady.each_ref().map(|steady| View::new(steady.p99(), now));
        Self { views, fetched, since: now, limit: None, rate: 0.0, unlimited: 0.0, ended: None }
    }

    /// It was interrupted: what reads took meanwhile says nothing of it.
    fn resume(&mut self, now: Timestamp) {
        self.views.iter_mut().for_each(|view| view.begin_window(now));
        (self.fetched, self.since) = (0, now);
    }

    fn on(&mut self, sample: &PaceSample<'_>, options: &PaceOptions, now: Timestamp) {
        self.fetched += sample.fetched;
        let seen = [sample.reads, sample.told];
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
        // What has not fetched anything yet slows nobody down.
        if self.limit.is_none() && self.rate == 0.0 {
            return;
        }
        let before = self.limit.unwrap_or(self.rate);
        if self.limit.is_none() {
            self.unlimited = self.rate;
        }
        self.limit = Some((before * PaceOptions::LOWER).max(floor.get() as f64));
    }

    /// Beyond twice what it once came to, a limit limits nothing.
    fn raise(&mut self) {
        let raised = self.limit.map(|limit| limit * PaceOptions::RAISE);
        self.limit = raised.filter(|limit| *limit < 2.0 * self.unlimited);
    }
}

impl Pace {
    /// Knows nothing of reads yet: until it has seen enough of them without a fetch, it limits nothing.
    pub fn new(options: PaceOptions) -> Self {
        Self { options, steady: Default::default(), fetch: None }
    }

    /// Takes in what has happened since the last time, some time ago: a fraction of a second to a few. O(1).
    pub fn on(&mut self, sample: &PaceSample<'_>, now: Timestamp) {
        match (&mut self.fetch, sample.is_fetching) {
            (None, false) => {
                self.steady[SeenFrom::Node as usize].on(sample.reads, now);
                self.steady[SeenFrom::Routers as usize].on(sample.told, now);
            }
            // Nobody knows which of these reads came before it.
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

    /// The most that all fetches together may pull, in bytes a second; `None`: reads bear it as it is.
    pub fn limit(&self) -> Option<NonZeroU64> {
        let limit = self.fetch.as_ref()?.limit?;
        // Beyond the greatest integer, the conversion gives that.
        NonZeroU64::new(limit as u64)
    }

    /// The p99 of reads that fetches are held against; `None`: too few were seen.
    pub fn p99_steady(&self, from: SeenFrom) -> Option<Duration> {
        match &self.fetch {
            Some(fetch) => fetch.views[from as usize].p99_steady,
            None => self.steady[from as usize].p99(),
        }
    }

    /// The p99 of reads during a fetch, of the last window that had enough; `None`: nothing is fetched, or hardly read.
    pub fn p99_fetching(&self, from: SeenFrom) -> Option<Duration> {
        self.fetch.as_ref()?.views[from as usize].p99
    }
}
