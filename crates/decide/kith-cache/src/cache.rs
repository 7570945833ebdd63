//! The network cache: look-through on a miss, stale-while-revalidate on expiry, limited in bytes (Moolle, Algorithm 1,
//! lines 16 to 23).
//!
//! An entry carries the version of the component that it was read from, and serves no other version. Therefore no
//! answer mixes two versions, and a load of another component leaves the entry in place. The operator sets the lifetime
//! of entries. By default they do not expire, because a version never changes.

use crate::flights::{AfterFailure, Failure, FlightId, Flights};
use crate::origin::Source;
use crate::queues::Queues;
use crate::{Basis, CacheCounters, Origin};
use kith_types::Timestamp;
use std::time::Duration;

/// The size of a cache, and the times for which it keeps entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// The most bytes of all entries together, including their keys and bookkeeping.
    pub bytes_max: u64,
    /// The time for which an entry is fresh after it was filled.
    pub fresh_for: Duration,
    /// The time after that for which an entry is served as stale, while one refresh is requested.
    pub stale_for: Duration,
}

impl Default for CacheOptions {
    /// The default size is 256 MiB, which is about a thousand networks of 250,000 members. Entries are fresh as long as
    /// their version is served.
    fn default() -> Self {
        Self { bytes_max: 256 << 20, fresh_for: Duration::MAX, stale_for: Duration::ZERO }
    }
}

/// The way in which a query uses the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Reads and fills the cache.
    #[default]
    Use,
    /// Neither reads nor fills the cache.
    Bypass,
    /// Fills the cache again, or joins a fetch under way.
    Refresh,
}

/// The action that the caller must take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<V> {
    /// Use the value.
    Hit(V),
    /// Use the value. If there is a flight, also start a fetch that nobody waits for, and report its outcome.
    Stale(V, Option<FlightId>),
    /// Fetch the value, and report the outcome with `filled` or `failed`.
    Fetch(FlightId),
    /// A fetch is under way: call [`NetworkCache::join`] and wait.
    Join(FlightId),
    /// Fetch the value, and report nothing.
    Bypass,
}

/// The network cache of one router. `V` should be cheap to clone, such as an `Arc`; `W` is a waiter. A key includes its
/// graph, because versions are compared for equal keys only.
#[derive(Debug)]
pub struct NetworkCache<K, V, W> {
    options: CacheOptions,
    queues: Queues<K, Kept<V>>,
    flights: Flights<(K, Origin), W>,
    counters: CacheCounters,
}

/// A value, the version that it was read from, and the time at which it was filled.
#[derive(Debug)]
struct Kept<V> {
    source: Source,
    value: V,
    filled: Timestamp,
}

/// The age of an entry.
#[derive(PartialEq, Eq)]
enum Age {
    Fresh,
    Stale,
    Over,
}

impl<K: Clone + Ord, V: Clone, W> NetworkCache<K, V, W> {
    /// Returns an empty cache.
    pub fn new(options: CacheOptions) -> Self {
        let queues = Queues::new(options.bytes_max);
        Self { options, queues, flights: Flights::new(), counters: CacheCounters::default() }
    }

    /// Looks up a key for a query that has pinned `origin`.
    pub fn get(&mut self, key: &K, origin: Origin, now: Timestamp, mode: Mode) -> Lookup<V> {
        match mode {
            Mode::Bypass => {
                self.counters.bypassed += 1;
                Lookup::Bypass
            }
            Mode::Refresh => self.fetch_or_join(key, origin),
            Mode::Use => match self.look(key, origin, now) {
                Some((value, Age::Fresh)) => {
                    self.counters.hits += 1;
                    Lookup::Hit(value)
                }
                Some((value, _)) => {
                    self.counters.stale += 1;
                    Lookup::Stale(value, self.refresh(key, origin))
                }
                None => self.fetch_or_join(key, origin),
            },
        }
    }

    /// Waits for a flight.
    ///
    /// # Errors
    /// Returns the waiter if the flight has ended by now; the caller must look up again.
    pub fn join(&mut self, flight: FlightId, waiter: W) -> Result<(), W> {
        self.flights.join(flight, waiter)
    }

