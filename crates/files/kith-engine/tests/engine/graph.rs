//! Compares graph readers with plain maps.

use crate::example::{Example, read_lists};
use kith_engine::{ComponentReader, GraphReader};
use kith_schema::{EdgeList, EdgeSelector, KindRole, NeighbourSource, SourceError};
use kith_types::{Direction, PartitionId, partition_of_id};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

const DIRECTIONS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];

/// The directions that make sense for the role.
fn directions(role: KindRole) -> &'static [Direction] {
    match role {
        KindRole::Entity => &DIRECTIONS[..2],
        _ => &DIRECTIONS,
    }
}

/// Four components of one graph, each in its own folder.
struct Graph {
    examples: Vec<Example>,
    dirs: Vec<tempfile::TempDir>,
    members: BTreeSet<u64>,
}

impl Graph {
    fn new(partition_count: u32, members: u64, edges: u64) -> Self {
        let example = |name, role| Example::new(name, role, partition_count, members, edges);
        let mut examples = vec![
            example("connection", KindRole::Undirected),
            example("follows", KindRole::Directed),
            example("school", KindRole::Entity),
            example("members", KindRole::MembersOnly),
        ];
        // Members that only one component has.
        examples[1].members.insert(999_001);
        examples[3].members.insert(999_002);
        let dirs: Vec<_> = examples.iter().map(|_| tempfile::tempdir().unwrap()).collect();
        examples.iter().zip(&dirs).for_each(|(example, dir)| drop(example.write(dir.path())));
        let members = examples.iter().flat_map(|example| example.members.iter().copied()).collect();
        Self { examples, dirs, members }
    }

    fn open(&self, partitions: &[PartitionId]) -> GraphReader {
        let open = |dir: &tempfile::TempDir| Arc::new(ComponentReader::open(dir.path(), partitions).unwrap());
        GraphReader::new(self.examples[0].count(), self.dirs.iter().map(open).collect()).unwrap()
    }
}

#[test]
fn every_list_of_every_role_and_direction_is_right() {
    for (partition_count, members, edges) in [(1, 3, 4), (4, 300, 2_000), (24, 200, 5_000)] {
        let graph = Graph::new(partition_count, members, edges);
        let source = graph.open(&graph.examples[0].partitions());
        let entities = 5_000_000..5_000_020u64;
        let keys: Vec<u64> =
            graph.members.iter().copied().chain(entities).chain(1..200).chain([u64::MAX, 0]).collect();
        for example in &graph.examples {
            for &direction in directions(example.role) {
                for low in [0, 25, 1_000] {
                    let got = read_lists(&source, &example.selector(direction, low), &keys).unwrap();
                    for (&key, got) in keys.iter().zip(got) {
                        let expected = example.answer(direction, key, low, &graph.members);
                        assert_eq!(got, expected, "{} {direction:?} {key} from {low}", example.name);
                    }
                }
            }
        }
    }
}

