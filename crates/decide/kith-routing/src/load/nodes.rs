//! The outstanding keys and requests of each node. Each is released exactly once.

use crate::load::Work;
use kith_types::{NodeId, Timestamp};
use std::collections::VecDeque;
use std::time::Duration;

/// The time for which a request still counts after it timed out and was given up (Venice). A node that hangs must not
/// look idle to the next query.
pub const COOL_OFF: Duration = Duration::from_secs(10);
/// Cool-offs that end within this time of each other end together, which bounds how many are kept.
const COOL_OFF_STEP: Duration = Duration::from_millis(100);
/// The weight of a new sample against the previous mean.
const ALPHA: f64 = 0.1;
/// The weight of a request that was given up because it was late. A healthy node has one such request in a hundred, and a
/// slow node has them nearly always, so a single one says more than many answers.
const ALPHA_LATE: f64 = 0.5;
/// The cost of a request independent of its keys, in keys. Without it, a node that was last asked for single keys would look
/// many times slower than one that was asked for thousands.
const REQUEST_KEYS: u32 = 64;
/// A pace is unknown if nothing has confirmed it for this long.
const PACE_AGE_MAX: Duration = Duration::from_secs(10);

/// A request on a node's account. [`crate::LoadMeter::on_send`] returns it and [`crate::LoadMeter::on_end`] takes it by
/// value, so that nothing is released twice.
#[must_use = "what is sent ends: give it back to the meter"]
#[derive(Debug)]
pub struct Charge {
    pub(super) node: NodeId,
    pub(super) keys: u32,
    pub(super) work: Work,
    pub(super) sent: Timestamp,
    /// The number of the account. A node that left the table and returned has another account.
    pub(super) life: u64,
}

impl Charge {
    /// The node that was asked.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The number of keys.
    pub fn keys(&self) -> u32 {
        self.keys
    }

    /// Leaves a time out of that which the request took, because this process itself did not look for the answer meanwhile.
    pub fn leave_out(&mut self, wait: Duration) {
        self.sent = self.sent + wait;
    }
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEnd {
    /// The node answered.
    Answered,
    /// It answered with an error, the connection broke, or it was found to be down.
    Failed,
    /// The answer is no longer needed.
    Cancelled,
    /// Another replica that was asked later answered first.
    Overtaken,
    /// The request timed out.
    TimedOut,
}

/// The limit at which a node has too many requests of this process to get more. The default values are Venice's
/// production values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingLimit {
    /// The number of requests above which a node is avoided.
    pub out: u32,
    /// The number of requests at or below which it is used again.
    pub back: u32,
    /// The shortest time for which it is avoided.
    pub out_min: Duration,
}

impl Default for PendingLimit {
    fn default() -> Self {
        Self { out: 500, back: 15, out_min: Duration::ZERO }
    }
}

/// Counts of all requests to one node since its account was opened. They only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeTally {
    /// The requests sent.
    pub requests: u64,
    /// The keys in these requests.
    pub keys: u64,
    /// The number of hedges among the requests, for requests that were late at another node.
    pub hedges: u64,
    /// The keys in the hedges.
    pub keys_hedged: u64,
    /// The requests that failed or timed out.
    pub failed: u64,
    /// The requests that a hedge overtook.
    pub overtaken: u64,
}

/// One node's account.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub life: u64,
    keys: u64,
    requests: u32,
    /// The requests that timed out and still count: the time until which they count, and the numbers of keys and
    /// requests. They are in the order of time.
    cooling: VecDeque<(Timestamp, u64, u32)>,
    pace: Option<Pace>,
    /// The time since which it has been above the limit.
    pub out_since: Option<Timestamp>,
    pub tally: NodeTally,
}

/// The mean time per key.
#[derive(Clone, Copy, Debug)]
struct Pace {
    seconds: f64,
    heard: Timestamp,
}

impl Account {
    pub fn new(life: u64) -> Self {
        Self {
            life,
            keys: 0,
            requests: 0,
            cooling: VecDeque::new(),
            pace: None,
            out_since: None,
            tally: NodeTally::default(),
        }
    }

    pub fn charge(&mut self, keys: u32) {
        self.keys += u64::from(keys);
        self.requests += 1;
        self.tally.keys += u64::from(keys);
        self.tally.requests += 1;
    }

