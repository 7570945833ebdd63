//! The rule by which a request counts as late.

use super::KeyClass;
use std::time::Duration;

/// The time after which requests of one class count as late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgeTime {
    /// A request is late this long after it was sent.
    pub after: Duration,
    /// The expected duration of the second request.
    pub expected: Duration,
}

/// The rule by which the requests of one query count as late: `LoadMeter::hedge_rule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HedgeRule {
    /// The times by [`KeyClass`]; `None` if such requests are never late.
    pub times: [Option<HedgeTime>; KeyClass::COUNT],
    /// The number of groups of one query that may have hedged nodes. Groups are limited and not nodes, because a whole
    /// group can be late; the budget limits how many keys are asked twice. If more groups are late, the cluster is slow
    /// (Venice, which counts nodes).
    pub groups_max: usize,
}

impl Default for HedgeRule {
    /// No request is ever late.
    fn default() -> Self {
        Self { times: [None; KeyClass::COUNT], groups_max: 2 }
    }
}

impl HedgeRule {
    /// Returns a rule by which every request is late after the same time.
    pub fn fixed(after: Duration, expected: Duration) -> Self {
        Self { times: [Some(HedgeTime { after, expected }); KeyClass::COUNT], ..Self::default() }
    }
}
