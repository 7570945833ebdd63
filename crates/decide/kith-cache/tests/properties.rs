//! Random histories against a twin that remembers everything. Every value that the cache serves was filled for that
//! key, at a version that may answer the query, and has not expired. Every waiter is woken once, and the memory stays
//! limited.

#![expect(clippy::unwrap_used, reason = "the twin fails by panicking")]

use kith_cache::{AfterFailure, Basis, CacheOptions, Failure, FlightId, Lookup, Mode, NetworkCache, Origin};
use kith_types::{StoreVersion, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Clone, Debug)]
enum Input {
    Get {
        key: u64,
        origin: Origin,
        mode: Mode,
    },
    /// Ends the flight at this index among those under way.
    Fill {
        flight: usize,
        basis: Basis,
        weight: usize,
    },
    Fail {
        flight: usize,
        failure: Failure,
    },
    Pass {
        seconds: u64,
    },
    /// New queries pin this version from now on, and one key no longer exists.
    Supersede {
        current: Origin,
        gone: u64,
    },
}

/// Loads of this component and of others in any order, and rollbacks.
fn origins() -> impl Strategy<Value = Origin> {
    (0..3u64, 0..3u64).prop_map(|(component, graph)| Origin {
        component: StoreVersion(component),
        graph: StoreVersion(graph),
    })
}

fn inputs() -> impl Strategy<Value = Input> {
    let mode = prop_oneof![8 => Just(Mode::Use), 1 => Just(Mode::Bypass), 1 => Just(Mode::Refresh)];
    let basis = prop_oneof![Just(Basis::Component), Just(Basis::Graph)];
    let failure = prop_oneof![Just(Failure::Leader), Just(Failure::Everyone)];
    prop_oneof![
        12 => (0..12u64, origins(), mode).prop_map(|(key, origin, mode)| Input::Get { key, origin, mode }),
        8 => (0..8usize, basis, 0..900usize)
            .prop_map(|(flight, basis, weight)| Input::Fill { flight, basis, weight }),
        2 => (0..8usize, failure).prop_map(|(flight, failure)| Input::Fail { flight, failure }),
        4 => (0..8u64).prop_map(|seconds| Input::Pass { seconds }),
        2 => (origins(), 0..24u64).prop_map(|(current, gone)| Input::Supersede { current, gone }),
    ]
}

const FRESH: Duration = Duration::from_secs(10);
const STALE: Duration = Duration::from_secs(5);

/// A value that identifies the fill that it came from.
type Fill = u64;

#[derive(Default)]
struct Twin {
    now: Timestamp,
    /// The last value that was filled for each key that may be served, and when.
    filled: BTreeMap<u64, Held>,
    flights: BTreeMap<FlightId, Flight>,
    next: u64,
}

#[derive(Clone, Copy)]
struct Held {
    origin: Origin,
    basis: Basis,
    value: Fill,
    at: Timestamp,
}

impl Held {
    /// The rule, stated independently: the component is the same, and so is the graph if the answer depends on it.
    fn serves(&self, wanted: Origin) -> bool {
        let same_graph = self.basis == Basis::Component || self.origin.graph == wanted.graph;
        self.origin.component == wanted.component && same_graph
    }
}

struct Flight {
    key: u64,
    origin: Origin,
    waiters: Vec<u64>,
    keep: bool,
}

struct Run {
    cache: NetworkCache<u64, Fill, u64>,
    twin: Twin,
    bytes_max: u64,
    /// Whether nothing is ever evicted, so that a hit is required and not only allowed.
    roomy: bool,
}

impl Run {
    fn new(bytes_max: u64, roomy: bool) -> Self {
        let options = CacheOptions { bytes_max, fresh_for: FRESH, stale_for: STALE };
        Self { cache: NetworkCache::new(options), twin: Twin::default(), bytes_max, roomy }
    }

