//! What a query under way and its driver tell each other: the fan-outs and networks that it asks for, and their results.

use crate::{BatchKeys, GraphAnswer};
use kith_operators::{Network, NetworkKey, Operator, Value};
use kith_types::{ByteKeys, FanOutKind, PartitionCount, PartitionId, partition_of_id, partition_of_key};
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

impl BatchKeys {
    /// Converts the keys for a fan-out.
    pub fn scope(&self) -> Scope {
        match self {
            BatchKeys::Ids(ids) => Scope::Keys(ids.clone()),
            BatchKeys::Bytes(keys) => Scope::ByteKeys(keys.clone()),
        }
    }
}

/// The next action of the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationStep {
    /// Run the fan-out, merge the nodes' values ([`Value::merge`]) and resume with [`Input::Value`].
    FanOut(FanOut),
    /// Get a member's network, from the cache or by running [`QueryMachine::network`](crate::QueryMachine::network), and resume with [`Input::Network`].
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
