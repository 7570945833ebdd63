//! Tests of the caches through the trait by which sessions ask them.

use super::{CachedLists, CachedNetworks};
use kith_operators::{ListEntry, Network, NetworkKey, Operator, Value};
use kith_query::{CacheMode, FanOut, QueryError, Scope};
use kith_routing::{StoreReach, placement::uniform_table};
use kith_schema::EdgeSelector;
use kith_session::{CacheLookup, CacheUse, ResultCache};
use kith_topology::{Pin, PinnedState};
use kith_types::{Direction, FanOutKind, PartitionCount, StoreVersion};
use std::{collections::BTreeMap, sync::Arc};

fn graph(version: u64) -> PinnedState {
    let partitions = PartitionCount::new(4).expect("a valid count");
    let table = uniform_table(1, 1, partitions, 7).expect("a valid layout");
    PinnedState {
        name: "g".to_owned(),
        pin: Pin::Version(version),
        components: Arc::new(BTreeMap::from([("follows".to_owned(), StoreVersion(version))])),
        what: "graph",
        reach: StoreReach::new(&table, "g", None, &[]),
    }
}

fn at(pinned: &PinnedState) -> CacheUse<'_> {
    CacheUse { pinned, mode: CacheMode::Use }
}

fn key() -> NetworkKey {
    NetworkKey { id: 5, edge_type: "follows".to_owned(), direction: Direction::Out }
}

fn network() -> Arc<Network> {
    Arc::new(Network::new(5, vec![1], &[1, 2, 5]))
}

fn lists_of(keys: &[u64]) -> FanOut {
    let edge = EdgeSelector { kind: "follows".into(), direction: Direction::Out, filter: None };
    let plan = Operator::Expand { input: Box::new(Operator::Keys), edge, longest: u64::MAX };
    FanOut { purpose: "lists", kind: FanOutKind::NonUnion, scope: Scope::Keys(keys.to_vec()), plan }
}

#[tokio::test]
async fn queries_for_one_network_share_a_fetch_and_the_next_takes_over_if_it_is_given_up() {
    let (networks, pinned) = (CachedNetworks::for_tests(), graph(3));
    let CacheLookup::Rest { keeper: first, .. } = networks.network(at(&pinned), &key()) else {
        panic!("a miss")
    };
    let CacheLookup::Awaited(second) = networks.network(at(&pinned), &key()) else { panic!("it is awaited") };
    let CacheLookup::Awaited(gone) = networks.network(at(&pinned), &key()) else { panic!("it is awaited") };
    let CacheLookup::Awaited(third) = networks.network(at(&pinned), &key()) else { panic!("it is awaited") };
    drop(gone);
    // The query that fetches is cancelled.
    drop(first);
    let CacheLookup::Rest { keeper, .. } = second.await else { panic!("it fetches now") };
    // An answer that lacks partitions is for its own caller only, so the next query fetches again.
    keeper.keep(network(), false);
    let CacheLookup::Rest { keeper, .. } = third.await else { panic!("it fetches now") };
    assert_eq!(keeper.keep(network(), true).first(), [1]);
    let CacheLookup::Whole(kept) = networks.network(at(&pinned), &key()) else { panic!("a hit") };
    assert_eq!(kept.first(), [1]);
    assert!(matches!(networks.network(at(&graph(4)), &key()), CacheLookup::Rest { .. }), "another version");
}

#[tokio::test]
async fn an_error_ends_the_wait_of_others_unless_only_its_own_query_ran_out_of_time() {
    let (networks, pinned) = (CachedNetworks::for_tests(), graph(3));
    let CacheLookup::Rest { keeper, .. } = networks.network(at(&pinned), &key()) else { panic!("a miss") };
    let CacheLookup::Awaited(other) = networks.network(at(&pinned), &key()) else { panic!("it is awaited") };
    keeper.fail(&QueryError::DeadlineExceeded { deadline_ms: 5 });
    let CacheLookup::Rest { keeper, .. } = other.await else { panic!("it has more time, and fetches now") };
    let CacheLookup::Awaited(other) = networks.network(at(&pinned), &key()) else { panic!("it is awaited") };
    keeper.fail(&QueryError::Internal { detail: "lost".to_owned() });
    assert!(matches!(other.await, CacheLookup::Failed(QueryError::Internal { .. })));
}

#[test]
fn lists_that_are_known_are_not_fetched_and_those_that_come_are_kept() {
    let (lists, pinned) = (CachedLists::for_tests(1 << 20), graph(3));
    let CacheLookup::Rest { question, known_keys: 0, keeper } =
        lists.fan_out(at(&pinned), &lists_of(&[5, 6]))
    else {
        panic!("nothing is known")
    };
    assert_eq!(question.scope, Scope::Keys(vec![5, 6]));
    let answer = Value::Lists(vec![ListEntry::Ids(vec![1]), ListEntry::NotInGraph]);
    assert_eq!(keeper.keep(answer.clone(), true), answer);
    let CacheLookup::Rest { question, known_keys: 1, keeper } =
        lists.fan_out(at(&pinned), &lists_of(&[6, 5]))
    else {
        panic!("one list is known")
    };
    assert_eq!(question.scope, Scope::Keys(vec![6]));
    let whole = Value::Lists(vec![ListEntry::NotInGraph, ListEntry::Ids(vec![1])]);
    assert_eq!(keeper.keep(Value::Lists(vec![ListEntry::NotInGraph]), true), whole);
    let known = lists.fan_out(at(&pinned), &lists_of(&[5]));
    assert!(matches!(known, CacheLookup::Whole(Value::Lists(found)) if found == [ListEntry::Ids(vec![1])]));
    assert!(matches!(lists.fan_out(at(&graph(4)), &lists_of(&[5])), CacheLookup::Rest { known_keys: 0, .. }));
    let bypass = CacheUse { pinned: &pinned, mode: CacheMode::Bypass };
    assert!(matches!(lists.fan_out(bypass, &lists_of(&[5])), CacheLookup::Bypassed));
    let members = FanOut { plan: Operator::ALL_MEMBERS, ..lists_of(&[5]) };
    assert!(matches!(lists.fan_out(at(&pinned), &members), CacheLookup::Nothing), "no question for lists");
}
