//! Proofs that a follower is not stale. The follower sends a question and notes the time by its own clock. After the
//! question has arrived, the leader reads the end of the log from the primary database. Everything that was committed
//! before the follower asked is therefore at or below that end. Messages that a leader sends unasked prove nothing,
//! because they may have been delayed, or the leader may have been deposed.

use super::guards::{Guard, Guards};
use kith_types::{LogPoint, Timestamp};
use std::collections::VecDeque;
use std::time::Duration;

/// The most questions without a reply, and the most proofs that wait for changes. The oldest are dropped first, because
/// later ones prove more.
const OPEN_MAX: usize = 8;

/// Identifies one question to the leader. A follower never uses it twice between restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nonce(pub u64);

/// The proofs of one partition, and until when its cache may answer.
#[derive(Debug)]
pub(crate) struct Freshness {
    stale_max: Duration,
    pub(crate) guards: Guards,
    next: u64,
    /// The questions without a reply, with the times at which they were asked.
    asked: VecDeque<(Nonce, Timestamp)>,
    /// Proofs of places that are not applied yet, with the times until which they hold.
    proofs: VecDeque<(LogPoint, Timestamp)>,
    /// The time before which the cache may answer.
    until: Timestamp,
}

impl Freshness {
    /// Returns a state without proofs. Each proof will hold for `stale_max`.
    pub(crate) fn new(stale_max: Duration) -> Self {
        Self {
            stale_max,
            guards: Guards::default(),
            next: 0,
            asked: VecDeque::new(),
            proofs: VecDeque::new(),
            until: Timestamp::ZERO,
        }
    }

    /// Creates a question to the leader, which is sent now.
    pub(crate) fn ask(&mut self, now: Timestamp) -> Nonce {
        let nonce = Nonce(self.next);
        self.next += 1;
        push(&mut self.asked, (nonce, now));
        nonce
    }

    /// Handles the leader's reply, which contains the end of the log when the leader read it.
    pub(crate) fn replied(&mut self, nonce: Nonce, end: LogPoint, applied: LogPoint, now: Timestamp) {
        let index = self.asked.iter().position(|(asked, _)| *asked == nonce);
        let asked = index.and_then(|index| self.asked.remove(index)).map(|(_, at)| at);
        let from = match asked {
            Some(at) if self.guards.hold(Guard::OwnClock) => at,
            None if self.guards.hold(Guard::OwnNonce) => return,
            _ => now,
        };
        let until = from + self.stale_max;
        // An expired proof need not wait for its place.
        if now < until {
            push(&mut self.proofs, (end, until));
            self.applied(applied);
        }
    }

    /// Records that the cache has applied everything up to `applied`.
    pub(crate) fn applied(&mut self, applied: LogPoint) {
        let until = &mut self.until;
        self.proofs.retain(|(end, holds)| {
            let reached = *end <= applied;
            if reached {
                *until = (*until).max(*holds);
            }
            !reached
        });
    }

    /// Whether the cache may answer now.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.until
    }

    pub(crate) fn until(&self) -> Timestamp {
        self.until
    }

    /// Drops all proofs, because the applied changes are not in the log's history.
    pub(crate) fn reset(&mut self) {
        self.asked.clear();
        self.proofs.clear();
        self.until = Timestamp::ZERO;
    }
}

fn push<T>(queue: &mut VecDeque<T>, value: T) {
    if queue.len() == OPEN_MAX {
        queue.pop_front();
    }
    queue.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp(Duration::from_millis(millis))
    }

    #[test]
    fn a_proof_holds_from_the_question_and_once_its_place_is_applied() {
        let mut fresh = Freshness::new(Duration::from_secs(2));
        assert!(!fresh.is_fresh(at(0)));
        let nonce = fresh.ask(at(100));
        fresh.replied(nonce, LogPoint::new(1, 5), LogPoint::new(1, 4), at(900));
        assert!(!fresh.is_fresh(at(900)));
        fresh.applied(LogPoint::new(1, 5));
        assert!(fresh.is_fresh(at(2_099)) && !fresh.is_fresh(at(2_100)));
        fresh.replied(nonce, LogPoint::new(1, 5), LogPoint::new(1, 5), at(2_200));
        assert!(!fresh.is_fresh(at(2_200)), "a question is answered once");
        fresh.reset();
        assert!(!fresh.is_fresh(at(0)));
    }

    #[test]
    fn questions_and_proofs_are_bounded() {
        let mut fresh = Freshness::new(Duration::from_secs(2));
        let nonces: Vec<Nonce> = (0..20).map(|second| fresh.ask(at(second * 1_000))).collect();
        assert_eq!(fresh.asked.len(), OPEN_MAX);
        fresh.replied(nonces[0], LogPoint::default(), LogPoint::default(), at(0));
        assert!(!fresh.is_fresh(at(0)), "it was forgotten");
        fresh.replied(nonces[19], LogPoint::default(), LogPoint::default(), at(20_000));
        assert!(fresh.is_fresh(at(20_999)));
    }
}
