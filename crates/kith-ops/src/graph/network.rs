//! A member's second-degree network: asked for (by a query, of the cache) and
//! fetched (Moolle, Algorithm 2: first degree, then the union of its lists).

use super::ask::{FIRST_DEGREE, ask, ask_list, list_of, set_of, union, union_kind};
use crate::{
    EdgeSelector, GraphAnswer, Input, Network, NetworkAnswer, NetworkKey, OperationError, Outline, Step, Want,
};
use kith_types::{FanOutKind, Workflow};
use std::sync::Arc;

const UNION: &str = "second-degree union";

/// The query: whoever drives it has the cache.
#[derive(Clone, Debug)]
pub(crate) struct NetworkQuery {
    key: NetworkKey,
    want: Want,
}

impl NetworkQuery {
    pub(super) fn new(key: NetworkKey, want: Want) -> Self {
        Self { key, want }
    }

    pub(super) fn step(&mut self, input: Input) -> Result<Step, OperationError> {
        match input {
            Input::Start => Ok(Step::Network(self.key.clone())),
            Input::Network(network) => Ok(Step::Done(answer(network, self.want))),
            Input::Value(_) => Err(OperationError::WrongValue),
        }
    }
}

fn answer(network: Arc<Network>, want: Want) -> GraphAnswer {
    let (id, sizes) = (network.id(), network.sizes());
    let network = (want == Want::Ids).then_some(network);
    GraphAnswer::Network(NetworkAnswer { id, sizes, network })
}

/// The fetching.
#[derive(Clone, Debug)]
pub(crate) struct NetworkFetch {
    id: u64,
    edge: EdgeSelector,
    workflow: Workflow,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Start,
    /// Waits for the first degree.
    First,
    /// Waits for the union of its lists.
    Union {
        first: Vec<u64>,
    },
    Over,
}

impl NetworkFetch {
    pub(super) fn new(key: NetworkKey, workflow: Workflow) -> Self {
        let edge = EdgeSelector { kind: key.edge_type, direction: key.direction, filter: None };
        Self { id: key.id, edge, workflow, state: State::Start }
    }

    pub(super) fn step(&mut self, input: Input) -> Result<Step, OperationError> {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Start => {
                self.state = State::First;
                Ok(ask_list(FIRST_DEGREE, self.id, &self.edge))
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

    fn done(&self, first: Vec<u64>, union: &[u64]) -> Step {
        Step::Done(answer(Arc::new(Network::new(self.id, first, union)), Want::Ids))
    }

    pub(super) fn outline(&self) -> Vec<Outline> {
        let single = Some(FanOutKind::SingleKey);
        let union = Some(union_kind(self.workflow));
        vec![
            Outline { purpose: FIRST_DEGREE, kind: single, reach: "the member", when: "" },
            Outline {
                purpose: UNION,
                kind: union,
                reach: "each of its connections",
                when: "it has connections",
            },
        ]
    }
}
