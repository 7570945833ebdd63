//! Examples of what queries see, and of special cases that nodes meet.

use crate::twin::{Log, Rows, TYPES, edge, kind, lists, types};
use kith_cache::adjacency::{Adjacency, AdjacencyOptions, BuildError, InstallError, Progress, Window};
use kith_live::{Change, Effect, GraphTypes, ListKey};
use kith_schema::{ColumnRange, EdgeSelector, NeighbourSource, SourceError};
use kith_types::{Direction, LogPoint, PartitionCount, PartitionId, Timestamp, fmix64};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

const HERE: PartitionId = PartitionId(0);

fn at(position: u64) -> LogPoint {
    LogPoint::new(1, position)
}

fn seconds(seconds: u64) -> Timestamp {
    Timestamp(Duration::from_secs(seconds))
}

/// Returns a graph of one partition with these associations, at position 0.
fn graph(types: &GraphTypes, options: AdjacencyOptions, rows: &[(u64, &str, u64)]) -> Adjacency {
    let graph = Adjacency::new(PartitionCount::new(1).unwrap(), types, options);
    build(&graph, types, rows);
    graph
}

fn build(graph: &Adjacency, types: &GraphTypes, rows: &[(u64, &str, u64)]) {
    let key = |&(id1, name, id2): &(u64, &str, u64)| ListKey { id1, kind: kind(types, name) }.to(id2);
    let keys: BTreeSet<_> = rows.iter().map(key).collect();
    let mut build = graph.open(HERE);
    build.objects(at(0), &[], true).unwrap();
    build.associations(at(0), &keys.into_iter().collect::<Vec<_>>(), true).unwrap();
    graph.install(build).unwrap();
}

fn put(types: &GraphTypes, id1: u64, name: &str, id2: u64) -> Change {
    let key = ListKey { id1, kind: kind(types, name) }.to(id2);
    Change { effects: vec![Rows::default().write(key, true).unwrap()] }
}

fn list(source: &dyn NeighbourSource, edge: &EdgeSelector, id: u64) -> Option<Vec<u64>> {
    lists(source, edge).unwrap()[id as usize].clone()
}

fn newest(graph: &Adjacency) -> impl NeighbourSource {
    graph.reader([(HERE, None)]).unwrap()
}

#[test]
fn in_an_open_graph_a_type_that_does_not_exist_has_no_edges() {
    let text = "[association.friend]\nsymmetric = true\n[association.hidden]\nadjacency = false\n";
    let types_of = |text: &str| GraphTypes::new(1, &text.parse().unwrap()).unwrap();
    let (open, closed) = (types_of(&format!("open = true\n{text}")), types_of(text));
    for direction in [Direction::Out, Direction::In, Direction::Both] {
        let source = graph(&open, AdjacencyOptions::default(), &[(3, "friend", 4)]);
        let source = newest(&source);
        assert_eq!(list(&source, &edge("late", direction), 3), Some(vec![]), "a member without edges");
        assert_eq!(list(&source, &edge("late", direction), 5), None, "no member");
        let hidden = lists(&source, &edge("hidden", direction)).unwrap_err();
        assert!(matches!(hidden, SourceError::UnknownKind { .. }), "{hidden}");
    }
    let source = graph(&closed, AdjacencyOptions::default(), &[]);
    let unknown = lists(&newest(&source), &edge("late", Direction::Out)).unwrap_err();
    assert!(matches!(unknown, SourceError::UnknownKind { .. }), "{unknown}");
}

#[test]
fn an_association_with_itself_makes_a_member_and_is_no_edge() {
    let types = types(TYPES);
    let graph = graph(&types, AdjacencyOptions::default(), &[(3, "friend", 3), (4, "hidden", 4)]);
    let (source, friend) = (newest(&graph), edge("friend", Direction::Both));
    assert_eq!(list(&source, &friend, 3), Some(vec![]));
    assert_eq!(list(&source, &friend, 4), None, "types without adjacency do not join");
    let (mut members, mut postings) = (vec![], vec![]);
    source.members(HERE, &mut members).unwrap();
    source.postings(&friend, HERE, 3, &mut postings).unwrap();
    assert_eq!((members, postings), (vec![3], vec![]));
}

