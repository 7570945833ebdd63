//! When a request is late, and what became of those that were.

use crate::load::KeyClass;
use kith_types::Timestamp;
use std::time::Duration;
use strum::IntoStaticStr;

/// The least by which a timer may be late before that is our fault (Venice: 100 ms; a thread here wakes within two).
const SLACK_MIN: Duration = Duration::from_millis(2);

/// When requests of one class are late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgeTime {
    /// So long after it was sent.
    pub after: Duration,
    /// How long the second request will take, as far as is known.
    pub expected: Duration,
}

/// When the requests of one query are late: `LoadMeter::hedge_rule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgeRule {
    /// By [`KeyClass`]; `None`: never.
    pub times: [Option<HedgeTime>; KeyClass::COUNT],
    /// How many groups of one query may have hedged nodes. A group can be late as a whole, so its nodes are not counted: the
    /// budget limits how many keys are asked twice. More late groups are a slow cluster (Venice, which counts nodes).
    pub groups_max: usize,
}

impl Default for HedgeRule {
    /// Nothing is late.
    fn default() -> Self {
        Self { times: [None; KeyClass::COUNT], groups_max: 2 }
    }
}

impl HedgeRule {
    /// Every request is late at one time.
    pub fn fixed(after: Duration, expected: Duration) -> Self {
        Self { times: [Some(HedgeTime { after, expected }); KeyClass::COUNT], ..Self::default() }
    }
}

/// A planned request's hedge.
#[derive(Clone, Copy, Debug)]
pub(super) struct HedgePlan {
    /// Since when it is waited for: since it was sent, or looked at last.
    pub since: Timestamp,
    /// When it is due.
    pub due: Timestamp,
    pub time: HedgeTime,
}

impl HedgePlan {
    /// Of a request that is sent now.
    pub fn new(now: Timestamp, time: HedgeTime) -> Self {
        Self { since: now, due: now + time.after, time }
    }

    /// The same, to be looked at again once it has been under way for as long again.
    pub fn put_off(self, sent: Timestamp, now: Timestamp) -> Self {
        let waited = now.since(sent).max(self.time.after);
        Self { since: now, due: now + waited, time: self.time }
    }

    /// A timer that fires later than this after it was due tells of our own slowness.
    pub fn slack(&self) -> Duration {
        SLACK_MIN.max(self.due.since(self.since) / 2)
    }
}

/// Why a late request was not hedged, in the order in which that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum HedgeAbort {
    /// It is answered, or over.
    Answered,
    /// We are late ourselves: its lateness is ours.
    DelayConstraint,
    /// A second request would not be back before the deadline.
    NoTime,
    /// Nobody is left to ask who does not owe this query an answer.
    SlowRoute,
    /// Nodes of as many other groups as the limit allows are hedged already: the whole cluster is slow.
    MaxRoute,
    /// Enough is asked twice already.
    Budget,
}

impl HedgeAbort {
    /// Whether it is of the moment: such a request is looked at again. Nobody else would ever come to the help of a node that has lost
    /// it.
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

    /// The word for it in metrics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// What hedging came to in one fan-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HedgeCounts {
    /// Requests sent to other replicas because one was late.
    pub sent: u32,
    /// Keys in them.
    pub keys: u32,
    /// Requests among them whose answer counted, at least for one key.
    pub won: u32,
    /// Keys for which they were first.
    pub keys_won: u32,
    /// Late requests that were not hedged, by [`HedgeAbort`].
    pub aborted: [u32; HedgeAbort::ALL.len()],
}

impl HedgeCounts {
    /// Keys that were asked a second time for nothing.
    pub fn keys_wasted(&self) -> u32 {
        self.keys - self.keys_won
    }

    /// How many late requests were not hedged for this reason.
    pub fn aborted(&self, reason: HedgeAbort) -> u32 {
        self.aborted[reason as usize]
    }
}
