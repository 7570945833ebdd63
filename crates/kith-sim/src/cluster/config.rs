//! What is simulated, and where its numbers come from.

use crate::cluster::{FaultAt, Strategy};
use crate::tail_latency::TailLatency;
use crate::workload::Workload;
use kith_routing::HealthOptions;
use std::time::Duration;

/// A connection that breaks, or is refused, is noticed after this long.
pub(super) const RESET: Duration = Duration::from_micros(200);

/// A client's processor: the multiget hole (Moolle §I-A). Its queue is the left term of equation 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientModel {
    /// Threads that send requests and take in replies.
    pub workers: usize,
    /// To put a request together and send it.
    pub send: Duration,
    /// To take in a reply.
    pub receive: Duration,
    /// To merge one key's share of a reply.
    pub per_key: Duration,
}

impl Default for ClientModel {
    /// The paper's clients do well at D_RPS = 5,000 requests a second (§V-C). A queue does
    /// well at a utilisation of about 60 %, so a request costs 0.6 ÷ 5,000 = 120 µs, half of
    /// it on each way. Merging costs 1 µs a key: about 250 distinct ids at 4 ns each.
    fn default() -> Self {
        Self {
            workers: 1,
            send: Duration::from_micros(60),
            receive: Duration::from_micros(60),
            per_key: Duration::from_micros(1),
        }
    }
}

/// A node's processor. With the tail it is the right term of equation 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeModel {
    /// Threads that serve requests.
    pub workers: usize,
    /// To serve a request, whatever its keys.
    pub request: Duration,
    /// To read and unite the list of one key: the part that grows with the keys.
    pub per_key: Duration,
    /// To look one partition's inverted index up.
    pub per_partition: Duration,
    /// Each simulated client stands for so many alike: nodes report rates and clients times this.
    /// They do not work for them.
    pub clients_each: u32,
}

impl Default for NodeModel {
    /// D_SRPS = 10,000 requests a second (§V-C) at 60 % give 60 µs a request. A key costs
    /// 20 µs: a list of about a thousand ids, decoded and united at 20 ns an id. A partition
    /// costs 5 µs: two binary searches of an inverted index and a short intersection.
    fn default() -> Self {
        Self {
            workers: 1,
            request: Duration::from_micros(60),
            per_key: Duration::from_micros(20),
            per_partition: Duration::from_micros(5),
            clients_each: 1,
        }
    }
}

/// One simulated cluster and what happens to it.
#[derive(Clone)]
pub struct ClusterConfig {
    /// Replica groups.
    pub groups: u32,
    /// Nodes in each.
    pub nodes_per_group: u32,
    /// Partitions.
    pub partitions: u32,
    /// Clients, each with its own measurements, cursors and controllers.
    pub clients: u32,
    /// How clients decide.
    pub strategy: Strategy,
    /// What they are asked.
    pub workload: Workload,
    /// What a request costs a client.
    pub client: ClientModel,
    /// What it costs a node.
    pub node: NodeModel,
    /// What it takes beside that.
    pub latency: TailLatency,
    /// Queries that begin before this are not recorded: meters and queues fill.
    pub warm_up: Duration,
    /// No query begins after this; those under way are carried to their end.
    pub until: Duration,
    /// How long a query may take; none if unset.
    pub deadline: Option<Duration>,
    /// What happens to nodes.
    pub faults: Vec<FaultAt>,
    /// How clients judge nodes. Nodes are probed only if there are faults.
    pub health: HealthOptions,
    /// All that is random follows from it.
    pub seed: u64,
}

impl ClusterConfig {
    /// The paper's data centre (§IV-B): 10 groups of 20 nodes.
    pub fn of_the_paper(strategy: Strategy, workload: Workload, seed: u64) -> Self {
        Self {
            groups: 10,
            nodes_per_group: 20,
            partitions: 1_536,
            clients: 20,
            strategy,
            workload,
            client: ClientModel::default(),
            node: NodeModel::default(),
            latency: TailLatency::of_the_paper(),
            warm_up: Duration::from_secs(2),
            until: Duration::from_secs(12),
            deadline: None,
            faults: Vec::new(),
            health: HealthOptions::default(),
            seed,
        }
    }
}