#[test]
fn a_type_without_an_inverse_is_followed_along_out_only() {
    let types = types(TYPES);
    let graph = graph(&types, AdjacencyOptions::default(), &[(3, "seen", 5)]);
    let source = newest(&graph);
    assert_eq!(list(&source, &edge("seen", Direction::Out), 3), Some(vec![5]));
    assert_eq!(list(&source, &edge("seen", Direction::Out), 5), None, "only the partition of 3 knows");
    for direction in [Direction::In, Direction::Both] {
        let refused = SourceError::OneSided { kind: "seen".to_owned() };
        let edge = edge("seen", direction);
        assert_eq!(lists(&source, &edge), Err(refused.clone()));
        assert_eq!(source.postings(&edge, HERE, 5, &mut vec![]), Err(refused.clone()));
        let read = source.edges(&edge, &[], &[3], &mut |_, _| ControlFlow::Continue(()));
        assert_eq!(read, Err(refused));
    }
    let mut postings = vec![];
    source.postings(&edge("seen", Direction::Out), HERE, 5, &mut postings).unwrap();
    assert_eq!(postings, [3]);
}

#[test]
fn one_direction_with_adjacency_keeps_the_lists_of_both() {
    let types = types(TYPES);
    let graph = graph(&types, AdjacencyOptions::default(), &[(3, "likes", 5), (5, "liked_by", 3)]);
    let source = newest(&graph);
    assert_eq!(list(&source, &edge("likes", Direction::In), 5), Some(vec![3]));
    let unknown = SourceError::UnknownKind { kind: "liked_by".to_owned() };
    assert_eq!(lists(&source, &edge("liked_by", Direction::Out)), Err(unknown));
}

