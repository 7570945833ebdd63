//! Single-flight fetches: the first look-up that misses fetches the key, and the others wait. A flight ends when its
//! value arrives or when it fails for everyone. If only its leader fails (it is cancelled, or its deadline passes), the
//! waiter that has waited longest takes over.

use std::collections::{BTreeMap, VecDeque};

/// The id of one fetch. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlightId(u64);

/// The queries that the failure of a fetch concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Only the leader: it was cancelled, or its deadline passed. Other queries may have more time.
    Leader,
    /// Everyone: for example, the member is not in the graph, or no replica answers. All waiters get the error.
    Everyone,
}

/// The consequence of a failure for the waiters.
#[derive(Debug, PartialEq, Eq)]
pub enum AfterFailure<W> {
    /// This waiter fetches now, under the same flight. If it is gone too, report another [`Failure::Leader`].
    Promote(W),
    /// All of these waiters, possibly none, get the error.
    Wake(Vec<W>),
}

/// All fetches under way. `W` is a waiter, such as the sending end of a channel.
#[derive(Debug)]
pub(crate) struct Flights<K, W> {
    next: u64,
    flights: BTreeMap<FlightId, Flight<K, W>>,
    by_key: BTreeMap<K, FlightId>,
}

#[derive(Debug)]
pub(crate) struct Flight<K, W> {
    pub(crate) key: K,
    /// Whether the value may be kept. False once its version is superseded.
    pub(crate) keep: bool,
    /// The waiters, longest waiting first. The queries that the caller admits limit their number.
    waiters: VecDeque<W>,
}

impl<K: Clone + Ord, W> Flights<K, W> {
    pub(crate) fn new() -> Self {
        Self { next: 0, flights: BTreeMap::new(), by_key: BTreeMap::new() }
    }

    /// Returns the flight for a key, if there is one. Flights whose value will not be kept are not returned.
    pub(crate) fn find(&self, key: &K) -> Option<FlightId> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn start(&mut self, key: K) -> FlightId {
        let id = FlightId(self.next);
        self.next += 1;
        self.by_key.insert(key.clone(), id);
        self.flights.insert(id, Flight { key, keep: true, waiters: VecDeque::new() });
        id
    }

    /// Adds a waiter. Returns it if the flight has ended.
    pub(crate) fn join(&mut self, id: FlightId, waiter: W) -> Result<(), W> {
        match self.flights.get_mut(&id) {
            Some(flight) => {
                flight.waiters.push_back(waiter);
                Ok(())
            }
            None => Err(waiter),
        }
    }

    /// Ends a flight. Returns it, and its waiters.
    pub(crate) fn end(&mut self, id: FlightId) -> Option<(Flight<K, W>, Vec<W>)> {
        let mut flight = self.flights.remove(&id)?;
        if flight.keep {
            self.by_key.remove(&flight.key);
        }
        let waiters = std::mem::take(&mut flight.waiters).into();
        Some((flight, waiters))
    }

    pub(crate) fn fail(&mut self, id: FlightId, failure: Failure) -> AfterFailure<W> {
        if failure == Failure::Leader
            && let Some(next) = self.flights.get_mut(&id).and_then(|flight| flight.waiters.pop_front())
        {
            return AfterFailure::Promote(next);
        }
        AfterFailure::Wake(self.end(id).map_or(Vec::new(), |(_, waiters)| waiters))
    }

    /// Marks flights so that their values are not kept and nobody else joins them.
    pub(crate) fn disown(&mut self, mut which: impl FnMut(&K) -> bool) {
        for flight in self.flights.values_mut() {
            if flight.keep && which(&flight.key) {
                flight.keep = false;
                self.by_key.remove(&flight.key);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.flights.len()
    }
}
