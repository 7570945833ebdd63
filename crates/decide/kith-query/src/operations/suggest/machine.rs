//! People you may know: the members of the second degree, ranked by the number of first-degree members whose lists contain
//! them.

use super::SuggestQuery;
use crate::{
    GraphAnswer, Input, OperationError, OperationStep, Outline,
    operations::{
        limits::SUGGESTIONS_MAX,
        machine::{
            HasMachine, Machine,
            ask::{FIRST_DEGREE, ask, ask_list, expand, list_of, union_kind},
            range::within,
            resolve::Resolver,
        },
    },
};
use kith_operators::{Operator, Value};
use kith_schema::EdgeSelector;
use kith_types::{FanOutKind, Workflow};
use std::cmp::Reverse;

const TALLY: &str = "second-degree tally";

/// A suggestion query under way.
#[derive(Debug)]
pub(crate) struct Suggest {
    id: u64,
    edge: EdgeSelector,
    k: usize,
    workflow: Workflow,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Start,
    First,
    Tally { first: Vec<u64> },
    Over,
}

impl Suggest {
    pub(super) fn new(
        id: u64,
        edge: EdgeSelector,
        k: u32,
        workflow: Workflow,
    ) -> Result<Self, OperationError> {
        within("k", u64::from(k), 1, u64::from(SUGGESTIONS_MAX), "1 to 10000")?;
        Ok(Self { id, edge, k: k as usize, workflow, state: State::Start })
    }
}

impl HasMachine for SuggestQuery {
    fn machine(&self, names: &Resolver<'_>) -> Result<Box<dyn Machine>, OperationError> {
        Ok(Box::new(Suggest::new(self.id, names.edge()?, self.k, names.query.workflow)?))
    }
}

impl Machine for Suggest {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match (std::mem::replace(&mut self.state, State::Over), input) {
            (State::Start, _) => {
                self.state = State::First;
                Ok(ask_list(FIRST_DEGREE, self.id, &self.edge))
            }
            (State::First, input) => {
                let first = list_of(self.id, input)?;
                if first.is_empty() {
                    return Ok(OperationStep::Done(GraphAnswer::Suggestions(Vec::new())));
                }
                let plan = Operator::Tally(Box::new(expand(&self.edge, u64::MAX)));
                let step = ask(TALLY, union_kind(self.workflow), first.clone(), plan);
                self.state = State::Tally { first };
                Ok(step)
            }
            (State::Tally { first }, Input::Value(Value::Tallies { ids, counts })) => {
                let other = |id: u64| id != self.id && first.binary_search(&id).is_err();
                let tallies = ids.into_iter().zip(counts).filter(|&(id, _)| other(id)).collect();
                Ok(OperationStep::Done(GraphAnswer::Suggestions(top(tallies, self.k))))
            }
            _ => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let single = Some(FanOutKind::SingleKey);
        let tally = Some(union_kind(self.workflow));
        vec![
            Outline { purpose: FIRST_DEGREE, kind: single, reach: "the member", when: "" },
            Outline {
                purpose: TALLY,
                kind: tally,
                reach: "each of its connections",
                when: "it has connections",
            },
        ]
    }
}

/// The `k` with the highest counts, ties by ascending id. `O(n + k log k)`.
fn top(mut tallies: Vec<(u64, u32)>, k: usize) -> Vec<(u64, u32)> {
    let rank = |&(id, count): &(u64, u32)| (Reverse(count), id);
    if k < tallies.len() {
        tallies.select_nth_unstable_by_key(k, rank);
        tallies.truncate(k);
    }
    tallies.sort_unstable_by_key(rank);
    tallies
}
