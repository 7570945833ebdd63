//! The interface between a query and its driver: a [`QueryMachine`] is a state machine that asks for fan-outs and networks,
//! and ends with an answer.

use crate::{
    GraphAnswer, GraphQuery, NetworkPlan, OperationError,
    operations::{Machine, network, resolve::Resolver},
};
use kith_operators::{Network, NetworkKey, Operator, Value};
use kith_schema::GraphSchema;
use kith_types::{
    ByteKeys, FanOutKind, PartitionCount, PartitionId, Workflow, partition_of_id, partition_of_key,
};
use std::sync::Arc;

/// One round of requests to nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct FanOut {
    /// Its purpose, for profiles and `explain`: `first degree`, `second-degree union` …
    pub purpose: &'static str,
    /// The kind of fan-out. It selects the controller, and decides whether the first positive answer ends the round.
    pub kind: FanOutKind,
    /// The keys or partitions that it asks for.
    pub scope: Scope,
    /// The operator that each node evaluates over its share.
    pub plan: Operator,
}

/// The keys or partitions of a fan-out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The partitions of these keys, of which there is at least one. Each node gets its keys as [`Operator::Keys`]. Keys
    /// are distinct, except for [`Operator::Lookup`].
    Keys(Vec<u64>),
    /// The partitions of these byte keys, of which there is at least one. Repeated keys are allowed.
    ByteKeys(ByteKeys),
    /// Every partition.
    Partitions,
}

impl Scope {
    /// The partition of each key, or every partition.
    pub fn partitions(&self, count: PartitionCount) -> Vec<PartitionId> {
        match self {
            Scope::Keys(keys) => keys.iter().map(|&key| partition_of_id(key, count)).collect(),
            Scope::ByteKeys(keys) => keys.iter().map(|key| partition_of_key(key, count)).collect(),
            Scope::Partitions => count.iter().collect(),
        }
    }

    /// The number of keys; `None` for every partition.
    pub fn key_count(&self) -> Option<usize> {
        match self {
            Scope::Keys(keys) => Some(keys.len()),
            Scope::ByteKeys(keys) => Some(keys.len()),
            Scope::Partitions => None,
        }
    }
}

/// The next action of the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationStep {
    /// Run the fan-out, merge the nodes' values ([`Value::merge`]) and resume with [`Input::Value`].
    FanOut(FanOut),
    /// Get a member's network, from the cache or by running [`QueryMachine::network`], and resume with [`Input::Network`].
    Network(NetworkKey),
    /// The operation has ended.
    Done(GraphAnswer),
}

/// The result of the caller's action.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// There is none yet. Starts the operation.
    Start,
    /// The merged value of the last fan-out.
    Value(Value),
    /// The requested network.
    Network(Arc<Network>),
}

/// A step that an operation takes, described without running it. `kith explain` prints these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The purpose, as in [`FanOut::purpose`]; `network` stands for a [`OperationStep::Network`].
    pub purpose: &'static str,
    /// The kind of fan-out. With a single key it becomes [`FanOutKind::SingleKey`]. `None` for a [`OperationStep::Network`].
    pub kind: Option<FanOutKind>,
    /// Its targets: `the member`, `each of its connections`, `every partition` …
    pub reach: &'static str,
    /// The condition of the step; empty if it is always taken.
    pub when: &'static str,
}

/// A query under way.
///
/// ```
/// use kith_query::{ConnectionsQuery, QueryMachine, GraphQuery, Input, OperationStep};
/// use kith_schema::{GraphSchema, KindRole, KindSchema};
/// # use kith_types::StoreVersion;
/// let role = KindRole::Undirected;
/// let schema = GraphSchema { kinds: vec![KindSchema { name: "connection".into(), role, version: StoreVersion(1), columns: vec![], one_sided: false }] };
/// let query = GraphQuery::new(ConnectionsQuery { id: 1005 });
/// let mut machine = QueryMachine::new(&query, &schema)?;
/// let OperationStep::FanOut(fan_out) = machine.step(Input::Start)? else { panic!("it must ask first") };
/// assert_eq!(fan_out.purpose, "first degree");
/// # Ok::<(), kith_query::OperationError>(())
/// ```
#[derive(Debug)]
pub struct QueryMachine {
    machine: Box<dyn Machine>,
}

impl QueryMachine {
    /// Resolves a query's names against the graph's schema.
    ///
    /// # Errors
    /// If a name is unknown or a number out of its range.
    pub fn new(query: &GraphQuery, schema: &GraphSchema) -> Result<Self, OperationError> {
        Ok(Self { machine: query.operation.machine(&Resolver { query, schema })? })
    }

    /// Fetches a network from the nodes (Moolle, Algorithm 2), to answer a [`OperationStep::Network`] that the cache cannot answer.
    /// `Workflow::Background` is for a refresh that nobody waits for. Ends with [`GraphAnswer::Network`], including ids.
    pub fn network(key: NetworkKey, workflow: Workflow, plan: NetworkPlan) -> Self {
        Self { machine: Box::new(network::NetworkFetch::new(key, workflow, plan)) }
    }

    /// Takes the next step.
    ///
    /// # Errors
    /// If a member is not in the graph, or the input is not what the last step asked for.
    /// The operation is over then.
    pub fn step(&mut self, input: Input) -> Result<OperationStep, OperationError> {
        self.machine.step(input)
    }

    /// The steps that the operation takes or may take, in order.
    pub fn outline(&self) -> Vec<Outline> {
        self.machine.outline()
    }
}
