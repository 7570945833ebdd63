//! The memory of an evaluation is bounded, even if a small request has a large result.

use super::{Evaluator, held::EvaluationMemory};
use crate::testing::MemoryGraph;
use crate::values::Watch;
use crate::{EvaluateError, Operator, Scratch, Share, Value};
use kith_schema::{EdgeSelector, KindRole};
use kith_types::{Direction, PartitionCount, PartitionId};

const MEMBERS: u64 = 200;

/// A graph of this many members in which everyone is connected with everyone.
fn clique() -> MemoryGraph {
    let mut graph = MemoryGraph::new(PartitionCount::new(4).expect("4 is a valid count"));
    let edges: Vec<(u64, u64)> =
        (0..MEMBERS).flat_map(|from| (0..from).map(move |to| (from << 24, to << 24))).collect();
    graph.add_kind("connection", KindRole::Undirected, &edges);
    graph
}

fn edge() -> EdgeSelector {
    EdgeSelector { kind: "connection".into(), direction: Direction::Both, filter: None }
}

fn expand(input: Operator) -> Box<Operator> {
    Box::new(Operator::Expand { input: Box::new(input), edge: edge(), longest: u64::MAX })
}

fn within(
    bytes_max: usize,
    plan: &Operator,
    share: Share<'_>,
    scratch: &mut Scratch,
) -> Result<Value, EvaluateError> {
    let cancelled = || false;
    let (watch, held) = (Watch::new(&cancelled), EvaluationMemory::new(bytes_max));
    Evaluator { share, source: &clique(), scratch, watch, held }.run(plan)
}

fn run(bytes_max: usize, plan: &Operator) -> Result<Value, EvaluateError> {
    let keys: Vec<u64> = (0..MEMBERS).rev().map(|id| id << 24).collect();
    let partitions: Vec<PartitionId> = (0..4).map(PartitionId).collect();
    let share = Share { keys: &keys, partitions: &partitions };
    within(bytes_max, plan, share, &mut Scratch::new())
}

/// Checks the least bound that suffices for each plan, in members' ids.
#[test]
fn what_is_held_at_once_has_a_bound_whatever_the_plan() {
    let union = || Operator::Union(expand(Operator::Keys));
    let members = || Operator::ALL_MEMBERS;
    let neighbourhood = Operator::Neighbourhood { input: Box::new(Operator::Keys), edge: edge() };
    let all = MEMBERS as usize;
    let list = size_of::<crate::ListEntry>() / size_of::<u64>();
    for (plan, ids) in [
        (Operator::Keys, all),
        (members(), all),
        (union(), all),
        (*expand(Operator::Keys), all * (all - 1 + list)),
        (Operator::Count(expand(Operator::Keys)), all * list),
        // The expanded keys are held, except those of the request.
        (*expand(members()), all + all * (all - 1 + list)),
        (Operator::Union(expand(members())), 2 * all),
        (neighbourhood, 2 * all),
        (Operator::Tally(expand(Operator::Keys)), all + all / 2),
        (Operator::Intersect(vec![union(), union()]), 2 * all),
        (Operator::Intersect(vec![union(), members()]), 2 * all),
        (Operator::Limit { input: Box::new(members()), count: 1 }, all),
        (Operator::Exists(Box::new(Operator::Intersect(vec![union(), union(), members()]))), 2 * all),
    ] {
        let enough = ids * size_of::<u64>();
        let value = run(enough, &plan);
        assert!(value.is_ok(), "{plan:?}: {value:?}");
        let max = enough - 1;
        assert_eq!(run(max, &plan), Err(EvaluateError::TooLarge { max }), "{plan:?}");
    }
}

#[test]
fn an_evaluation_that_was_refused_leaves_nothing_behind() {
    let keys = [0];
    let share = Share { keys: &keys, partitions: &[] };
    let mut scratch = Scratch::new();
    for plan in [Operator::Union(expand(Operator::Keys)), Operator::Tally(expand(Operator::Keys))] {
        let got = within(8, &plan, share, &mut scratch);
        assert_eq!(got, Err(EvaluateError::TooLarge { max: 8 }));
        let after = within(1 << 20, &plan, share, &mut scratch);
        match after.expect("it fits") {
            Value::Set(ids) | Value::Tallies { ids, .. } => assert_eq!(ids.len() as u64, MEMBERS - 1),
            other => panic!("{other:?}"),
        }
    }
}
