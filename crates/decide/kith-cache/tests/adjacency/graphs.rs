//! Tests that a live graph answers like the same graph loaded into memory: lists, lengths, postings, members and whole
//! plans.

use crate::dice::{Dice, runs};
use crate::twin::{IDS, TYPES, edge, kind, lists, types};
use kith_cache::adjacency::{Adjacency, AdjacencyOptions, AdjacencyReader};
use kith_live::{AssociationKey, GraphTypes, ListKey};
use kith_operators::{Operator, Scratch, Share, Value, evaluate, testing::MemoryGraph};
use kith_schema::{EdgeSelector, KindRole, NeighbourSource};
use kith_types::{Direction, LogPoint, PartitionCount, PartitionId, partition_of_id};
use std::collections::BTreeSet;

/// The name of a type, the name of its inverse, and the edges of the type.
type Edges = Vec<(&'static str, Option<&'static str>, Vec<(u64, u64)>)>;

fn edges(dice: &mut Dice) -> Edges {
    let mut some = || (0..dice.below(40)).map(|_| (dice.below(IDS), dice.below(IDS))).collect();
    vec![
        ("friend", Some("friend"), some()),
        ("follows", Some("followed_by"), some()),
        ("likes", Some("liked_by"), some()),
        ("seen", None, some()),
    ]
}

/// The objects are half of the ids, and those ends of edges whose own partition does not know the edge.
fn objects(edges: &Edges) -> BTreeSet<u64> {
    let one_sided = edges.iter().filter(|(_, inverse, _)| inverse.is_none());
    let with_themselves = edges.iter().flat_map(|(.., edges)| edges).filter(|(from, to)| from == to);
    let ends = one_sided.flat_map(|(.., edges)| edges).chain(with_themselves).map(|(_, to)| *to);
    ends.chain((0..IDS).step_by(2)).collect()
}

fn live(types: &GraphTypes, count: PartitionCount, edges: &Edges) -> AdjacencyReader {
    let mut keys = BTreeSet::new();
    for (name, inverse, edges) in edges {
        for &(id1, id2) in edges {
            keys.insert(ListKey { id1, kind: kind(types, name) }.to(id2));
            keys.extend(inverse.map(|name| ListKey { id1: id2, kind: kind(types, name) }.to(id1)));
        }
    }
    let graph = Adjacency::new(count, types, AdjacencyOptions::default());
    let (objects, at) = (objects(edges), LogPoint::new(1, 1));
    for partition in count.iter() {
        let here = |id: u64| partition_of_id(id, count) == partition;
        let objects: Vec<u64> = objects.iter().copied().filter(|id| here(*id)).collect();
        let keys: Vec<AssociationKey> = keys.iter().copied().filter(|key| here(key.list.id1)).collect();
        let mut build = graph.open(partition);
        build.objects(at, &objects, true).unwrap();
        build.associations(at, &keys, true).unwrap();
        graph.install(build).unwrap();
    }
    graph.reader(count.iter().map(|partition| (partition, None))).unwrap()
}

fn loaded(count: PartitionCount, edges: &Edges) -> MemoryGraph {
    let mut graph = MemoryGraph::new(count);
    graph.add_members(objects(edges));
    for (name, inverse, edges) in edges {
        let symmetric = *inverse == Some(*name);
        let role = if symmetric { KindRole::Undirected } else { KindRole::Directed };
        graph.add_kind(name, role, edges);
        if let Some(inverse) = inverse.filter(|_| !symmetric) {
            let reversed: Vec<(u64, u64)> = edges.iter().map(|&(from, to)| (to, from)).collect();
            graph.add_kind(inverse, KindRole::Directed, &reversed);
        }
    }
    graph
}

