//! What controllers and policies know about load: a [`LoadSnapshot`], which a
//! [`LoadMeter`] makes from what the shell tells it.

mod hedge_times;
mod latency;
mod meter;
mod nodes;
mod pauses;
mod rate;
mod work;

pub use hedge_times::Hedging;
pub use meter::{LoadMeter, LoadMeterOptions, NodeReport};
pub use nodes::{COOL_OFF, Charge, NodeTally, PendingLimit, RequestEnd};
pub use rate::RateMeter;
pub use work::{KeyClass, RequestKind, Work};

use kith_types::{FanOutKind, NodeId};

/// Rates of one kind of fan-out at this client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KindLoad {
    /// Fan-outs of this kind per second: C_QPS of Moolle's equations.
    pub qps: f64,
    /// Requests per second that they make.
    pub rps: f64,
}

/// What is known of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeLoad {
    /// The node.
    pub node: NodeId,
    /// Requests per second from all clients, as the node last reported.
    pub rps: f64,
    /// Keys that this client has asked of it and not heard of yet.
    pub outstanding_keys: u64,
    /// Requests, likewise.
    pub outstanding_requests: u32,
    /// All that it was asked since this client knows it.
    pub tally: NodeTally,
    /// Seconds that it takes per key, a request counting as 64 keys beside its own; `None` if nothing is known of that.
    pub seconds_per_key: Option<f64>,
}

/// Load at one moment. The default is an idle system about which nothing is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadSnapshot {
    /// Rates at this client, by [`FanOutKind`] in the order of [`FanOutKind::ALL`].
    pub kinds: [KindLoad; FanOutKind::ALL.len()],
    /// Clients that the nodes count, this one included: `m` of Moolle's equation 8. 0 if no node reported yet.
    pub clients: u32,
    /// Nodes heard of, ascending by id.
    pub nodes: Vec<NodeLoad>,
    /// Share of early-terminable fan-outs that a positive answer ended; `None` before the first.
    pub termination_share: Option<f64>,
}

impl LoadSnapshot {
    /// Rates of one kind.
    pub fn kind(&self, kind: FanOutKind) -> KindLoad {
        self.kinds[kind as usize]
    }

    /// Fan-outs per second at this client.
    pub fn client_qps(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.qps).sum()
    }

    /// Requests per second from this client.
    pub fn client_rps(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.rps).sum()
    }

    /// What is known of a node.
    pub fn node(&self, node: NodeId) -> Option<&NodeLoad> {
        let place = self.nodes.binary_search_by_key(&node, |load| load.node).ok()?;
        Some(&self.nodes[place])
    }

    /// Requests per second at the mean node; 0 if none reported.
    pub fn node_rps_mean(&self) -> f64 {
        let reported = self.nodes.iter().filter(|node| 0.0 < node.rps);
        let (sum, count) = reported.fold((0.0, 0u32), |(sum, count), node| (sum + node.rps, count + 1));
        if count == 0 { 0.0 } else { sum / f64::from(count) }
    }
}
