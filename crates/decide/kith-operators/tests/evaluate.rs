//! Nodes evaluate plans that no operation makes, with failing sources and with callers that go away.

use kith_operators::{
    EdgesEntry, EdgesPlan, EvaluateError, ListEntry, Operator, Scratch, Share, Value, evaluate,
    testing::MemoryGraph,
};
use kith_schema::{ColumnRange, EdgeList, EdgeSelector, KindRole, NeighbourSource, SourceError};
use kith_types::{Direction, PartitionCount, PartitionId};
use std::cell::Cell;
use std::ops::ControlFlow;

/// 1 has edges to 2, 3 and 4; 2 has one to 3.
fn graph() -> MemoryGraph {
    let mut graph = MemoryGraph::new(PartitionCount::new(4).expect("4 is a valid count"));
    graph.add_kind("connection", KindRole::Undirected, &[(1, 2), (1, 3), (1, 4), (2, 3)]);
    graph.add_members([5]);
    graph
}

fn edge() -> EdgeSelector {
    EdgeSelector { kind: "connection".into(), direction: Direction::Both, filter: None }
}

fn expand(longest: u64) -> Box<Operator> {
    Box::new(Operator::Expand { input: Box::new(Operator::Keys), edge: edge(), longest })
}

fn postings(id: u64) -> Operator {
    Operator::Postings { id, edge: edge() }
}

fn run(plan: &Operator, keys: &[u64]) -> Result<Value, EvaluateError> {
    let partitions: Vec<PartitionId> = (0..4).map(PartitionId).collect();
    let share = Share { keys, partitions: &partitions };
    evaluate(plan, &share, &graph(), &mut Scratch::new(), &|| false)
}

#[test]
fn lists_tell_long_empty_and_unknown_apart() {
    let ids = |ids: &[u64]| ListEntry::Ids(ids.to_vec());
    let expected = vec![ListEntry::Longer(3), ids(&[1, 3]), ids(&[]), ListEntry::NotInGraph];
    assert_eq!(run(&expand(2), &[1, 2, 5, 6]), Ok(Value::Lists(expected)));
    let lengths = [3, 2, 0].map(ListEntry::Longer).to_vec();
    assert_eq!(run(&Operator::Count(expand(2)), &[1, 2, 5]), Ok(Value::Lists(lengths)));
}

#[test]
fn keys_alone_are_a_set() {
    assert_eq!(run(&Operator::Keys, &[5, 1, 3]), Ok(Value::Set(vec![1, 3, 5])));
}

#[test]
fn members_are_those_of_the_partitions_asked_for() {
    assert_eq!(run(&Operator::ALL_MEMBERS, &[]), Ok(Value::Set(vec![1, 2, 3, 4, 5])));
    assert_eq!(run(&Operator::Count(Box::new(Operator::ALL_MEMBERS)), &[]), Ok(Value::Count(5)));
    let without_edges = Operator::Except { input: Box::new(Operator::ALL_MEMBERS), drop: vec![1, 2, 3, 4] };
    assert_eq!(run(&without_edges, &[]), Ok(Value::Set(vec![5])));
    let known = Operator::Intersect(vec![Operator::ALL_MEMBERS, Operator::Ids(vec![4, 6])]);
    assert_eq!(run(&known, &[]), Ok(Value::Set(vec![4])));
}

#[test]
fn lists_are_counted_without_being_returned() {
    let total = |edges: Vec<EdgeSelector>| run(&Operator::Total(edges), &[]);
    assert_eq!(total(vec![edge()]), Ok(Value::Count(8)), "each of 4 edges is in two lists");
    assert_eq!(total(vec![edge(), edge()]), Ok(Value::Count(16)));
    assert_eq!(total(Vec::new()), Ok(Value::Count(0)));
    let unknown = EdgeSelector { kind: "visits".into(), ..edge() };
    assert!(matches!(total(vec![unknown]), Err(EvaluateError::Source(_))));
    let counted = Operator::CountElements(kith_schema::live::CountedElements::Objects(Vec::new()));
    assert!(matches!(run(&counted, &[]), Err(EvaluateError::LoadedGraph { .. })));
}

