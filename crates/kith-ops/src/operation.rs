//! The seam between what is computed and who computes it: an [`Operation`] is a
//! state machine that asks for fan-outs and networks and ends with an answer.

use crate::{GraphAnswer, GraphQuery, GraphSchema, Network, NetworkKey, OperationError, Operator, Value};
use kith_types::FanOutKind;
use std::sync::Arc;

/// One round of requests to nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOut {
    /// What it is for, for profiles and people: `first degree`, `second-degree union` …
    pub purpose: &'static str,
    /// Chooses the controller, and whether the first positive answer ends the round.
    pub kind: FanOutKind,
    /// Where it goes.
    pub scope: Scope,
    /// What each node evaluates over its share.
    pub plan: Operator,
}

/// Where a fan-out goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// To the partitions of these keys, distinct and at least one; each node gets its keys as [`Operator::Keys`].
    Keys(Vec<u64>),
    /// To every partition.
    Partitions,
}

/// What the caller must do next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Run the fan-out, merge the nodes' values (`Value::merge`; lists in the order of the keys) and resume with [`Input::Value`].
    FanOut(FanOut),
    /// Get a member's network, from the cache or by running [`Operation::network`], and resume with [`Input::Network`].
    Network(NetworkKey),
    /// The operation is over.
    Done(GraphAnswer),
}

/// What the caller learnt.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Nothing yet: the first step.
    Start,
    /// The merged value of the last fan-out.
    Value(Value),
    /// The network asked for.
    Network(Arc<Network>),
}

/// A query on its way to its answer.
#[derive(Clone, Debug)]
pub struct Operation {
    _query: GraphQuery,
}

impl Operation {
    /// Resolves a query's names against the graph's schema.
    ///
    /// # Errors
    /// If a name is unknown or a number out of its range.
    pub fn new(query: &GraphQuery, _schema: &GraphSchema) -> Result<Self, OperationError> {
        Ok(Self { _query: query.clone() })
    }

    /// Takes the next step.
    ///
    /// # Errors
    /// If a member is not in the graph, or the input is not what the last step asked for.
    pub fn step(&mut self, _input: Input) -> Result<Step, OperationError> {
        Err(OperationError::WrongValue)
    }
}
