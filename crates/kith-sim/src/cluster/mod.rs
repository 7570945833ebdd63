//! A simulated cluster: clients that decide with production code, nodes with queues, a
//! network with a heavy tail (Moolle §V). Equal configurations give equal traces.

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
/// If the configuration describes no cluster: no groups, nodes or partitions.
pub fn simulate(config: &ClusterConfig) -> Trace {
    run::Run::new(config).carry_out()
}

/// What a node's processor does.
#[derive(Clone, Copy, Debug)]
struct Work {
    key: RequestKey,
    kind: FanOutKind,
    keys: u32,
}

/// What happens.
#[derive(Clone, Debug)]
enum Event {
    /// A client is asked.
    Asked { client: u32 },
    /// A client's processor is done with something.
    Done { task: Task },
    /// A request reaches its node, which was in this incarnation when it left.
    AtNode { node: NodeId, incarnation: u32, work: Work },
    /// A node's processor is done with a request.
    Served { node: NodeId, incarnation: u32, work: Work },
    /// A connection broke, or was refused.
    Broken { key: RequestKey, node: NodeId },
    /// A client looks which nodes to probe.
    ProbeTime { client: u32 },
    /// A probe ends; well, if the node runs.
    ProbeEnd { client: u32, node: NodeId, in_time: bool },
    /// Something happens to a node.
    Fault { index: usize },
    /// A query's time is up.
    Deadline { client: u32, query: u64 },
    /// A request of a query may be late.
    HedgeDue { client: u32, query: u64 },
    /// A reply reaches its client's queue.
    Back { key: RequestKey, report: NodeReport },
}
