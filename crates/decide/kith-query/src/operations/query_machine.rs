//! The interface between a query and its driver: a [`QueryMachine`] is a state machine that asks for fan-outs and networks,
//! and ends with an answer.

use crate::{
    GraphQuery, Input, OperationError, OperationStep, Outline,
    operations::{
        machine::{Machine, resolve::Resolver},
        network::machine::{NetworkFetch, NetworkPlan},
    },
};
use kith_operators::NetworkKey;
use kith_schema::GraphSchema;
use kith_types::Workflow;

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
    /// `Workflow::Background` is for a refresh that nobody waits for. Ends with [`GraphAnswer::Network`](crate::GraphAnswer::Network), including ids.
    pub fn network(key: NetworkKey, workflow: Workflow, plan: NetworkPlan) -> Self {
        Self { machine: Box::new(NetworkFetch::new(key, workflow, plan)) }
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