#[test]
fn unions_can_be_counted_thinned_out_and_cut() {
    let union = || Box::new(Operator::Union(expand(u64::MAX)));
    assert_eq!(run(&Operator::Count(union()), &[1, 2]), Ok(Value::Count(4)));
    let except = Operator::Except { input: union(), drop: vec![2, 3] };
    assert_eq!(run(&except, &[1, 2]), Ok(Value::Set(vec![1, 4])));
    let limit = Operator::Limit { input: union(), count: 2 };
    assert_eq!(run(&limit, &[1, 2]), Ok(Value::Set(vec![1, 2])));
    assert_eq!(run(&Operator::Exists(union()), &[5]), Ok(Value::Exists(false)));
    assert_eq!(run(&Operator::Exists(union()), &[5, 4]), Ok(Value::Exists(true)));
}

#[test]
fn a_union_meets_fixed_ids_in_either_order() {
    let union = || Operator::Union(expand(u64::MAX));
    for (ids, expected) in [(vec![3, 4, 9], vec![3, 4]), (vec![9], vec![])] {
        for inputs in [vec![union(), Operator::Ids(ids.clone())], vec![Operator::Ids(ids.clone()), union()]] {
            let plan = Operator::Intersect(inputs);
            assert_eq!(run(&plan, &[1, 2]), Ok(Value::Set(expected.clone())));
            let exists = Operator::Exists(Box::new(plan));
            assert_eq!(run(&exists, &[1, 2]), Ok(Value::Exists(!expected.is_empty())));
        }
    }
    let three = Operator::Intersect(vec![union(), Operator::Ids(vec![3, 4]), postings(2)]);
    assert_eq!(run(&three, &[1, 2]), Ok(Value::Set(vec![3])));
}

#[test]
fn tallies_lose_what_is_dropped_and_keep_their_counts() {
    let tally = Box::new(Operator::Tally(expand(u64::MAX)));
    let except = Operator::Except { input: tally, drop: vec![1, 2] };
    let expected = Value::Tallies { ids: vec![3, 4], counts: vec![2, 1] };
    assert_eq!(run(&except, &[1, 2]), Ok(expected));
}

#[test]
fn an_expansion_of_a_set_needs_no_keys() {
    let input = Box::new(Operator::Ids(vec![2, 4]));
    let plan = Operator::Union(Box::new(Operator::Expand { input, edge: edge(), longest: u64::MAX }));
    assert_eq!(run(&plan, &[]), Ok(Value::Set(vec![1, 3])));
}

#[test]
fn postings_meet_ids_and_lose_drops_partition_by_partition() {
    let both = || Operator::Intersect(vec![postings(1), postings(2)]);
    assert_eq!(run(&both(), &[]), Ok(Value::Set(vec![3])));
    let with_ids = Operator::Intersect(vec![postings(1), Operator::Ids(vec![2, 4, 5])]);
    assert_eq!(run(&with_ids, &[]), Ok(Value::Set(vec![2, 4])));
    assert_eq!(run(&Operator::Count(Box::new(with_ids)), &[]), Ok(Value::Count(2)));
    let none = Operator::Except { input: Box::new(both()), drop: vec![3] };
    assert_eq!(run(&Operator::Exists(Box::new(none)), &[]), Ok(Value::Exists(false)));
}

#[test]
fn faults_of_the_source_come_through() {
    let filter = ColumnRange { column: "time".into(), low: 0, high: 1 };
    let edge = EdgeSelector { filter: Some(filter), ..edge() };
    let plan = Operator::Postings { id: 1, edge };
    let fault = SourceError::UnknownColumn { kind: "connection".into(), column: "time".into() };
    assert_eq!(run(&plan, &[]), Err(EvaluateError::Source(fault)));
}

#[test]
fn a_share_that_names_something_twice_is_refused_before_anything_is_read() {
    let source = Endless { readings: Cell::new(0) };
    let evaluate = |plan: &Operator, keys: &[u64], partitions: &[PartitionId]| {
        let share = Share { keys, partitions };
        evaluate(plan, &share, &source, &mut Scratch::new(), &|| false)
    };
    let partitions = [PartitionId(0), PartitionId(1), PartitionId(0)];
    let repeated = Err(EvaluateError::Repeated { what: "partition", which: 0 });
    assert_eq!(evaluate(&Operator::ALL_MEMBERS, &[], &partitions), repeated);
    let max = PartitionCount::MAX as usize;
    let many = Err(EvaluateError::TooMany { what: "partitions", got: max + 1, max });
    assert_eq!(evaluate(&Operator::ALL_MEMBERS, &[], &vec![PartitionId(0); max + 1]), many);
    let repeated = Err(EvaluateError::Repeated { what: "key", which: 9 });
    assert_eq!(evaluate(&Operator::Union(expand(u64::MAX)), &[9, 1, 9], &[]), repeated);
    assert_eq!(source.readings.get(), 0);
}

