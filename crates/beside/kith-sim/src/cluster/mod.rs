//! A simulated cluster: clients that decide with production code, nodes with queues, and a network with a heavy tail (Moolle
//! §V). Equal configurations give equal traces.

mod client;
mod config;
mod faults;
mod node;
mod record;
mod run;

pub use crate::strategy::Strategy;
pub use config::{ClientModel, ClusterConfig, NodeModel};
pub use faults::{Fault, FaultAt};
pub use record::{QueryRecord, Summary, Trace, millis, quantile};

use client::{Client, RequestKey, Task};
use kith_routing::load::NodeReport;
use kith_types::{FanOutKind, NodeId};

/// Simulates a cluster from its start to the end of its last query.
///
/// # Panics
/// If the configuration has no groups, no nodes or no partitions.
pub fn simulate(config: &ClusterConfig) -> Trace {
    run::Run::new(config).carry_out()
}

/// A job of a node's processor.
#[derive(Clone, Copy, Debug)]
struct Work {
    key: RequestKey,
    kind: FanOutKind,
    keys: u32,
}

/// An event of the simulation.
#[derive(Clone, Debug)]
enum Event {
    /// A client receives a query.
    Asked { client: u32 },
    /// A client's processor has finished a task.
    Done { task: Task },
    /// A request reaches its node. `incarnation` is the incarnation that the node had when the request was sent.
    AtNode { node: NodeId, incarnation: u32, work: Work },
    /// A node's processor has finished a request.
    Served { node: NodeId, incarnation: u32, work: Work },
    /// A connection broke or was refused.
    Broken { key: RequestKey, node: NodeId },
    /// A client checks which nodes it should probe.
    ProbeTime { client: u32 },
    /// A probe ends. It succeeds if its reply is in time and the node is running.
    ProbeEnd { client: u32, node: NodeId, in_time: bool },
    /// A fault begins.
    Fault { index: usize },
    /// A query reaches its deadline.
    Deadline { client: u32, query: u64 },
    /// The execution of a query checks whether one of its requests is late.
    HedgeDue { client: u32, query: u64 },
    /// A reply reaches its client's queue.
    Back { key: RequestKey, report: NodeReport },
}
