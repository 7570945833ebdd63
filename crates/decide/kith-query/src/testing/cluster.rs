//! A cluster within one thread: nodes that hold some partitions each, and a caller that drives operations over them,
//! divides keys and merges parts.

use super::MemoryGraph;
use crate::{
    FanOut, GraphAnswer, GraphQuery, Input, NetworkPlan, OperationError, OperationStep, QueryMachine, Scope,
};
use kith_operators::{MissingKeyRule, Network, NetworkKey, Part, Scratch, Share, Value, evaluate};
use kith_schema::{EdgeList, EdgeSelector, NeighbourSource, SourceError};
use kith_types::{FanOutKind, PartitionCount, PartitionId, Workflow, partition_of_id};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A graph, and the node of each of its partitions.
#[derive(Clone, Debug)]
pub struct LocalCluster {
    graph: MemoryGraph,
    /// The node of each partition.
    owners: Vec<u32>,
    /// A node whose answers are lost.
    lost: Option<u32>,
    networks: NetworkPlan,
}

impl LocalCluster {
    /// Places partition `i` on node `owners[i]`.
    ///
    /// # Panics
    /// If there is not one owner per partition.
    pub fn new(graph: MemoryGraph, owners: Vec<u32>) -> Self {
        assert_eq!(owners.len(), graph.partition_count().get() as usize, "one owner per partition");
        Self { graph, owners, lost: None, networks: NetworkPlan::default() }
    }

    /// Places all partitions on one node.
    pub fn single(graph: MemoryGraph) -> Self {
        let owners = vec![0; graph.partition_count().get() as usize];
        Self::new(graph, owners)
    }

    /// The graph of the cluster.
    pub fn graph(&self) -> &MemoryGraph {
        &self.graph
    }

    /// Sets the plan for fetching networks.
    #[must_use]
    pub fn with_networks(self, networks: NetworkPlan) -> Self {
        Self { networks, ..self }
    }

    /// Loses a node, so that answers become partial.
    pub fn lose(&mut self, node: u32) {
        self.lost = Some(node);
    }

