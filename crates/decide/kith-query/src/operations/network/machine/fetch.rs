//! The fetch of a member's second-degree network from the nodes (Moolle, Algorithm 2: first degree, then the union of its
//! lists).

use super::{NetworkPlan, answer};
use crate::{
    FanOut, Input, OperationError, OperationStep, Outline, Scope,
    operations::machine::{
        Machine,
        ask::{FIRST_DEGREE, ask, ask_list, list_of, set_of, union, union_kind},
    },
};
use kith_operators::{Network, NetworkKey, Operator, Value};
use kith_schema::EdgeSelector;
use kith_types::{FanOutKind, Workflow};
use std::sync::Arc;

const UNION: &str = "second-degree union";
const AT_ONCE: &str = "both degrees";

/// The fetch of a network from the nodes.
#[derive(Clone, Debug)]
pub(crate) struct NetworkFetch {
    id: u64,
    edge: EdgeSelector,
    workflow: Workflow,
    plan: NetworkPlan,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Start,
    /// Waits for both degrees.
    Both,
    /// Waits for the first degree.
    First,
    /// Waits for the union of its lists.
    Union {
        first: Vec<u64>,
    },
    Over,
}

impl NetworkFetch {
    pub(in crate::operations) fn new(key: NetworkKey, workflow: Workflow, plan: NetworkPlan) -> Self {
        let edge = EdgeSelector { kind: key.edge_type, direction: key.direction, filter: None };
        Self { id: key.id, edge, workflow, plan, state: State::Start }
    }

    fn ask_first(&mut self) -> OperationStep {
        self.state = State::First;
        ask_list(FIRST_DEGREE, self.id, &self.edge)
    }

    /// Asks every partition. Each node finds the connections of the member in its partitions: the members whose reversed
    /// lists contain it.
    fn ask_both(&self) -> OperationStep {
        let reversed = EdgeSelector { direction: self.edge.direction.reverse(), ..self.edge.clone() };
        let first = Box::new(Operator::Postings { id: self.id, edge: reversed });
        let plan = Operator::Neighbourhood { input: first, edge: self.edge.clone() };
        let kind = union_kind(self.workflow);
        OperationStep::FanOut(FanOut { purpose: AT_ONCE, kind, scope: Scope::Partitions, plan })
    }

    fn done(&self, first: Vec<u64>, union: &[u64]) -> OperationStep {
        OperationStep::Done(answer(Arc::new(Network::new(self.id, first, union)), true))
    }
}

impl Machine for NetworkFetch {
    fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start => match self.plan {
                NetworkPlan::InTurn => Ok(self.ask_first()),
                NetworkPlan::AtOnce => {
                    self.state = State::Both;
                    Ok(self.ask_both())
                }
            },
            State::Both => {
                let (first, union) = neighbourhood_of(input)?;
                // Postings do not distinguish a member without connections from an id that is not in the graph.
                if first.is_empty() { Ok(self.ask_first()) } else { Ok(self.done(first, &union)) }
            }
            State::First => {
                let first = list_of(self.id, input)?;
                if first.is_empty() {
                    return Ok(self.done(first, &[]));
                }
                let step = ask(UNION, union_kind(self.workflow), first.clone(), union(&self.edge));
                self.state = State::Union { first };
                Ok(step)
            }
            State::Union { first } => Ok(self.done(first, &set_of(input)?)),
            State::Over => Err(OperationError::WrongValue),
        }
    }

    fn outline(&self) -> Vec<Outline> {
        let union = Some(union_kind(self.workflow));
        let both = Outline { purpose: AT_ONCE, kind: union, reach: "every partition", when: "" };
        let (reach, when) = ("each of its connections", "it has connections");
        let second = Outline { purpose: UNION, kind: union, reach, when };
        let first = |when| {
            let single = Some(FanOutKind::SingleKey);
            Outline { purpose: FIRST_DEGREE, kind: single, reach: "the member", when }
        };
        match self.plan {
            NetworkPlan::InTurn => vec![first(""), second],
            NetworkPlan::AtOnce => vec![both, first("no connection is found")],
        }
    }
}

/// Reads a set and the union of its lists.
fn neighbourhood_of(input: Input) -> Result<(Vec<u64>, Vec<u64>), OperationError> {
    match input {
        Input::Value(Value::Neighbourhood { ids, union }) => Ok((ids, union)),
        _ => Err(OperationError::WrongValue),
    }
}
