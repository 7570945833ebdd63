//! The load as controllers and policies know it: a [`LoadSnapshot`], which a [`LoadMeter`] makes from events that the
//! shell reports.

mod hedge_rule;
mod hedge_times;
mod latency;
mod meter;
mod nodes;
mod pauses;
mod rate;
mod work;

pub use hedge_rule::{HedgeRule, HedgeTime};
pub use kith_types::Hedging;
pub use meter::{LoadMeter, LoadMeterOptions, NodeReport};
pub use nodes::{COOL_OFF, Charge, NodeTally, PendingLimit, RequestEnd};
pub use rate::RateMeter;
pub use work::{KeyClass, RequestKind, Work};

use kith_types::{FanOutKind, NodeId};

/// The rates of one kind of fan-out at this client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KindLoad {
    /// The fan-outs of this kind per second: C_QPS in Moolle's equations.
    pub qps: f64,
    /// The requests per second of these fan-outs.
    pub rps: f64,
}

/// The known facts about one node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeLoad {
    /// The node.
    pub node: NodeId,
    /// The requests per second from all clients, as the node last reported.
    pub rps: f64,
    /// The keys that this client has requested from it and that are not answered yet.
    pub outstanding_keys: u64,
    /// The requests that are not answered yet.
    pub outstanding_requests: u32,
    /// All requests to it since this client has known it.
    pub tally: NodeTally,
    /// The seconds that it takes per key, where a request counts as 64 keys in addition to its own; `None` if this is
    /// unknown.
    pub seconds_per_key: Option<f64>,
}

/// The load at one moment. The default is an idle system about which nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadSnapshot {
    /// The rates at this client, by [`FanOutKind`] in the order of [`FanOutKind::ALL`].
    pub kinds: [KindLoad; FanOutKind::ALL.len()],
    /// The number of clients that the nodes count, including this one: `m` in Moolle's equation 8. 0 if no node has reported
    /// yet.
    pub clients: u32,
    /// The known nodes, ascending by id.
    pub nodes: Vec<NodeLoad>,
    /// The share of early-terminable fan-outs that a positive answer ended; `None` before the first one.
    pub termination_share: Option<f64>,
}

impl LoadSnapshot {
    /// The rates of one kind.
    pub fn kind(&self, kind: FanOutKind) -> KindLoad {
        self.kinds[kind as usize]
    }

    /// The fan-outs per second at this client.
    pub fn client_qps(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.qps).sum()
    }

    /// The requests per second from this client.
    pub fn client_rps(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.rps).sum()
    }

    /// Returns what is known about a node.
    pub fn node(&self, node: NodeId) -> Option<&NodeLoad> {
        let index = self.nodes.binary_search_by_key(&node, |load| load.node).ok()?;
        Some(&self.nodes[index])
    }

    /// The mean of the nodes' requests per second; 0 if no node has reported.
    pub fn node_rps_mean(&self) -> f64 {
        let reported = self.nodes.iter().filter(|node| 0.0 < node.rps);
        let (sum, count) = reported.fold((0.0, 0u32), |(sum, count), node| (sum + node.rps, count + 1));
        if count == 0 { 0.0 } else { sum / f64::from(count) }
    }
}
