//! Decides when to forward a query to the router that owns its member, and when to answer it here.
//!
//! Members are owned by routers, so that several routers form one network cache. A cache must not cost more than it saves.
//! An owner that is away or silent costs a cache miss here, but never the query. It is then avoided for a while, so that
//! only one query waits for it in vain.

use kith_types::Timestamp;
use std::{collections::BTreeMap, time::Duration};

/// The parameters of the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnersOptions {
    /// The time to wait for an owner, which is also limited to half of the query's deadline. The other half is for
    /// answering without the owner.
    pub timeout: Duration,
    /// The time for which an owner that was away is not asked again.
    pub avoid_for: Duration,
}

impl Default for OwnersOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(1), avoid_for: Duration::from_secs(2) }
    }
}

/// The router that answers a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerChoice {
    /// The owner, if it answers within `timeout`.
    Ask {
        /// The time to wait for the owner.
        timeout: Duration,
    },
    /// This router, without asking the owner.
    ServeHere,
}

/// The outcome of a query that was forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerOutcome {
    /// The owner answered.
    Answered,
    /// The owner refused the query. This router would refuse it too.
    Refused,
    /// The owner could not be reached.
    Unreachable,
    /// The connection or the owner failed while the query ran.
    Broken,
    /// The owner is overloaded.
    Overloaded,
    /// The owner did not answer in time.
    Silent,
}

/// The next action after the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerVerdict {
    /// The owner's reply, good or bad, is the result of the query.
    PassOn,
    /// The owner is avoided from now on; answer the query here.
    GoAround,
}

/// The owners that were away, as one router sees them. They are known by address, so that a router that returns at another
/// address is asked at once.
#[derive(Clone, Debug, Default)]
pub struct Owners {
    options: OwnersOptions,
    /// The time until which each owner is avoided.
    avoided: BTreeMap<String, Timestamp>,
}

impl Owners {
    /// Returns a value that avoids no owner yet.
    pub fn new(options: OwnersOptions) -> Self {
        Self { options, avoided: BTreeMap::new() }
    }

    /// Decides whether to ask the owner at `addr` for a query with `deadline` left (`None` for no deadline).
    pub fn choose(&self, addr: &str, deadline: Option<Duration>, now: Timestamp) -> OwnerChoice {
        if self.avoided.get(addr).is_some_and(|until| now < *until) {
            return OwnerChoice::ServeHere;
        }
        let timeout = deadline.map_or(self.options.timeout, |left| self.options.timeout.min(left / 2));
        if timeout.is_zero() { OwnerChoice::ServeHere } else { OwnerChoice::Ask { timeout } }
    }

    /// Takes in the outcome of a query that was forwarded to `addr`.
    ///
    /// An answer does not end the avoidance, because it may have been on its way when the owner fell silent. O(owners
    /// avoided).
    #[deny(clippy::wildcard_enum_match_arm)]
    pub fn on(&mut self, addr: &str, outcome: OwnerOutcome, now: Timestamp) -> OwnerVerdict {
        match outcome {
            OwnerOutcome::Answered | OwnerOutcome::Refused => OwnerVerdict::PassOn,
            OwnerOutcome::Unreachable
            | OwnerOutcome::Broken
            | OwnerOutcome::Overloaded
            | OwnerOutcome::Silent => {
                // Drop expired entries, because routers come and go.
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
        OwnerChoice::Ask { timeout: Duration::from_millis(millis) }
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