#[test]
fn associations_have_no_columns() {
    let types = types(TYPES);
    let graph = graph(&types, AdjacencyOptions::default(), &[(3, "follows", 5), (3, "followed_by", 6)]);
    let source = newest(&graph);
    let unknown = SourceError::UnknownColumn { kind: "follows".to_owned(), column: "time".to_owned() };
    let follows = edge("follows", Direction::Both);
    let read =
        |columns: &[&str]| source.edges(&follows, columns, &[3], &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(read(&["time"]), Err(unknown.clone()));
    assert_eq!(read(&[]), Err(SourceError::TwoLists { kind: "follows".to_owned() }));
    let filter = Some(ColumnRange { column: "time".to_owned(), low: 0, high: 9 });
    assert_eq!(lists(&source, &EdgeSelector { filter, ..follows }), Err(unknown));
}

#[test]
fn a_partition_is_not_here_or_not_built_or_read() {
    let types = types(TYPES);
    let count = PartitionCount::new(2).unwrap();
    let graph = Adjacency::new(count, &types, AdjacencyOptions::default());
    let reader = |partition| graph.reader([(partition, None)]).map(|reader| reader.points());
    assert_eq!(reader(HERE), Err(SourceError::NotOwner { partition: HERE }));
    let first = graph.open(HERE);
    assert_eq!(reader(HERE), Err(SourceError::NotBuilt { partition: HERE }));
    assert_eq!(graph.apply(HERE, at(1), &Change::default(), seconds(0)), None);
    assert_eq!(graph.install(first), Err(InstallError::Incomplete { partition: HERE }));

    let (mut second, mut third) = (graph.open(HERE), graph.open(HERE));
    for build in [&mut second, &mut third] {
        build.objects(at(4), &[], true).unwrap();
        build.associations(at(4), &[], true).unwrap();
    }
    assert_eq!(graph.install(second), Err(InstallError::Superseded { partition: HERE }));
    graph.install(third).unwrap();
    assert_eq!(reader(HERE).unwrap(), [(HERE, at(4))].into());
    assert_eq!(graph.window(HERE), Some(Window { from: at(4), to: at(4) }));

    let source = graph.reader([(HERE, None)]).unwrap();
    let other = PartitionId(1);
    let not_here = Err(SourceError::NotOwner { partition: other });
    assert_eq!(source.members(other, &mut vec![]), not_here);
    let friend = edge("friend", Direction::Both);
    assert_eq!(source.postings(&friend, other, 3, &mut vec![]), not_here);
    let elsewhere = (0..).find(|id| kith_types::partition_of_id(*id, count) == other).unwrap();
    let read = source.lists(&friend, &[elsewhere], &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(read, not_here);

    graph.close(HERE);
    assert_eq!(reader(HERE), Err(SourceError::NotOwner { partition: HERE }));
    assert_eq!(source.members(HERE, &mut vec![]), Ok(()), "readers keep what they read");
    let late = graph.open(HERE);
    graph.close(HERE);
    assert_eq!(graph.install(late), Err(InstallError::Incomplete { partition: HERE }));
}

#[test]
fn undo_information_is_bounded_in_number_and_in_time() {
    let types = types(TYPES);
    let options = AdjacencyOptions { undo_for: Duration::from_secs(10), undo_max: 4 };
    let graph = graph(&types, options, &[]);
    let apply = |position, now| {
        let change = put(&types, 3, "friend", 100 + position);
        assert_eq!(graph.apply(HERE, at(position), &change, now), Some(Progress::Applied));
    };
    let old = graph.reader([(HERE, None)]).unwrap();
    apply(1, seconds(0));
    apply(2, seconds(5));
    let friend = edge("friend", Direction::Both);
    assert_eq!(list(&old, &friend, 3), None);
    apply(3, seconds(6));
    assert_eq!(graph.window(HERE), Some(Window { from: at(1), to: at(3) }), "two changes of two places each");
    let refused = SourceError::PositionUnavailable { partition: HERE, at: at(0), from: at(1), to: at(3) };
    assert_eq!(lists(&old, &friend), Err(refused));
    graph.forget(seconds(16));
    assert_eq!(graph.window(HERE), Some(Window { from: at(2), to: at(3) }));
    let read = |position| graph.reader([(HERE, Some(at(position)))]).map(|it| list(&it, &friend, 3));
    assert_eq!(read(2), Ok(Some(vec![101, 102])));
    assert_eq!(read(3), Ok(Some(vec![101, 102, 103])));
    assert!(matches!(read(1), Err(SourceError::PositionUnavailable { .. })));
    assert!(matches!(read(4), Err(SourceError::PositionUnavailable { .. })), "it was not applied yet");
}

#[test]
fn undo_information_outlives_many_terms_in_a_bounded_way() {
    let types = types(TYPES);
    let graph = graph(&types, AdjacencyOptions::default(), &[]);
    for term in 2..60 {
        assert_eq!(graph.begin_term(HERE, LogPoint::new(term, 0)), Some(Progress::Applied));
    }
    let window = graph.window(HERE).unwrap();
    assert!(LogPoint::new(30, 0) < window.from && window.to == LogPoint::new(59, 0), "{window:?}");
    assert!(graph.reader([(HERE, Some(window.from))]).is_ok());
}

#[test]
fn a_sent_change_of_a_later_term_must_follow_what_was_applied() {
    let types = types(TYPES);
    let graph = graph(&types, AdjacencyOptions::default(), &[]);
    let change = put(&types, 3, "friend", 4);
    let point = LogPoint::new(2, 1);
    let send = |after| graph.apply_after(HERE, (after, point), &change, seconds(0));
    assert_eq!(send(LogPoint::new(2, 0)), Some(Progress::Gap { after: at(0) }));
    assert_eq!(send(at(0)), Some(Progress::Applied));
    assert_eq!(send(at(0)), Some(Progress::Known));
}

#[test]
fn adjacency_that_is_switched_on_needs_a_build_and_a_new_type_does_not() {
    let old = types(TYPES);
    let graph = graph(&old, AdjacencyOptions::default(), &[(3, "hidden", 5)]);
    let evolve = |types: &GraphTypes, text: &str| types.evolve(&text.parse().unwrap()).unwrap().0;
    let text = format!("{TYPES}\n[association.knows]\nsymmetric = true\n");
    let newer = evolve(&old, &text);
    // The new type is written before this node learns of it.
    let change = put(&newer, 3, "knows", 4);
    assert_eq!(graph.apply(HERE, at(1), &change, seconds(0)), Some(Progress::Applied));
    let knows = edge("knows", Direction::Both);
    assert!(matches!(lists(&newest(&graph), &knows), Err(SourceError::UnknownKind { .. })));
    assert!(!graph.needs_rebuild(&newer));
    graph.set_types(&newer);
    assert_eq!(list(&newest(&graph), &knows, 3), Some(vec![4]));

    let off = "[association.hidden]\n    adjacency = false";
    let on = evolve(&newer, &text.replace(off, "[association.hidden]"));
    assert!(graph.needs_rebuild(&on));
    assert_eq!(graph.rebuilds(&on), [HERE]);
    graph.set_types(&on);
    let hidden = edge("hidden", Direction::Out);
    assert_eq!(lists(&newest(&graph), &hidden), Err(SourceError::NotBuilt { partition: HERE }));
    assert_eq!(list(&newest(&graph), &knows, 3), Some(vec![4]), "other types are read meanwhile");
    build(&graph, &on, &[(3, "hidden", 5)]);
    assert!(!graph.needs_rebuild(&on));
    assert_eq!(list(&newest(&graph), &hidden, 3), Some(vec![5]));

    graph.set_types(&newer);
    assert!(matches!(lists(&newest(&graph), &hidden), Err(SourceError::UnknownKind { .. })));
    assert_eq!(list(&newest(&graph), &knows, 3), None, "its associations do not join any more");
}

#[test]
fn pages_that_are_disordered_or_old_are_refused() {
    let types = types(TYPES);
    let graph = Adjacency::new(PartitionCount::new(1).unwrap(), &types, AdjacencyOptions::default());
    let mut build = graph.open(HERE);
    assert_eq!(build.apply(at(1), &Change::default()), Ok(Progress::Known));
    build.objects(at(5), &[2, 4], false).unwrap();
    assert_eq!(build.objects(at(5), &[4], false), Err(BuildError::Disordered));
    assert_eq!(build.objects(at(5), &[6, 6], false), Err(BuildError::Disordered));
    let old = Err(BuildError::OldPage { at: at(4), applied: at(5) });
    assert_eq!(build.objects(at(4), &[6], false), old);
    assert_eq!(build.apply(at(7), &Change::default()), Ok(Progress::Gap { after: at(5) }));
    build.objects(at(9), &[], true).unwrap();
    assert_eq!(build.objects(at(9), &[8], true), Err(BuildError::Disordered));
    // A later term that began before the page was read ended the page's history.
    assert_eq!(build.apply(at(6), &Change::default()), Ok(Progress::Applied));
    let lost = Err(BuildError::HistoryLost);
    assert_eq!(build.begin_term(LogPoint::new(2, 6)), lost);
}

#[test]
fn a_hub_is_read_as_it_was() {
    let types = types(TYPES);
    let graph = graph(&types, AdjacencyOptions::default(), &[]);
    let (friend, hub) = (edge("friend", Direction::Both), 3);
    let mut twin = BTreeSet::new();
    let mut readers = Vec::new();
    for position in 1..30_000u64 {
        let id = 1_000 + fmix64(position) % 20_000;
        let key = ListKey { id1: hub, kind: kind(&types, "friend") }.to(id);
        let now = kith_live::Association { id2: id, time: 0, stamp: at(position), data: Default::default() };
        let (list, count) = (key.list, 0);
        let effect = match twin.insert(id) {
            true => Effect::Association { list, now, was: None, count },
            false => {
                twin.remove(&id);
                Effect::NoAssociation { list, id2: id, was: 0, count }
            }
        };
        _ = graph.apply(HERE, at(position), &Change { effects: vec![effect] }, seconds(0));
        if position % 1_000 == 0 {
            readers.push((graph.reader([(HERE, None)]).unwrap(), twin.clone()));
            readers.drain(..readers.len().saturating_sub(7));
        }
    }
    for (reader, twin) in readers {
        assert_eq!(list(&reader, &friend, hub), Some(twin.into_iter().collect()));
    }
    assert!(100_000 < graph.bytes());
}

#[test]
fn a_log_of_the_tests_knows_its_history() {
    let mut log = Log::new(HERE, PartitionCount::new(1).unwrap());
    (0..4).for_each(|_| log.push(vec![], Rows::default()));
    log.begin_term(3, 2);
    log.push(vec![], Rows::default());
    assert!(log.after(at(2)).is_some_and(|changes| changes.len() == 1));
    assert!(log.after(at(3)).is_none() && log.after(LogPoint::new(3, 3)).is_some_and(<[_]>::is_empty));
}
