//! The times for which the log of a live graph and the outcomes of its writes are kept.

use crate::Trim;
use kith_types::Position;
use std::time::Duration;

/// The times for which the log of a live graph and the outcomes of its writes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The time for which changes are kept. A replica that is further behind must empty its cache and build its lists
    /// again.
    pub changes: Duration,
    /// The time for which outcomes are kept. Within this time, a repeat of a write with the same `write_id` gets the
    /// first outcome.
    pub outcomes: Duration,
}

impl Default for Retention {
    /// The default is ten minutes for each. Outcomes are kept for one more minute, because the clock of the leader that
    /// trims may be ahead of the clock of the leader that decided.
    fn default() -> Self {
        Self { changes: Self::CHANGES_DEFAULT, outcomes: Duration::from_secs(11 * 60) }
    }
}

impl Retention {
    /// The default time for which changes are kept.
    pub const CHANGES_DEFAULT: Duration = Duration::from_secs(10 * 60);

    /// Returns what may be removed from a partition at the time `now_ms`, in milliseconds since 1970. Changes after
    /// `needed_after` stay, however old they are, because a reader still needs them.
    pub fn trim(self, now_ms: u64, needed_after: Option<Position>) -> Trim {
        let before =
            |age: Duration| now_ms.saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        Trim {
            changes_before: needed_after.map_or(Position(u64::MAX), Position::next),
            changes_written_before_ms: before(self.changes),
            outcomes_before_ms: before(self.outcomes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_old_and_not_needed_may_go() {
        let retention = Retention { changes: Duration::from_secs(5), outcomes: Duration::from_secs(60) };
        let all = Trim {
            changes_before: Position(u64::MAX),
            changes_written_before_ms: 95_000,
            outcomes_before_ms: 40_000,
        };
        assert_eq!(retention.trim(100_000, None), all);
        let needed = Trim { changes_before: Position(8), ..all };
        assert_eq!(retention.trim(100_000, Some(Position(7))), needed, "the change at 7 was read");
        assert_eq!(retention.trim(1_000, None).changes_written_before_ms, 0, "nothing is that old");
    }
}
