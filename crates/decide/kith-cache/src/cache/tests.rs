//! Examples, each of one behaviour of the network cache.

use super::*;
use kith_types::StoreVersion;

type Cache = NetworkCache<u64, char, u32>;

const V1: Origin = Origin { component: StoreVersion(1), graph: StoreVersion(1) };
const V2: Origin = Origin { component: StoreVersion(2), graph: StoreVersion(2) };
/// The versions after a load of another edge type.
const V1_LATER: Origin = Origin { component: StoreVersion(1), graph: StoreVersion(2) };

fn at(seconds: u64) -> Timestamp {
    Timestamp(Duration::from_secs(seconds))
}

/// Returns a cache with room for ten entries of weight 0, which are fresh for 10 s and then stale for 5 s.
fn cache() -> Cache {
    let overhead = Queues::<u64, Kept<char>>::OVERHEAD;
    let (fresh_for, stale_for) = (Duration::from_secs(10), Duration::from_secs(5));
    Cache::new(CacheOptions { bytes_max: 10 * overhead, fresh_for, stale_for })
}

fn fetch(cache: &mut Cache, key: u64, version: Origin) -> FlightId {
    match cache.get(&key, version, at(0), Mode::Use) {
        Lookup::Fetch(flight) => flight,
        other => panic!("{other:?}"),
    }
}

fn fill(cache: &mut Cache, key: u64, version: Origin, value: char) {
    let flight = fetch(cache, key, version);
    assert!(cache.filled(flight, value, Basis::Component, 0, at(0)).is_empty());
}

fn get(cache: &mut Cache, key: u64, version: Origin) -> Lookup<char> {
    cache.get(&key, version, at(0), Mode::Use)
}

#[test]
fn only_the_first_to_miss_fetches_and_all_who_wait_are_woken() {
    let mut cache = cache();
    let flight = fetch(&mut cache, 7, V1);
    for waiter in [1, 2] {
        assert_eq!(get(&mut cache, 7, V1), Lookup::Join(flight));
        assert_eq!(cache.join(flight, waiter), Ok(()));
    }
    assert_eq!(cache.filled(flight, 'a', Basis::Component, 0, at(0)), [1, 2]);
    assert_eq!(cache.join(flight, 3), Err(3), "too late: it must look again");
    assert_eq!(get(&mut cache, 7, V1), Lookup::Hit('a'));
    let counters = cache.counters();
    assert_eq!((counters.misses, counters.joined, counters.hits, counters.flights), (1, 2, 1, 0));
    assert_eq!(counters.hit_rate(), Some(0.25));
}

#[test]
fn a_leader_that_goes_hands_over_to_who_waits_longest() {
    let mut cache = cache();
    let flight = fetch(&mut cache, 7, V1);
    cache.join(flight, 1).unwrap();
    cache.join(flight, 2).unwrap();
    assert_eq!(cache.failed(flight, Failure::Leader), AfterFailure::Promote(1));
    assert_eq!(get(&mut cache, 7, V1), Lookup::Join(flight), "the flight goes on");
    assert_eq!(cache.failed(flight, Failure::Leader), AfterFailure::Promote(2));
    assert_eq!(cache.failed(flight, Failure::Leader), AfterFailure::Wake(vec![]), "nobody is left");
    assert_ne!(fetch(&mut cache, 7, V1), flight);
}

#[test]
fn a_failure_that_is_everyones_wakes_all_and_is_not_kept() {
    let mut cache = cache();
    let flight = fetch(&mut cache, 7, V1);
    cache.join(flight, 1).unwrap();
    assert_eq!(cache.failed(flight, Failure::Everyone), AfterFailure::Wake(vec![1]));
    fetch(&mut cache, 7, V1);
}

#[test]
fn a_stale_entry_is_served_at_once_and_asks_for_one_refresh() {
    let mut cache = cache();
    fill(&mut cache, 7, V1, 'a');
    assert_eq!(cache.get(&7, V1, at(10), Mode::Use), Lookup::Hit('a'));
    let Lookup::Stale('a', Some(flight)) = cache.get(&7, V1, at(11), Mode::Use) else { panic!("no refresh") };
    assert_eq!(cache.get(&7, V1, at(12), Mode::Use), Lookup::Stale('a', None), "one refresh is enough");
    assert!(cache.filled(flight, 'b', Basis::Component, 0, at(13)).is_empty());
    assert_eq!(cache.get(&7, V1, at(23), Mode::Use), Lookup::Hit('b'));
}

#[test]
fn a_failed_refresh_leaves_the_stale_entry_until_its_time_is_over() {
    let mut cache = cache();
    fill(&mut cache, 7, V1, 'a');
    let Lookup::Stale(_, Some(flight)) = cache.get(&7, V1, at(11), Mode::Use) else { panic!("no refresh") };
    assert_eq!(cache.failed(flight, Failure::Everyone), AfterFailure::Wake(vec![]));
    assert!(matches!(cache.get(&7, V1, at(15), Mode::Use), Lookup::Stale('a', Some(_))));
    assert!(matches!(cache.get(&7, V1, at(16), Mode::Use), Lookup::Join(_)), "beyond: wait for the refresh");
}

#[test]
fn the_default_keeps_an_entry_for_as_long_as_its_version() {
    let mut cache = Cache::new(CacheOptions::default());
    fill(&mut cache, 7, V1, 'a');
    assert_eq!(cache.get(&7, V1, Timestamp(Duration::MAX), Mode::Use), Lookup::Hit('a'));
}