/// A source of endless lists, which counts the reads.
struct Endless {
    readings: Cell<usize>,
}

const LIST: [u64; 1] = [7];

impl NeighbourSource for Endless {
    fn partition_count(&self) -> PartitionCount {
        PartitionCount::new(PartitionCount::MAX).expect("the most is a valid count")
    }

    fn lists(
        &self,
        _: &EdgeSelector,
        _: &[u64],
        each: &mut dyn FnMut(usize, Option<&[u64]>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        for index in 0.. {
            self.readings.set(self.readings.get() + 1);
            if each(index, Some(&LIST)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn edges(
        &self,
        _: &EdgeSelector,
        _: &[&str],
        _: &[u64],
        each: &mut dyn FnMut(usize, Option<EdgeList<'_>>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        for index in 0.. {
            self.readings.set(self.readings.get() + 1);
            if each(index, Some(EdgeList { ids: &LIST, columns: &[] })).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn postings(
        &self,
        _: &EdgeSelector,
        _: PartitionId,
        _: u64,
        out: &mut Vec<u64>,
    ) -> Result<(), SourceError> {
        self.readings.set(self.readings.get() + 1);
        out.push(7);
        Ok(())
    }

    fn members(&self, partition: PartitionId, out: &mut Vec<u64>) -> Result<(), SourceError> {
        self.postings(&edge(), partition, 7, out)
    }
}

#[test]
fn an_evaluation_that_nobody_waits_for_ends_soon_and_leaves_the_scratch_clean() {
    let mut scratch = Scratch::new();
    let edges = Operator::Edges(Box::new(EdgesPlan {
        edge: edge(),
        columns: Vec::new(),
        order_by: None,
        descending: false,
        after: None,
        limit: 10,
    }));
    for plan in [Operator::Union(expand(u64::MAX)), Operator::Tally(expand(u64::MAX)), edges] {
        let source = Endless { readings: Cell::new(0) };
        let cancelled = || 5_000 < source.readings.get();
        let share = Share { keys: &[1], partitions: &[] };
        let got = evaluate(&plan, &share, &source, &mut scratch, &cancelled);
        assert_eq!(got, Err(EvaluateError::Cancelled));
        assert!(source.readings.get() < 6_000, "{} lists were read", source.readings.get());
        let after =
            evaluate(&plan, &Share { keys: &[2], partitions: &[] }, &graph(), &mut scratch, &|| false);
        let clean = match after.expect("the graph has no fault") {
            Value::Set(ids) | Value::Tallies { ids, .. } => ids,
            Value::Edges(entries) => match &entries[..] {
                [EdgesEntry::Page(page)] => page.ids.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        assert_eq!(clean, [1, 3]);
    }
}

#[test]
fn a_push_that_nobody_waits_for_ends_between_partitions() {
    let source = Endless { readings: Cell::new(0) };
    let partitions: Vec<PartitionId> = (0..60_000).map(PartitionId).collect();
    let share = Share { keys: &[], partitions: &partitions };
    let cancelled = || 0 < source.readings.get();
    let plan = Operator::Count(Box::new(postings(1)));
    let got = evaluate(&plan, &share, &source, &mut Scratch::new(), &cancelled);
    assert_eq!(got, Err(EvaluateError::Cancelled));
    assert!(source.readings.get() < 1_000, "{} partitions were read", source.readings.get());
}

#[test]
fn an_existence_reads_no_further_than_its_proof() {
    let source = Endless { readings: Cell::new(0) };
    let partitions: Vec<PartitionId> = (0..100).map(PartitionId).collect();
    let share = Share { keys: &[1], partitions: &partitions };
    let exists = |plan| {
        let plan = Operator::Exists(Box::new(plan));
        evaluate(&plan, &share, &source, &mut Scratch::new(), &|| false).expect("the source has no fault")
    };
    assert_eq!(exists(Operator::Intersect(vec![postings(1), postings(2)])), Value::Exists(true));
    assert_eq!(source.readings.replace(0), 2, "two postings of the first partition");
    let union = Operator::Union(expand(u64::MAX));
    assert_eq!(exists(Operator::Intersect(vec![union, Operator::Ids(vec![7])])), Value::Exists(true));
    assert_eq!(source.readings.get(), 1, "the first list");
}
