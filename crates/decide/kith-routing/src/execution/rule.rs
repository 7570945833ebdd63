//! When a request counts as late, and counts of what happened to late requests.

use crate::load::HedgeTime;
use kith_types::Timestamp;
use std::time::Duration;
use strum::IntoStaticStr;

/// A timer must be late by at least this much before we count the delay as our own (Venice: 100 ms; a thread here wakes up
/// within two).
const SLACK_MIN: Duration = Duration::from_millis(2);

/// The plan for hedging a planned request.
#[derive(Clone, Copy, Debug)]
pub(super) struct HedgePlan {
    /// The start of the wait: when the request was sent, or last checked.
    pub since: Timestamp,
    /// The time at which the hedge is due.
    pub due: Timestamp,
    pub time: HedgeTime,
}

impl HedgePlan {
    /// Returns the plan for a request that is sent now.
    pub fn new(now: Timestamp, time: HedgeTime) -> Self {
        Self { since: now, due: now + time.after, time }
    }

    /// Returns the plan with a later check, after the request has been in flight for as long again.
    pub fn put_off(self, sent: Timestamp, now: Timestamp) -> Self {
        let waited = now.since(sent).max(self.time.after);
        Self { since: now, due: now + waited, time: self.time }
    }

    /// If a timer fires more than this after it was due, we are slow ourselves.
    pub fn slack(&self) -> Duration {
        SLACK_MIN.max(self.due.since(self.since) / 2)
    }
}

/// The reason why a late request was not hedged, in the order of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum HedgeAbort {
    /// The request is answered or over.
    Answered,
    /// This process is late itself, so the node may not be late.
    DelayConstraint,
    /// A second request would not be back before the deadline.
    NoTime,
    /// No other replica is left that does not owe this query an answer.
    SlowRoute,
    /// Nodes in as many other groups as the limit allows are hedged already, so the whole cluster is slow.
    MaxRoute,
    /// The budget for asking twice is used up.
    Budget,
}

impl HedgeAbort {
    /// Whether the reason is temporary, so that the request is checked again. Otherwise a node that has lost the request
    /// would never be replaced.
    pub(super) fn is_passing(self) -> bool {
        matches!(self, HedgeAbort::DelayConstraint | HedgeAbort::Budget)
    }
}

impl HedgeAbort {
    /// Every reason, in order.
    pub const ALL: [HedgeAbort; 6] = [
        HedgeAbort::Answered,
        HedgeAbort::DelayConstraint,
        HedgeAbort::NoTime,
        HedgeAbort::SlowRoute,
        HedgeAbort::MaxRoute,
        HedgeAbort::Budget,
    ];

    /// Returns the name of the reason in metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The hedges of one fan-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HedgeCounts {
    /// The number of requests sent to other replicas because a request was late.
    pub sent: u32,
    /// The number of keys in these requests.
    pub keys: u32,
    /// The number of these requests with an answer that counted for at least one key.
    pub won: u32,
    /// The number of keys that they answered first.
    pub keys_won: u32,
    /// The number of late requests that were not hedged, by [`HedgeAbort`].
    pub aborted: [u32; HedgeAbort::ALL.len()],
}

impl HedgeCounts {
    /// The number of keys that were asked a second time in vain.
    pub fn keys_wasted(&self) -> u32 {
        self.keys - self.keys_won
    }

    /// The number of late requests that were not hedged for this reason.
    pub fn aborted(&self, reason: HedgeAbort) -> u32 {
        self.aborted[reason as usize]
    }
}
