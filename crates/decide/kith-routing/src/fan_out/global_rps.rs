//! The largest number of groups that keeps this client *and* the nodes within the request rates that they can sustain
//! (Moolle §IV-D2, equations 8 to 10). The nodes count their clients and report their own rates in replies.

use crate::LoadSnapshot;
use crate::fan_out::client_qps::{CLIENT_RPS, ClientQps};
use crate::fan_out::equations::groups_by_global_rps;
use crate::fan_out::{Build, ControllerState, FanOutController, QueryShape, whole_groups};
use std::sync::Arc;

/// The requests per second that the paper's servers sustain (§V-C).
const NODE_RPS: f64 = 10_000.0;

/// Bounds fan-out by the request rates of this client and of the nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GlobalRps {
    /// The requests per second within which the client should stay: D_RPS.
    pub client_rps: f64,
    /// The requests per second within which each node should stay: D_SRPS.
    pub node_rps: f64,
}

impl Default for GlobalRps {
    fn default() -> Self {
        Self { client_rps: CLIENT_RPS, node_rps: NODE_RPS }
    }
}

pub(super) const BUILD: Build = |parameters| {
    let client_rps = parameters.number("client", CLIENT_RPS)?;
    let node_rps = parameters.number("node", NODE_RPS)?;
    Ok(Arc::new(GlobalRps { client_rps, node_rps }))
};

impl GlobalRps {
    /// Returns D_SRPS less the rate of other kinds of queries, of this client and of others. This is the rate that the nodes
    /// report, less the rate of this kind if all clients are like this one.
    fn node_rps_left(&self, query: &QueryShape, load: &LoadSnapshot, clients: u32) -> f64 {
        let nodes = f64::from(query.groups * query.nodes_per_group);
        let this_kind = f64::from(clients) * load.kind(query.kind).rps / nodes;
        let others = (load.node_rps_mean() - this_kind).max(0.0);
        (self.node_rps - others).max(0.0)
    }
}

impl FanOutController for GlobalRps {
    fn name(&self) -> &'static str {
        "global-rps"
    }

    fn groups(&self, query: &QueryShape, load: &LoadSnapshot, _state: &mut ControllerState) -> u32 {
        let clients = load.clients.max(1);
        let client_left = ClientQps { client_rps: self.client_rps }.rps_left(query, load);
        let node_left = self.node_rps_left(query, load, clients);
        let qps = load.kind(query.kind).qps;
        let (c, n) = (query.groups, query.nodes_per_group);
        whole_groups(groups_by_global_rps(c, n, clients, qps, client_left, node_left), query)
    }
}
