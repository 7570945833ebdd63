//! One fetch per key at a time: the first to miss fetches, the
//! others wait for it. A flight ends by landing or by failing for good; when only
//! its leader fails (gone, out of time), the longest waiting one takes over.

use std::collections::{BTreeMap, VecDeque};

/// One fetch under way. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlightId(u64);

/// Whose fault it is that a fetch failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The leader's own: it was cancelled or its deadline passed. Others may have more time.
    Leader,
    /// Anyone's: the member is not in the graph, no replica answers. All get the error.
    Everyone,
}

/// What a failure means for those who wait.
#[derive(Debug, PartialEq, Eq)]
pub enum Landing<W> {
    /// This one fetches now, under the same flight. If it has gone too, report that as another [`Failure::Leader`].
    Promote(W),
    /// All of these get the error; possibly nobody.
    Wake(Vec<W>),
}

/// All fetches under way. `W` stands for one who waits, such as the sending end of a channel.
#[derive(Debug)]
pub(crate) struct Flights<K, W> {
    next: u64,
    flights: BTreeMap<FlightId, Flight<K, W>>,
    by_key: BTreeMap<K, FlightId>,
}

#[derive(Debug)]
pub(crate) struct Flight<K, W> {
    pub(crate) key: K,
    /// Whether what it brings may be kept: not if its version was over before it landed.
    pub(crate) keep: bool,
    /// Longest waiting first. Bounded by the queries that the caller admits.
    waiters: VecDeque<W>,
}

impl<K: Clone + Ord, W> Flights<K, W> {
    pub(crate) fn new() -> Self {
        Self { next: 0, flights: BTreeMap::new(), by_key: BTreeMap::new() }
    }

    /// The flight for a key, if there is one; a flight that will not be kept is none to join.
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

    /// Adds one who waits; gives it back if the flight is over.
    pub(crate) fn join(&mut self, id: FlightId, waiter: W) -> Result<(), W> {
        match self.flights.get_mut(&id) {
            Some(flight) => {
                flight.waiters.push_back(waiter);
                Ok(())
            }
            None => Err(waiter),
        }
    }

    /// Ends a flight: what it was for, and who waits.
    pub(crate) fn end(&mut self, id: FlightId) -> Option<(Flight<K, W>, Vec<W>)> {
        let mut flight = self.flights.remove(&id)?;
        if flight.keep {
            self.by_key.remove(&flight.key);
        }
        let waiters = std::mem::take(&mut flight.waiters).into();
        Some((flight, waiters))
    }

    pub(crate) fn fail(&mut self, id: FlightId, failure: Failure) -> Landing<W> {
        if failure == Failure::Leader
            && let Some(next) = self.flights.get_mut(&id).and_then(|flight| flight.waiters.pop_front())
        {
            return Landing::Promote(next);
        }
        Landing::Wake(self.end(id).map_or(Vec::new(), |(_, waiters)| waiters))
    }

    /// Lets flights land without being kept, and nobody else join them.
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