/// Returns plans of each kind that read the lists of this selector. `back` selects the same edges in the opposite
/// direction.
fn plans(dice: &mut Dice, edge: &EdgeSelector, back: &EdgeSelector) -> Vec<Operator> {
    let expand = |edge: &EdgeSelector| {
        Box::new(Operator::Expand { input: Box::new(Operator::Keys), edge: edge.clone(), longest: 5 })
    };
    let postings = Operator::Postings { id: dice.below(IDS), edge: back.clone() };
    vec![
        *expand(edge),
        Operator::Count(expand(edge)),
        Operator::Union(expand(edge)),
        Operator::Tally(expand(edge)),
        Operator::Neighbourhood { input: Box::new(postings.clone()), edge: edge.clone() },
        Operator::Intersect(vec![postings.clone(), Operator::ALL_MEMBERS]),
        Operator::Except { input: Box::new(Operator::ALL_MEMBERS), drop: vec![1, 2, 3] },
        Operator::Exists(Box::new(postings)),
    ]
}

fn compare(dice: &mut Dice, live: &AdjacencyReader, loaded: &MemoryGraph, edge: &EdgeSelector) {
    assert_eq!(lists(live, edge), lists(loaded, edge), "{edge:?}");
    let count = NeighbourSource::partition_count(live);
    for partition in count.iter() {
        for id in 0..IDS {
            let (mut got, mut expected) = (vec![], vec![]);
            live.postings(edge, partition, id, &mut got).unwrap();
            loaded.postings(edge, partition, id, &mut expected).unwrap();
            assert_eq!(got, expected, "{edge:?} {partition} {id}");
        }
    }
    let back = EdgeSelector { direction: edge.direction.reverse(), ..edge.clone() };
    let back = if edge.kind == "seen" { edge } else { &back };
    let keys: Vec<u64> = (0..IDS).filter(|_| dice.once_in(2)).collect();
    let partitions: Vec<PartitionId> = count.iter().filter(|_| dice.once_in(2)).collect();
    let share = Share { keys: &keys, partitions: &partitions };
    for plan in plans(dice, edge, back) {
        let value = |source| evaluate(&plan, &share, source, &mut Scratch::new(), &|| false);
        assert_eq!(value(live), value(loaded), "{plan:?}");
    }
}

/// Compares the ends of all edges of some keys with those that the edges themselves have.
fn compare_ends(dice: &mut Dice, live: &AdjacencyReader, edges: &Edges) {
    let followed =
        [("friend", true, true), ("follows", true, true), ("likes", true, false), ("seen", true, false)];
    let keys: Vec<u64> = (0..IDS).filter(|_| dice.once_in(2)).collect();
    let (mut selectors, mut expected) = (Vec::new(), BTreeSet::new());
    for (name, is_out, is_in) in followed.into_iter().filter(|_| dice.once_in(2)) {
        let direction = if is_in { Direction::Both } else { Direction::Out };
        selectors.push(edge(name, direction));
        let of_type = edges.iter().filter(|(kind, ..)| *kind == name).flat_map(|(.., edges)| edges);
        for (from, to) in of_type {
            expected.extend((is_out && keys.contains(from)).then_some(*to));
            expected.extend((is_in && keys.contains(to)).then_some(*from));
        }
    }
    let share = Share { keys: &keys, partitions: &[] };
    let reached = evaluate(&Operator::Reach(selectors), &share, live, &mut Scratch::new(), &|| false);
    assert_eq!(reached, Ok(Value::Set(expected.into_iter().collect())));
}

#[test]
fn a_live_graph_answers_as_the_same_graph_in_memory() {
    let types = types(TYPES);
    for seed in 0..runs(1_000) {
        let mut dice = Dice(seed);
        let count = PartitionCount::new(1 + dice.below(4) as u32).unwrap();
        let edges = edges(&mut dice);
        let (live, loaded) = (live(&types, count, &edges), loaded(count, &edges));
        for partition in count.iter() {
            let (mut got, mut expected) = (vec![], vec![]);
            live.members(partition, &mut got).unwrap();
            loaded.members(partition, &mut expected).unwrap();
            assert_eq!(got, expected, "seed {seed}");
        }
        for name in ["friend", "follows", "followed_by", "likes"] {
            for direction in [Direction::Out, Direction::In, Direction::Both] {
                if name == "friend" && direction != Direction::Both {
                    continue;
                }
                compare(&mut dice, &live, &loaded, &edge(name, direction));
            }
        }
        compare(&mut dice, &live, &loaded, &edge("seen", Direction::Out));
        compare_ends(&mut dice, &live, &edges);
    }
}