#[test]
fn edges_come_with_the_values_of_their_columns() {
    let graph = Graph::new(4, 300, 2_000);
    let source = graph.open(&graph.examples[0].partitions());
    let keys: Vec<u64> = graph.members.iter().copied().chain([u64::MAX]).collect();
    for example in graph.examples.iter().filter(|example| example.role != KindRole::MembersOnly) {
        for &direction in directions(example.role) {
            if (example.role, direction) == (KindRole::Directed, Direction::Both) {
                let selector = example.selector(direction, 0);
                let got = source.edges(&selector, &[], &keys, &mut |_, _| ControlFlow::Continue(()));
                assert_eq!(got, Err(SourceError::TwoLists { kind: example.name.to_owned() }));
                continue;
            }
            // An undirected type has only one list.
            let kept = if example.role == KindRole::Undirected { Direction::Both } else { direction };
            let lists = example.lists(kept);
            for low in [0, 25] {
                let mut index = 0;
                let mut check = |at: usize, list: Option<EdgeList<'_>>| {
                    assert_eq!(at, index);
                    let ids = example.answer(direction, keys[at], low, &graph.members);
                    assert_eq!(list.map(|list| list.ids.to_vec()), ids, "{} {direction:?}", example.name);
                    if let Some(EdgeList { ids, columns }) = list {
                        let time = |id: &u64| lists[&keys[at]][id];
                        assert!(
                            columns.iter().all(|column| *column == ids.iter().map(time).collect::<Vec<_>>())
                        );
                        assert_eq!(columns.len(), 2);
                    }
                    index += 1;
                    ControlFlow::Continue(())
                };
                let selector = example.selector(direction, low);
                source.edges(&selector, &["time", "time"], &keys, &mut check).unwrap();
                assert_eq!(index, keys.len());
            }
        }
    }
    let unknown = SourceError::UnknownColumn { kind: "connection".to_owned(), column: "weight".to_owned() };
    let selector = graph.examples[0].selector(Direction::Both, 0);
    let got = source.edges(&selector, &["weight"], &keys, &mut |_, _| ControlFlow::Continue(()));
    assert_eq!(got, Err(unknown));
}

#[test]
fn postings_are_the_inverse_of_the_lists() {
    for (partition_count, members, edges) in [(1, 3, 4), (1, 2_000, 9_000), (7, 300, 3_000)] {
        let graph = Graph::new(partition_count, members, edges);
        let source = graph.open(&graph.examples[0].partitions());
        for example in &graph.examples {
            for &direction in directions(example.role) {
                let far: BTreeSet<u64> =
                    example.lists(Direction::Both).keys().copied().chain([0, 77, u64::MAX]).collect();
                for low in [0, 25] {
                    let edge = example.selector(direction, low);
                    let list = if example.role == KindRole::Undirected { Direction::Both } else { direction };
                    let lists = example.lists(list);
                    let total = |partition| source.total(&edge, partition).unwrap();
                    let passing = lists.values().flat_map(|list| list.values()).filter(|time| **time >= low);
                    if example.role != KindRole::Entity || direction == Direction::Out {
                        let totals = example.partitions().into_iter().map(total).sum::<u64>();
                        assert_eq!(totals, passing.count() as u64, "{} {direction:?} {low}", example.name);
                    }
                    for &id in far.iter().take(60) {
                        let mut got = Vec::new();
                        for partition in example.partitions() {
                            let mut part = vec![42];
                            source.postings(&edge, partition, id, &mut part).unwrap();
                            assert!(part[1..].is_sorted());
                            got.extend_from_slice(&part[1..]);
                        }
                        got.sort_unstable();
                        let holds = |list: &std::collections::BTreeMap<u64, u64>| {
                            list.get(&id).is_some_and(|&time| time >= low)
                        };
                        let expected: Vec<u64> =
                            lists.iter().filter(|(_, list)| holds(list)).map(|(&key, _)| key).collect();
                        assert_eq!(got, expected, "{} {direction:?} {id}", example.name);
                    }
                }
            }
        }
    }
}

#[test]
fn every_member_is_in_its_partition_whatever_component_knows_it() {
    let graph = Graph::new(7, 300, 3_000);
    let held = &graph.examples[0].partitions()[..5];
    let source = graph.open(held);
    for partition in graph.examples[0].partitions() {
        let mut got = Vec::new();
        let read = source.members(partition, &mut got);
        if !held.contains(&partition) {
            assert_eq!(source.member_count(partition), Err(SourceError::NotOwner { partition }));
            assert_eq!(read, Err(SourceError::NotOwner { partition }));
            continue;
        }
        let here = |id: &&u64| partition_of_id(**id, graph.examples[0].count()) == partition;
        assert_eq!(source.member_count(partition), Ok(got.len() as u64));
        assert_eq!(got, graph.members.iter().filter(here).copied().collect::<Vec<_>>());
    }
}

