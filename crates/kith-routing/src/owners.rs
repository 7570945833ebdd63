//! When to pass a query on to the router that owns its member, and when to go around it.
//!
//! Members are owned by routers, so that several hold one network cache. A cache must not
//! cost more than it saves: an owner that is away or silent costs a cache miss here, never
//! the query, and is left alone for a while, so that it costs one query its patience, not all.

use kith_types::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// How owners are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnersOptions {
    /// An owner is waited for so long at most, and for at most half of the query's deadline:
    /// the other half is for answering without it.
    pub patience: Duration,
    /// An owner that was away is not asked again for so long.
    pub avoid_for: Duration,
}

impl Default for OwnersOptions {
    fn default() -> Self {
        Self { patience: Duration::from_secs(1), avoid_for: Duration::from_secs(2) }
    }
}

/// Who answers a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerChoice {
    /// The owner, if it does within `patience`.
    Ask {
        /// How long to wait for it.
        patience: Duration,
    },
    /// This router, without asking.
    ServeHere,
}

/// What became of a query that was passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerOutcome {
    /// The owner gave an answer.
    Answered,
    /// The owner says that the query cannot be answered: neither could this router.
    Refused,
    /// The owner cannot be reached.
    Unreachable,
    /// The connection, or the owner, ended while it was at work.
    Broken,
    /// The owner turns work away.
    Overloaded,
    /// The owner said nothing within the patience.
    Silent,
}

/// What to do with the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerVerdict {
    /// What the owner said is the query's result, good or bad.
    PassOn,
    /// The owner is gone around from now on: answer here.
    GoAround,
}

/// The owners that were away, as one router sees them; by address, so that a router that
/// comes back elsewhere is asked at once.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    options: OwnersOptions,
    /// Until when whom not to ask.
    avoided: BTreeMap<String, Timestamp>,
}

impl Owners {
    /// Nobody is avoided yet.
    pub fn new(options: OwnersOptions) -> Self {
        Self { options, avoided: BTreeMap::new() }
    }

    /// Whether to ask the owner at `addr`, for a query that has `deadline` left (`None`: no deadline).
    pub fn choose(&self, addr: &str, deadline: Option<Duration>, now: Timestamp) -> OwnerChoice {
        if self.avoided.get(addr).is_some_and(|until| now < *until) {
            return OwnerChoice::ServeHere;
        }
        let patience = deadline.map_or(self.options.patience, |left| self.options.patience.min(left / 2));
        if patience.is_zero() { OwnerChoice::ServeHere } else { OwnerChoice::Ask { patience } }
    }

    /// Takes in what became of a query that was passed on to `addr`.
    ///
    /// An answer does not end a time of avoidance: it may have been on its way when the owner
    /// fell silent. O(owners avoided).
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn on(&mut self, addr: &str, outcome: OwnerOutcome, now: Timestamp) -> OwnerVerdict {
        match outcome {
            OwnerOutcome::Answered | OwnerOutcome::Refused => OwnerVerdict::PassOn,
            OwnerOutcome::Unreachable
            | OwnerOutcome::Broken
            | OwnerOutcome::Overloaded
            | OwnerOutcome::Silent => {
                // Routers come and go: what has passed is not kept for ever.
                self.avoided.retain(|_, until| now < *until);
                self.avoided.insert(addr.to_owned(), now + self.options.avoid_for);
                OwnerVerdict::GoAround
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDR: &str = "owner:1";

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    fn ask(millis: u64) -> OwnerChoice {
        OwnerChoice::Ask { patience: Duration::from_millis(millis) }
    }

    #[test]
    fn an_owner_gets_a_second_or_half_of_the_deadline() {
        let owners = Owners::default();
        assert_eq!(owners.choose(ADDR, None, at(0)), ask(1_000));
        assert_eq!(owners.choose(ADDR, Some(Duration::from_secs(60)), at(0)), ask(1_000));
        assert_eq!(owners.choose(ADDR, Some(Duration::from_millis(300)), at(0)), ask(150));
        assert_eq!(owners.choose(ADDR, Some(Duration::ZERO), at(0)), OwnerChoice::ServeHere);
    }

    #[test]
    fn an_owner_that_is_away_is_left_alone_for_two_seconds() {
        for outcome in
            [OwnerOutcome::Unreachable, OwnerOutcome::Broken, OwnerOutcome::Overloaded, OwnerOutcome::Silent]
        {
            let mut owners = Owners::default();
            assert_eq!(owners.on(ADDR, outcome, at(100)), OwnerVerdict::GoAround, "{outcome:?}");
            assert_eq!(owners.choose(ADDR, None, at(2_099)), OwnerChoice::ServeHere, "{outcome:?}");
            assert_eq!(owners.choose("other:1", None, at(2_099)), ask(1_000), "{outcome:?}");
            assert_eq!(owners.choose(ADDR, None, at(2_100)), ask(1_000), "{outcome:?}");
        }
    }

    #[test]
    fn what_an_owner_says_is_passed_on_also_when_it_is_an_error() {
        let mut owners = Owners::default();
        for outcome in [OwnerOutcome::Answered, OwnerOutcome::Refused] {
            assert_eq!(owners.on(ADDR, outcome, at(0)), OwnerVerdict::PassOn);
            assert_eq!(owners.choose(ADDR, None, at(0)), ask(1_000));
        }
    }

    #[test]
    fn an_answer_on_its_way_does_not_end_the_avoidance() {
        let mut owners = Owners::default();
        owners.on(ADDR, OwnerOutcome::Silent, at(0));
        assert_eq!(owners.on(ADDR, OwnerOutcome::Answered, at(1)), OwnerVerdict::PassOn);
        assert_eq!(owners.choose(ADDR, None, at(2)), OwnerChoice::ServeHere);
    }

    #[test]
    fn owners_that_left_are_forgotten() {
        let mut owners = Owners::default();
        for port in 0..1_000 {
            owners.on(&format!("owner:{port}"), OwnerOutcome::Unreachable, at(port * 100));
        }
        assert!(owners.avoided.len() <= 20, "{}", owners.avoided.len());
    }
}
