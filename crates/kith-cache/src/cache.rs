//! The cache itself: look-through on a miss, stale-while-revalidate on expiry, bounded in
//! bytes (Moolle, Algorithm 1, lines 16 to 23).
//!
//! An entry carries the version of the component that it was read from and serves no other, so no answer
//! joins two versions, and a load of another component leaves it in place. Lifetimes are the operator's: the default keeps what it has,
//! as a version never changes.

use crate::flights::{Failure, FlightId, Flights, Landing};
use crate::origin::Source;
use crate::queues::Queues;
use crate::{Basis, CacheCounters, Origin};
use kith_types::Timestamp;
use std::time::Duration;

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Bytes of all entries together, their keys and places included.
    pub bytes_max: u64,
    /// An entry is fresh for this long after it was filled.
    pub fresh_for: Duration,
    /// And then served while one refresh is asked for, for this long.
    pub stale_for: Duration,
}

impl Default for CacheOptions {
    /// 256 MiB, about a thousand networks of 250,000 members; fresh for as long as the version.
    fn default() -> Self {
        Self { bytes_max: 256 << 20, fresh_for: Duration::MAX, stale_for: Duration::ZERO }
    }
}

/// How a query uses the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Read it, and fill it.
    #[default]
    Use,
    /// Neither read nor fill it.
    Bypass,
    /// Fill it anew, or wait for whoever does already.
    Refresh,
}

/// What the one who asks must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<V> {
    /// Use it.
    Hit(V),
    /// Use it; with a flight, also start a fetch that nobody waits for, and report how it ends.
    Stale(V, Option<FlightId>),
    /// Fetch it, and report how that ends with `filled` or `failed`.
    Fetch(FlightId),
    /// Somebody fetches it: [`NetworkCache::join`] and wait.
    Join(FlightId),
    /// Fetch it, and report nothing.
    Bypass,
}

/// The cache of one router. `V` is cheap to clone, such as an `Arc`; `W` stands for one who waits.
/// Keys say which graph they belong to: versions are compared for equal keys only.
#[derive(Debug)]
pub struct NetworkCache<K, V, W> {
    options: CacheOptions,
    queues: Queues<K, Kept<V>>,
    flights: Flights<(K, Origin), W>,
    counters: CacheCounters,
}

/// A value, what it was read from, and when.
#[derive(Debug)]
struct Kept<V> {
    source: Source,
    value: V,
    filled: Timestamp,
}

/// How old an entry is.
#[derive(PartialEq, Eq)]
enum Age {
    Fresh,
    Stale,
    Over,
}

impl<K: Clone + Ord, V: Clone, W> NetworkCache<K, V, W> {
    /// An empty cache.
    pub fn new(options: CacheOptions) -> Self {
        let queues = Queues::new(options.bytes_max);
        Self { options, queues, flights: Flights::new(), counters: CacheCounters::default() }
    }

    /// Looks a key up for a query that has pinned `origin`.
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
    /// The waiter itself, if the flight is over by now: look up again.
    pub fn join(&mut self, flight: FlightId, waiter: W) -> Result<(), W> {
        self.flights.join(flight, waiter)
    }

    /// Lands a flight with its value and the bytes that the value and the key hold on the heap. Returns who waits for it.
    /// `basis` says what the value depends on. A value that does not fit, or whose version was over before it landed, is
    /// not kept.
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
        // Versions go back too: what a rollback took out of service does not stand in the way.
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

    /// Ends a flight without a value. What was kept for the key stays for as long as it may.
    pub fn failed(&mut self, flight: FlightId, failure: Failure) -> Landing<W> {
        self.counters.failures += 1;
        self.flights.fail(flight, failure)
    }

    /// Tells what new queries pin for each key: entries that do not serve it are of use only to queries under way and
    /// make room first, and flights of other versions of the component are not kept. What is held for keys that
    /// `current` does not know, such as those of a dropped graph, goes at once. `O(entries)`.
    pub fn supersede(&mut self, current: impl Fn(&K) -> Option<Origin>) {
        self.counters.expired += self.queues.remove_all(|key| current(key).is_none());
        self.queues.set_over(|key, kept| current(key).is_some_and(|current| !kept.source.serves(current)));
        self.flights.disown(|(key, origin)| current(key).is_none_or(|it| it.component != origin.component));
    }

    /// What it has done so far, and what it holds.
    pub fn counters(&self) -> CacheCounters {
        CacheCounters {
            entries: self.queues.len() as u64,
            bytes: self.queues.total_bytes(),
            flights: self.flights.len() as u64,
            ..self.counters
        }
    }

    /// The entry, if it serves this version now. One that serves no later query is dropped.
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

    /// A flight for a stale entry, unless there is one.
    fn refresh(&mut self, key: &K, origin: Origin) -> Option<FlightId> {
        if self.flights.find(&(key.clone(), origin)).is_some() {
            return None;
        }
        self.counters.refreshes += 1;
        Some(self.flights.start((key.clone(), origin)))
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
