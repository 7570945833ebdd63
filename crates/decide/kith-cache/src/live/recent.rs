//! The memory of recent changes. Without it, a slow fill could bring back an old value: if the change that replaced the
//! value was applied before the fill arrived, and the entry was evicted, nothing else in the cache would show the
//! change (`docs/design/0019-live-graph.md`).

use super::key::Key;
use kith_types::{LogPoint, Position, Term, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The most terms that are remembered.
const TERMS_MAX: usize = 16;

/// The keys that changed recently, and where.
#[derive(Debug)]
pub(crate) struct Recent {
    keep: Duration,
    most: usize,
    /// All changes after this place are known.
    since: LogPoint,
    /// The place of the last change of each key.
    last: BTreeMap<Key, LogPoint>,
    /// All changes, oldest first.
    order: VecDeque<(Timestamp, LogPoint, Key)>,
    /// The terms that began since, with the last position before each.
    terms: VecDeque<(Term, Position)>,
}

impl Recent {
    /// Returns a memory that begins at `since`. It keeps changes for the duration `keep`, and at most `most` of them.
    pub(crate) fn new(since: LogPoint, keep: Duration, most: usize) -> Self {
        let (last, order, terms) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        Self { keep, most, since, last, order, terms }
    }

    /// Drops all changes. Fills that were read before `since` are refused from then on.
    pub(crate) fn begin(&mut self, since: LogPoint) {
        *self = Self::new(since, self.keep, self.most);
    }

    /// Records a change.
    pub(crate) fn note(&mut self, key: Key, point: LogPoint, now: Timestamp) {
        self.last.insert(key, point);
        self.order.push_back((now, point, key));
        while self.most < self.order.len() {
            self.forget_oldest();
        }
    }

    /// Records that `term` began after `position`.
    pub(crate) fn note_term(&mut self, term: Term, position: Position) {
        self.terms.push_back((term, position));
        if TERMS_MAX < self.terms.len()
            && let Some((term, position)) = self.terms.pop_front()
        {
            self.since = self.since.max(LogPoint { term, position });
        }
    }

    /// Drops changes that are too old.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(at, ..)| self.keep < now.since(*at)) {
            self.forget_oldest();
        }
    }

    /// Whether all changes after `point` are remembered, and `point` is in the history that the cache has applied. If a
    /// database is replaced by an older copy of itself, it loses the end of its history.
    pub(crate) fn reaches(&self, point: LogPoint) -> bool {
        let next_term = self.terms.iter().find(|(term, _)| point.term < *term);
        self.since <= point && next_term.is_none_or(|(_, began)| point.position <= *began)
    }

    /// Whether a key has changed after `point`.
    pub(crate) fn changed_after(&self, key: Key, point: LogPoint) -> bool {
        self.last.get(&key).is_some_and(|last| point < *last)
    }

    fn forget_oldest(&mut self) {
        let Some((_, point, key)) = self.order.pop_front() else { return };
        self.since = self.since.max(point);
        if self.last.get(&key) == Some(&point) {
            self.last.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp(Duration::from_secs(seconds))
    }

    fn point(position: u64) -> LogPoint {
        LogPoint::new(1, position)
    }

    #[test]
    fn what_is_forgotten_raises_the_place_from_which_the_memory_knows() {
        let mut recent = Recent::new(point(3), Duration::from_secs(10), 2);
        assert!(recent.reaches(point(3)) && !recent.reaches(point(2)));
        recent.note(Key::Object(1), point(4), at(0));
        recent.note(Key::Object(2), point(5), at(5));
        assert!(
            recent.changed_after(Key::Object(1), point(3)) && !recent.changed_after(Key::Object(1), point(4))
        );
        recent.note(Key::Object(2), point(6), at(6));
        assert!(!recent.reaches(point(3)) && recent.reaches(point(4)), "the bound");
        recent.forget(at(16));
        assert!(recent.reaches(point(5)) && !recent.reaches(point(4)), "the time");
        assert!(recent.changed_after(Key::Object(2), point(5)));
    }

    #[test]
    fn a_place_that_a_later_term_cut_off_is_not_in_the_history() {
        let mut recent = Recent::new(point(3), Duration::MAX, 10);
        recent.note_term(Term(2), Position(7));
        assert!(recent.reaches(point(7)) && !recent.reaches(point(8)));
        assert!(recent.reaches(LogPoint::new(2, 8)));
    }

    #[test]
    fn a_memory_of_many_terms_is_bounded() {
        let mut recent = Recent::new(point(3), Duration::MAX, 10);
        (2..40).for_each(|term| recent.note_term(Term(term), Position(term)));
        assert!(recent.terms.len() <= TERMS_MAX && !recent.reaches(LogPoint::new(2, 2)));
    }
}
