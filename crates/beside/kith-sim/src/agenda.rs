//! The future events of a simulation, in the order of their time.
//!
//! Events of equal time come out in the order in which they were added, so that a run depends only on its seed.

use kith_types::Timestamp;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue of future events, and the current time.
#[derive(Debug)]
pub struct Agenda<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next_sequence: u64,
    now: Timestamp,
}

#[derive(Debug)]
struct Entry<E> {
    at: Timestamp,
    sequence: u64,
    event: E,
}

impl<E> Agenda<E> {
    /// Returns an empty agenda at time zero.
    pub fn new() -> Self {
        Self { heap: BinaryHeap::new(), next_sequence: 0, now: Timestamp::ZERO }
    }

    /// Returns the time of the event that was taken out last.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Adds an event. If `at` is in the past, the event happens at the current time.
    pub fn at(&mut self, at: Timestamp, event: E) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.heap.push(Reverse(Entry { at: at.max(self.now), sequence, event }));
    }

    /// Takes out the next event and advances the time to it.
    pub fn take(&mut self) -> Option<E> {
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn events_come_in_the_order_of_time_and_equal_ones_as_they_went_in() {
        let at = |millis| Timestamp(Duration::from_millis(millis));
        let mut agenda = Agenda::new();
        for (millis, event) in [(5, "c"), (2, "a"), (5, "d"), (2, "b")] {
            agenda.at(at(millis), event);
        }
        assert_eq!(agenda.take(), Some("a"));
        agenda.at(at(0), "late");
        let rest: Vec<&str> = std::iter::from_fn(|| agenda.take()).collect();
        assert_eq!(rest, ["b", "late", "c", "d"]);
        assert_eq!(agenda.now(), at(5));
    }
}