    /// Ends a flight with its value, and returns the waiters. `basis` says what the value depends on. `weight` is the
    /// heap memory of the value and the key in bytes. The value is not kept if it is too heavy, or if its version was
    /// superseded in the meantime.
    pub fn filled(
        &mut self,
        flight: FlightId,
        value: V,
        basis: Basis,
        weight: usize,
        now: Timestamp,
    ) -> Vec<W> {
        let Some((flight, waiters)) = self.flights.end(flight) else { return Vec::new() };
        let (key, origin) = flight.key;
        // Versions can also go back: an entry whose version was rolled back must not keep this value out.
        let newer = !self.queues.is_over(&key)
            && self.queues.get(&key).is_some_and(|entry| origin < entry.value.source.origin);
        let source = Source { origin, basis };
        let kept = match flight.keep && !newer {
            true => self.queues.insert(key, Kept { source, value, filled: now }, weight as u64),
            false => None,
        };
        self.counters.note_kept(kept);
        waiters
    }

    /// Ends a flight without a value. An existing entry of the key stays until it expires.
    pub fn failed(&mut self, flight: FlightId, failure: Failure) -> AfterFailure<W> {
        self.counters.failures += 1;
        self.flights.fail(flight, failure)
    }

    /// Reports which versions new queries pin for each key. Entries of other versions can only serve queries under way,
    /// so they are evicted first, and the results of flights for other versions of the component are not kept. Entries
    /// of keys that `current` does not know, such as those of a dropped graph, are removed at once. `O(entries)`.
    pub fn supersede(&mut self, current: impl Fn(&K) -> Option<Origin>) {
        self.counters.expired += self.queues.remove_all(|key| current(key).is_none());
        self.queues.set_over(|key, kept| current(key).is_some_and(|current| !kept.source.serves(current)));
        self.flights.disown(|(key, origin)| current(key).is_none_or(|it| it.component != origin.component));
    }

    /// Returns the counters since the start, and the current contents.
    pub fn counters(&self) -> CacheCounters {
        CacheCounters {
            entries: self.queues.len() as u64,
            bytes: self.queues.total_bytes(),
            flights: self.flights.len() as u64,
            ..self.counters
        }
    }

    /// Returns the entry if it serves this version now. Removes an entry that can serve no later query.
    fn look(&mut self, key: &K, wanted: Origin, now: Timestamp) -> Option<(V, Age)> {
        let kept = &self.queues.get(key)?.value;
        let age = self.age(kept, now);
        if kept.source.is_older_than(wanted) || age == Age::Over {
            self.queues.remove(key);
            self.counters.expired += 1;
            return None;
        }
        if !kept.source.serves(wanted) {
            return None;
        }
        let value = kept.value.clone();
        self.queues.touch(key);
        Some((value, age))
    }

    fn age(&self, kept: &Kept<V>, now: Timestamp) -> Age {
        let CacheOptions { fresh_for, stale_for, .. } = self.options;
        match now.since(kept.filled) {
            age if age <= fresh_for => Age::Fresh,
            age if age <= fresh_for.saturating_add(stale_for) => Age::Stale,
            _ => Age::Over,
        }
    }

    fn fetch_or_join(&mut self, key: &K, origin: Origin) -> Lookup<V> {
        if let Some(flight) = self.flights.find(&(key.clone(), origin)) {
            self.counters.joined += 1;
            return Lookup::Join(flight);
        }
        self.counters.misses += 1;
        Lookup::Fetch(self.flights.start((key.clone(), origin)))
    }

    /// Starts a flight for a stale entry, unless one is under way.
    fn refresh(&mut self, key: &K, origin: Origin) -> Option<FlightId> {
        if self.flights.find(&(key.clone(), origin)).is_some() {
            return None;
        }
        self.counters.refreshes += 1;
        Some(self.flights.start((key.clone(), origin)))
    }
}

#[cfg(test)]
mod tests;