#[test]
fn another_version_is_a_miss_either_way() {
    let mut cache = cache();
    fill(&mut cache, 7, V1, 'a');
    let newer = fetch(&mut cache, 7, V2);
    assert_eq!(cache.counters().entries, 0, "the old entry went at once");
    let older = fetch(&mut cache, 7, V1);
    assert!(cache.filled(newer, 'b', Basis::Component, 0, at(0)).is_empty());
    assert!(cache.filled(older, 'a', Basis::Component, 0, at(0)).is_empty());
    assert_eq!(get(&mut cache, 7, V2), Lookup::Hit('b'), "the older value was not kept over it");
    assert_eq!(cache.counters().refused, 1);
}

#[test]
fn a_load_of_another_component_leaves_what_rests_on_this_one() {
    let mut cache = cache();
    fill(&mut cache, 7, V1, 'a');
    let flight = fetch(&mut cache, 8, V1);
    assert!(cache.filled(flight, 'b', Basis::Graph, 0, at(0)).is_empty());
    cache.supersede(|_| Some(V1_LATER));
    assert_eq!(get(&mut cache, 7, V1_LATER), Lookup::Hit('a'));
    fetch(&mut cache, 8, V1_LATER);
    assert_eq!(cache.counters().expired, 1, "whether 8 is a member may have changed");
}

#[test]
fn superseded_entries_make_room_first_and_their_flights_are_not_kept() {
    let mut cache = cache();
    (0..9).for_each(|key| fill(&mut cache, key, V1, 'a'));
    let flight = fetch(&mut cache, 90, V1);
    cache.join(flight, 1).unwrap();
    fill(&mut cache, 20, V2, 'b');
    cache.supersede(|_| Some(V2));
    assert_eq!(cache.filled(flight, 'c', Basis::Component, 0, at(0)), [1], "who waits still gets it");
    (30..39).for_each(|key| fill(&mut cache, key, V2, 'd'));
    assert_eq!((cache.counters().entries, cache.counters().evictions), (10, 9));
    assert_eq!(get(&mut cache, 20, V2), Lookup::Hit('b'), "only superseded entries left");
}

#[test]
fn a_flight_that_was_disowned_is_joined_by_nobody_new() {
    let mut cache = cache();
    let flight = fetch(&mut cache, 7, V1);
    cache.supersede(|&key| (key != 7).then_some(V1));
    let other = fetch(&mut cache, 7, V1);
    assert_ne!(flight, other);
    assert!(cache.filled(flight, 'a', Basis::Component, 0, at(0)).is_empty());
    assert_eq!(get(&mut cache, 7, V1), Lookup::Join(other));
}

#[test]
fn forgotten_keys_are_gone() {
    let mut cache = cache();
    (0..4).for_each(|key| fill(&mut cache, key, V1, 'a'));
    cache.supersede(|key| (key % 2 == 1).then_some(V1));
    assert_eq!((cache.counters().entries, get(&mut cache, 1, V1)), (2, Lookup::Hit('a')));
    fetch(&mut cache, 0, V1);
}

#[test]
fn bypass_touches_nothing_and_refresh_replaces() {
    let mut cache = cache();
    fill(&mut cache, 7, V1, 'a');
    assert_eq!(cache.get(&7, V1, at(0), Mode::Bypass), Lookup::Bypass);
    let Lookup::Fetch(flight) = cache.get(&7, V1, at(0), Mode::Refresh) else { panic!("no fetch") };
    assert_eq!(cache.get(&7, V1, at(0), Mode::Refresh), Lookup::Join(flight));
    assert_eq!(get(&mut cache, 7, V1), Lookup::Hit('a'), "readers do not wait for it");
    assert!(cache.filled(flight, 'b', Basis::Component, 0, at(0)).is_empty());
    assert_eq!(get(&mut cache, 7, V1), Lookup::Hit('b'));
}

#[test]
fn a_value_heavier_than_the_cache_is_handed_on_but_not_kept() {
    let mut cache = cache();
    fill(&mut cache, 1, V1, 'a');
    let flight = fetch(&mut cache, 7, V1);
    cache.join(flight, 5).unwrap();
    assert_eq!(cache.filled(flight, 'b', Basis::Component, 1 << 20, at(0)), [5]);
    assert_eq!((cache.counters().refused, get(&mut cache, 1, V1)), (1, Lookup::Hit('a')));
}

#[test]
fn one_pass_of_strangers_leaves_the_popular_ones() {
    let mut cache = cache();
    for key in 0..5 {
        fill(&mut cache, key, V1, 'a');
        assert_eq!(get(&mut cache, key, V1), Lookup::Hit('a'));
    }
    (100..200).for_each(|key| fill(&mut cache, key, V1, 'z'));
    for key in 0..5 {
        assert_eq!(get(&mut cache, key, V1), Lookup::Hit('a'), "{key} was asked twice");
    }
}

#[test]
fn one_that_comes_back_soon_stays() {
    let mut cache = cache();
    (0..11).for_each(|key| fill(&mut cache, key, V1, 'a'));
    fill(&mut cache, 0, V1, 'b');
    (100..200).for_each(|key| fill(&mut cache, key, V1, 'z'));
    assert_eq!(get(&mut cache, 0, V1), Lookup::Hit('b'), "it was a ghost, so it went to the main queue");
}

#[test]
fn what_a_rollback_took_out_of_service_does_not_keep_the_older_version_out() {
    let mut cache = cache();
    fill(&mut cache, 7, V2, 'b');
    // A rollback to version 1.
    cache.supersede(|_| Some(V1));
    fill(&mut cache, 7, V1, 'a');
    assert_eq!(get(&mut cache, 7, V1), Lookup::Hit('a'));
}