#[test]
fn a_hub_in_every_list_spans_many_blocks_of_postings() {
    let mut example = Example::new("connection", KindRole::Undirected, 1, 3, 0);
    example.members = (1..=5_000).collect();
    // Each member has three neighbours: 1, one far beyond any gap, and one of its own.
    for id in 2..=5_000 {
        example.edges.insert((1, id), id % 9);
        example.edges.insert((id, u64::MAX - id % 2), 3);
    }
    example.members.extend([u64::MAX, u64::MAX - 1]);
    let dir = tempfile::tempdir().unwrap();
    example.write(dir.path());
    let source = example.open(dir.path()).unwrap();
    let lists = example.lists(Direction::Both);
    for id in [0, 1, 2, 5_000, 5_001, u64::MAX - 2, u64::MAX - 1, u64::MAX] {
        let mut got = Vec::new();
        source.postings(&example.selector(Direction::Both, 0), PartitionId(0), id, &mut got).unwrap();
        let expected: Vec<u64> =
            lists.get(&id).map(|list| list.keys().copied().collect()).unwrap_or_default();
        assert_eq!(got, expected, "{id}");
    }
}

#[test]
fn a_partition_that_is_not_held_is_not_an_absence() {
    let graph = Graph::new(4, 100, 400);
    let held = PartitionId(2);
    let source = graph.open(&[held]);
    let count = graph.examples[0].count();
    for example in &graph.examples {
        let edge = example.selector(Direction::Out, 0);
        for &key in &graph.members {
            let partition = partition_of_id(key, count);
            let got = read_lists(&source, &edge, &[key]);
            match partition == held {
                true => assert!(got.is_ok()),
                false => assert_eq!(got, Err(SourceError::NotOwner { partition })),
            }
        }
        let not_held = PartitionId(3);
        let got = source.postings(&edge, not_held, 5, &mut Vec::new());
        assert_eq!(got, Err(SourceError::NotOwner { partition: not_held }));
    }
}

#[test]
fn unknown_names_are_reported() {
    let graph = Graph::new(2, 10, 20);
    let source = graph.open(&graph.examples[0].partitions());
    let edge = EdgeSelector { kind: "likes".to_owned(), direction: Direction::Out, filter: None };
    assert_eq!(read_lists(&source, &edge, &[1]), Err(SourceError::UnknownKind { kind: "likes".to_owned() }));
    let mut edge = graph.examples[0].selector(Direction::Both, 3);
    edge.filter.as_mut().unwrap().column = "weight".to_owned();
    assert_eq!(
        read_lists(&source, &edge, &[1]),
        Err(SourceError::UnknownColumn { kind: "connection".to_owned(), column: "weight".to_owned() })
    );
    assert_eq!(source.schema().default_edge_type().unwrap().name, "connection");
}

#[test]
fn reading_ends_when_the_caller_breaks_off() {
    let graph = Graph::new(1, 3_000, 3_000);
    let source = graph.open(&graph.examples[0].partitions());
    let keys: Vec<u64> = graph.members.iter().copied().collect();
    for example in &graph.examples {
        let mut calls = 0;
        let each = &mut |index: usize, _: Option<&[u64]>| {
            calls += 1;
            if index == 1_500 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        source.lists(&example.selector(Direction::Out, 0), &keys, each).unwrap();
        assert_eq!(calls, 1_501);
    }
}

#[test]
fn warming_stays_within_its_budget() {
    let graph = Graph::new(2, 500, 3_000);
    let reader = ComponentReader::open(graph.dirs[0].path(), &graph.examples[0].partitions()).unwrap();
    let all = reader.manifest().bytes_of(&graph.examples[0].partitions());
    assert_eq!(reader.warm(0), 0);
    // Loading counts whole pages, and the ends of packs.
    assert!((all..all + 4 * 4_096).contains(&reader.warm(u64::MAX)));
    assert!(reader.warm(all / 2) <= all / 2);
}