    /// Records that the last charge was for a hedge.
    pub fn hedge(&mut self, keys: u32) {
        self.tally.hedges += 1;
        self.tally.keys_hedged += u64::from(keys);
    }

    /// Ends one request. `tells` is false if its duration says nothing about the node.
    pub fn release(&mut self, charge: &Charge, end: RequestEnd, tells: bool, now: Timestamp) {
        self.keys = self.keys.saturating_sub(u64::from(charge.keys));
        self.requests = self.requests.saturating_sub(1);
        let took = now.since(charge.sent);
        match end {
            RequestEnd::Failed | RequestEnd::TimedOut => self.tally.failed += 1,
            RequestEnd::Overtaken => self.tally.overtaken += 1,
            RequestEnd::Answered | RequestEnd::Cancelled => {}
        }
        match end {
            RequestEnd::Answered if tells => self.sample(took, charge.keys, now),
            RequestEnd::Overtaken if tells => self.sample_late(took, charge.keys, now),
            RequestEnd::TimedOut => {
                if tells {
                    self.sample_late(took, charge.keys, now);
                }
                self.cool(charge.keys, now);
            }
            RequestEnd::Answered | RequestEnd::Overtaken | RequestEnd::Failed | RequestEnd::Cancelled => {}
        }
    }

    /// Forgets what was known about a node that was down and is back.
    pub fn forgive(&mut self) {
        self.cooling.clear();
        self.pace = None;
    }

    pub fn keys(&self, now: Timestamp) -> u64 {
        self.keys + self.cooling_at(now).map(|(_, keys, _)| keys).sum::<u64>()
    }

    pub fn requests(&self, now: Timestamp) -> u32 {
        self.requests + self.cooling_at(now).map(|(_, _, requests)| requests).sum::<u32>()
    }

    /// The seconds that it takes per key, if this is known.
    pub fn seconds_per_key(&self, now: Timestamp) -> Option<f64> {
        self.pace.filter(|pace| now.since(pace.heard) <= PACE_AGE_MAX).map(|pace| pace.seconds)
    }

    /// Applies the limit. Returns whether the node's state changed.
    pub fn limit(&mut self, limit: PendingLimit, now: Timestamp) -> bool {
        let requests = self.requests(now);
        match self.out_since {
            None if limit.out < requests => self.out_since = Some(now),
            Some(since) if requests <= limit.back && limit.out_min <= now.since(since) => {
                self.out_since = None;
            }
            None | Some(_) => return false,
        }
        true
    }

    fn cooling_at(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, u64, u32)> + '_ {
        self.cooling.iter().copied().filter(move |(until, ..)| now < *until)
    }

    fn cool(&mut self, keys: u32, now: Timestamp) {
        while self.cooling.front().is_some_and(|(until, ..)| *until <= now) {
            self.cooling.pop_front();
        }
        let until = now + COOL_OFF;
        match self.cooling.back_mut() {
            Some((last, kept, requests)) if until.since(*last) < COOL_OFF_STEP => {
                *kept += u64::from(keys);
                *requests += 1;
            }
            _ => self.cooling.push_back((until, u64::from(keys), 1)),
        }
    }

    fn sample(&mut self, took: Duration, keys: u32, now: Timestamp) {
        let sample = per_key(took, keys);
        let seconds = self.seconds_per_key(now).map_or(sample, |known| known + ALPHA * (sample - known));
        self.pace = Some(Pace { seconds, heard: now });
    }

    /// Takes in a request that was waited for in vain. It counts as if it had then taken as long again as such a request
    /// takes, which is what a memoryless waiting time would give. A node that is late repeatedly therefore looks slower each
    /// time, however early it is given up.
    fn sample_late(&mut self, waited: Duration, keys: u32, now: Timestamp) {
        let waited = per_key(waited, keys);
        let seconds = self.seconds_per_key(now).map_or(waited, |known| known + ALPHA_LATE * waited);
        self.pace = Some(Pace { seconds, heard: now });
    }
}

fn per_key(took: Duration, keys: u32) -> f64 {
    took.as_secs_f64().max(1e-9) / f64::from(keys.saturating_add(REQUEST_KEYS))
}
