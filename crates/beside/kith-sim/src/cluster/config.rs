//! The configuration of a simulated cluster, and the sources of its numbers.

use crate::cluster::{FaultAt, Strategy};
use crate::tail_latency::TailLatency;
use crate::workload::Workload;
use kith_routing::HealthOptions;
use std::time::Duration;

/// A client notices a broken or refused connection after this time.
pub(super) const RESET: Duration = Duration::from_micros(200);

/// The model of a client's processor, which causes the multiget hole (Moolle §I-A). Its queue is the left term of equation
/// 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientModel {
    /// The number of threads that send requests and receive replies.
    pub workers: usize,
    /// The time to build and send a request.
    pub send: Duration,
    /// The time to receive a reply.
    pub receive: Duration,
    /// The time to merge one key's part of a reply.
    pub per_key: Duration,
}

impl Default for ClientModel {
    /// The paper's clients work well at D_RPS = 5,000 requests per second (§V-C). A queue works well at a utilisation of
    /// about 60 %, so a request costs 0.6 ÷ 5,000 = 120 µs, half of it in each direction. Merging costs 1 µs per key: about
    /// 250 distinct ids at 4 ns each.
    fn default() -> Self {
        Self {
            workers: 1,
            send: Duration::from_micros(60),
            receive: Duration::from_micros(60),
            per_key: Duration::from_micros(1),
        }
    }
}

/// The model of a node's processor. Together with the tail, it is the right term of equation 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeModel {
    /// The number of threads that serve requests.
    pub workers: usize,
    /// The time to serve a request, in addition to the time for its keys or partitions.
    pub request: Duration,
    /// The time to read the list of one key and add it to the union.
    pub per_key: Duration,
    /// The time to look up the inverted index of one partition.
    pub per_partition: Duration,
    /// The number of equal clients that each simulated client represents. Nodes multiply the request rate and the number of
    /// clients that they report by this number. The load on their processors is not multiplied.
    pub clients_each: u32,
}

impl Default for NodeModel {
    /// D_SRPS = 10,000 requests per second (§V-C) at 60 % give 60 µs per request. A key costs 20 µs: a list of about a
    /// thousand ids, which are decoded and merged at 20 ns each. A partition costs 5 µs: two binary searches in an inverted
    /// index, and a short intersection.
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

/// The configuration of a simulated cluster, its workload and its faults.
#[derive(Clone)]
pub struct ClusterConfig {
    /// The number of replica groups.
    pub groups: u32,
    /// The number of nodes in each group.
    pub nodes_per_group: u32,
    /// The number of partitions.
    pub partitions: u32,
    /// The number of clients. Each has its own measurements, cursors and controllers.
    pub clients: u32,
    /// The strategy of the clients.
    pub strategy: Strategy,
    /// The queries that clients receive.
    pub workload: Workload,
    /// The model of a client's processor.
    pub client: ClientModel,
    /// The model of a node's processor.
    pub node: NodeModel,
    /// The latency of a request without the time that processors spend on it.
    pub latency: TailLatency,
    /// Queries that begin before this time are not recorded, because meters and queues are still filling.
    pub warm_up: Duration,
    /// No query begins after this time. Queries in progress run to their end.
    pub until: Duration,
    /// The time that a query may take; `None` if it is unlimited.
    pub deadline: Option<Duration>,
    /// The faults of nodes.
    pub faults: Vec<FaultAt>,
    /// The parameters by which clients judge the health of nodes. Nodes are probed only if there are faults.
    pub health: HealthOptions,
    /// The seed of all random decisions.
    pub seed: u64,
}

impl ClusterConfig {
    /// Returns the configuration of the paper's data centre (§IV-B): 10 groups of 20 nodes.
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