    /// Runs a query to its end. Networks are fetched each time.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn query(&self, query: &GraphQuery) -> Result<GraphAnswer, OperationError> {
        self.trace(query).map(|(answer, _)| answer)
    }

    /// Runs a query, and returns its fan-outs too, including those of its networks.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn trace(&self, query: &GraphQuery) -> Result<(GraphAnswer, Vec<FanOut>), OperationError> {
        let mut fan_outs = Vec::new();
        let machine = QueryMachine::new(query, self.graph.schema())?;
        let answer = self.drive(machine, query.workflow, &mut fan_outs)?;
        Ok((answer, fan_outs))
    }

    fn drive(
        &self,
        mut machine: QueryMachine,
        workflow: Workflow,
        fan_outs: &mut Vec<FanOut>,
    ) -> Result<GraphAnswer, OperationError> {
        let mut input = Input::Start;
        loop {
            input = match machine.step(input)? {
                OperationStep::Done(answer) => return Ok(answer),
                OperationStep::FanOut(fan_out) => {
                    let value = self.run(&fan_out);
                    fan_outs.push(fan_out);
                    Input::Value(value)
                }
                OperationStep::Network(key) => Input::Network(self.network(key, workflow, fan_outs)?),
            }
        }
    }

    fn network(
        &self,
        key: NetworkKey,
        workflow: Workflow,
        fan_outs: &mut Vec<FanOut>,
    ) -> Result<Arc<Network>, OperationError> {
        match self.drive(QueryMachine::network(key, workflow, self.networks), workflow, fan_outs)? {
            GraphAnswer::Network(answer) => answer.network.ok_or(OperationError::WrongValue),
            _ => Err(OperationError::WrongValue),
        }
    }

    fn run(&self, fan_out: &FanOut) -> Value {
        let partition_of = |&key: &u64| partition_of_id(key, self.graph.partition_count());
        let partitions: Vec<PartitionId> = match &fan_out.scope {
            Scope::Keys(keys) => {
                assert!(!keys.is_empty(), "{} asks for no key", fan_out.purpose);
                let single = fan_out.kind == FanOutKind::SingleKey;
                assert_eq!(single, keys.len() == 1, "{} is of the wrong kind", fan_out.purpose);
                keys.iter().map(partition_of).collect()
            }
            Scope::ByteKeys(_) => panic!("{} asks a graph for byte keys", fan_out.purpose),
            Scope::Partitions => self.graph.partition_count().iter().collect(),
        };
        let mut nodes = self.owners.clone();
        nodes.sort_unstable();
        nodes.dedup();
        let asked = nodes.into_iter().filter(|&node| self.lost != Some(node));
        let parts = asked.filter_map(|node| self.ask(node, fan_out, &partitions)).collect();
        let missing = if self.lost.is_some() { MissingKeyRule::Allow } else { MissingKeyRule::Refuse };
        Value::merge(&fan_out.plan, partitions.len(), parts, missing, &mut Scratch::new())
            .expect("the parts of all nodes make up a value")
    }

    /// One node's part; `None` if the node owns none of the partitions.
    fn ask(&self, node: u32, fan_out: &FanOut, partitions: &[PartitionId]) -> Option<Part> {
        let is_its = |&position: &u32| self.owners[partitions[position as usize].index()] == node;
        let positions: Vec<u32> = (0..partitions.len() as u32).filter(is_its).collect();
        if positions.is_empty() {
            return None;
        }
        let keys: Vec<u64> = match &fan_out.scope {
            Scope::Keys(keys) => positions.iter().map(|&position| keys[position as usize]).collect(),
            Scope::ByteKeys(_) | Scope::Partitions => Vec::new(),
        };
        let partitions: Vec<PartitionId> = match &fan_out.scope {
            Scope::Keys(_) | Scope::ByteKeys(_) => Vec::new(),
            Scope::Partitions => positions.iter().map(|&position| partitions[position as usize]).collect(),
        };
        let share = Share { keys: &keys, partitions: &partitions };
        let source = LocalNode { cluster: self, node };
        let value = evaluate(&fan_out.plan, &share, &source, &mut Scratch::new(), &|| false)
            .expect("a node can answer for what it holds");
        Some(Part { positions, value })
    }
}

/// A node that refuses keys and partitions that it does not hold.
struct LocalNode<'a> {
    cluster: &'a LocalCluster,
    node: u32,
}

impl LocalNode<'_> {
    fn check(&self, partition: PartitionId) -> Result<(), SourceError> {
        let held = self.cluster.owners[partition.index()] == self.node;
        if held { Ok(()) } else { Err(SourceError::NotOwner { partition }) }
    }
}

impl NeighbourSource for LocalNode<'_> {
    fn partition_count(&self) -> PartitionCount {
        self.cluster.graph.partition_count()
    }

    fn lists(
        &self,
        edge: &EdgeSelector,
        keys: &[u64],
        each: &mut dyn FnMut(usize, Option<&[u64]>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let graph = &self.cluster.graph;
        keys.iter().try_for_each(|&key| self.check(partition_of_id(key, graph.partition_count())))?;
        graph.lists(edge, keys, each)
    }

    fn edges(
        &self,
        edge: &EdgeSelector,
        columns: &[&str],
        keys: &[u64],
        each: &mut dyn FnMut(usize, Option<EdgeList<'_>>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        let graph = &self.cluster.graph;
        keys.iter().try_for_each(|&key| self.check(partition_of_id(key, graph.partition_count())))?;
        graph.edges(edge, columns, keys, each)
    }

    fn postings(
        &self,
        edge: &EdgeSelector,
        partition: PartitionId,
        id: u64,
        out: &mut Vec<u64>,
    ) -> Result<(), SourceError> {
        self.check(partition)?;
        self.cluster.graph.postings(edge, partition, id, out)
    }

    fn members(&self, partition: PartitionId, out: &mut Vec<u64>) -> Result<(), SourceError> {
        self.check(partition)?;
        self.cluster.graph.members(partition, out)
    }
}