    fn flight(&self, index: usize) -> Option<FlightId> {
        let flights = &self.twin.flights;
        (!flights.is_empty()).then(|| flights.keys().nth(index % flights.len()).copied()).flatten()
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Get { key, origin, mode } => self.get(key, origin, mode),
            Input::Fill { flight, basis, weight } => self.fill(flight, basis, weight),
            Input::Fail { flight, failure } => self.fail(flight, failure),
            Input::Pass { seconds } => self.twin.now = self.twin.now + Duration::from_secs(seconds),
            Input::Supersede { current, gone } => {
                self.cache.supersede(|&key| (key != gone).then_some(current));
                self.twin.filled.remove(&gone);
                let flights = self.twin.flights.values_mut();
                let over = flights.filter(|it| it.key == gone || it.origin.component != current.component);
                over.for_each(|flight| flight.keep = false);
            }
        }
        let counters = self.cache.counters();
        assert!(counters.bytes <= self.bytes_max, "{counters:?}");
        assert_eq!(counters.flights, self.twin.flights.len() as u64);
    }

    fn get(&mut self, key: u64, origin: Origin, mode: Mode) {
        let twin = &mut self.twin;
        let under_way = |id: &FlightId| {
            let flight = &twin.flights[id];
            flight.key == key && flight.origin == origin && flight.keep
        };
        let flying: Option<FlightId> = twin.flights.keys().copied().find(under_way);
        let held = twin.filled.get(&key).filter(|held| held.serves(origin) && mode == Mode::Use);
        let age = held.map(|held| (held.value, twin.now.since(held.at)));
        let fresh = age.filter(|&(_, age)| age <= FRESH).map(|(value, _)| value);
        let stale = age.filter(|&(_, age)| FRESH < age && age <= FRESH + STALE).map(|(value, _)| value);
        if mode == Mode::Use
            && twin.filled.get(&key).is_some_and(|held| {
                !held.serves(origin) && held.origin < origin || FRESH + STALE < twin.now.since(held.at)
            })
        {
            twin.filled.remove(&key);
        }
        let start = |twin: &mut Twin, id| {
            assert_eq!(flying, None, "two flights for one key");
            let flight = Flight { key, origin, waiters: Vec::new(), keep: true };
            assert!(twin.flights.insert(id, flight).is_none(), "a flight was used twice");
        };
        match self.cache.get(&key, origin, twin.now, mode) {
            Lookup::Hit(value) => assert_eq!(Some(value), fresh),
            Lookup::Stale(value, refresh) => {
                assert_eq!(Some(value), stale);
                assert_eq!(refresh.is_none(), flying.is_some());
                refresh.into_iter().for_each(|id| start(twin, id));
            }
            Lookup::Bypass => assert_eq!(mode, Mode::Bypass),
            lookup => {
                assert!(!self.roomy || fresh.or(stale).is_none(), "{lookup:?} although {key} is held");
                // Any entry of the key is gone or will be replaced.
                match lookup {
                    Lookup::Fetch(id) => start(twin, id),
                    Lookup::Join(id) => {
                        assert_eq!(Some(id), flying);
                        twin.next += 1;
                        assert_eq!(self.cache.join(id, twin.next), Ok(()));
                        twin.flights.get_mut(&id).unwrap().waiters.push(twin.next);
                    }
                    _ => unreachable!(),
                }
            }
        }
    }

    fn fill(&mut self, index: usize, basis: Basis, weight: usize) {
        let Some(id) = self.flight(index) else { return };
        let flight = self.twin.flights.remove(&id).unwrap();
        self.twin.next += 1;
        let (value, now) = (self.twin.next, self.twin.now);
        let refused = self.cache.counters().refused;
        assert_eq!(self.cache.filled(id, value, basis, weight, now), flight.waiters);
        let kept = self.cache.counters().refused == refused;
        assert!(flight.keep || !kept, "a disowned flight was kept");
        if kept {
            let held = Held { origin: flight.origin, basis, value, at: now };
            self.twin.filled.insert(flight.key, held);
        }
        if self.roomy && flight.keep {
            let held = self.twin.filled[&flight.key].origin;
            assert!(kept || flight.origin < held, "a value was refused for no reason");
        }
    }

    fn fail(&mut self, index: usize, failure: Failure) {
        let Some(id) = self.flight(index) else { return };
        let flight = self.twin.flights.get_mut(&id).unwrap();
        match self.cache.failed(id, failure) {
            AfterFailure::Promote(waiter) => {
                assert_eq!(failure, Failure::Leader);
                assert_eq!(waiter, flight.waiters.remove(0), "the one who waits longest");
            }
            AfterFailure::Wake(waiters) => {
                assert!(failure == Failure::Everyone || flight.waiters.is_empty());
                assert_eq!(waiters, flight.waiters);
                self.twin.flights.remove(&id);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_roomy_cache_serves_exactly_what_it_was_given(inputs in vec(inputs(), 0..200)) {
        let mut run = Run::new(1 << 30, true);
        inputs.into_iter().for_each(|input| run.take(input));
        prop_assert_eq!(run.cache.counters().evictions, 0);
    }

    #[test]
    fn a_tight_cache_stays_within_its_bytes_and_serves_nothing_else(inputs in vec(inputs(), 0..200)) {
        let mut run = Run::new(2_000, false);
        inputs.into_iter().for_each(|input| run.take(input));
    }

    #[test]
    fn equal_histories_leave_equal_caches(inputs in vec(inputs(), 0..100)) {
        let ends: BTreeSet<String> = (0..2).map(|_| {
            let mut run = Run::new(2_000, false);
            inputs.iter().cloned().for_each(|input| run.take(input));
            format!("{:?}", run.cache)
        }).collect();
        prop_assert_eq!(ends.len(), 1);
    }
}
