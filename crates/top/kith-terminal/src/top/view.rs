//! Computes from two samples what happened between them. Pure: no clock, no sockets.

mod live;

pub use live::{DatabaseView, LiveGraphView, LiveNodeView};

use super::{
    rates::{
        Rates, RequestTotals, Sum, asked_by_router, asked_of_nodes, earlier, latencies, micros, per_second,
        rounded,
    },
    sample::Sample,
};
use kith_wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;

/// The changes during an interval. Like the other answers, this is a contract: field names do not change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View {
    pub interval_s: f64,
    /// The rates of all nodes together.
    pub cluster: Rates,
    pub groups: Vec<GroupView>,
    pub nodes: Vec<NodeView>,
    pub routers: Vec<RouterView>,
    pub live_graphs: Vec<LiveGraphView>,
    pub databases: Vec<DatabaseView>,
}

/// One replica group, with the rates of its nodes together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupView {
    pub group: u32,
    pub nodes: u32,
    pub nodes_up: u32,
    #[serde(flatten)]
    pub rates: Rates,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeView {
    /// `None`: the node is a spare, which is in no group yet.
    pub group: Option<u32>,
    pub node: u32,
    pub state: String,
    pub addr: String,
    #[serde(flatten)]
    pub rates: Rates,
}

/// One router.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterView {
    pub addr: String,
    /// `up`; or `down` if the router does not answer.
    pub state: &'static str,
    pub queries_per_second: Option<f64>,
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
    /// Queries that were answered with an error.
    pub failed_per_second: Option<f64>,
    /// Queries whose answer is incomplete.
    pub partial_per_second: Option<f64>,
    /// The keys for which the router waits, of all nodes.
    pub keys_pending: u64,
    pub hedges_per_second: f64,
    pub keys_hedged_ratio: f64,
}

/// Computes what happened between two samples, the earlier of which comes first.
pub fn view(before: &Sample, after: &Sample) -> View {
    let seconds = after.at.saturating_sub(before.at).as_secs_f64();
    let asked = asked_of_nodes(before, after);
    let (mut cluster, mut groups) = (Sum::default(), BTreeMap::<u32, (u32, u32, Sum)>::new());
    let mut nodes: Vec<NodeView> = Vec::new();
    for node in &after.status.nodes {
        let earlier = before.status.nodes.iter().find(|earlier| earlier.node == node.node);
        let sum = Sum::of_node(earlier, node, asked.get(&node.node).copied().unwrap_or_default());
        cluster.add(&sum);
        if !node.spare {
            let (count, up, group) = groups.entry(node.group).or_default();
            *count += 1;
            *up += u32::from(node.state == "up");
            group.add(&sum);
        }
        nodes.push(NodeView {
            group: (!node.spare).then_some(node.group),
            node: node.node,
            state: node.state.clone(),
            addr: node.addr.clone(),
            rates: sum.rates(seconds),
        });
    }
    nodes.sort_by_key(|node| (node.group.is_none(), node.group, node.node));
    let groups = groups.into_iter().map(|(group, (nodes, nodes_up, sum))| GroupView {
        group,
        nodes,
        nodes_up,
        rates: sum.rates(seconds),
    });
    View {
        interval_s: rounded(seconds, 1_000.0),
        cluster: cluster.rates(seconds),
        groups: groups.collect(),
        nodes,
        routers: after
            .routers
            .iter()
            .map(|(addr, now)| router(addr, before, now.as_ref(), seconds))
            .collect(),
        live_graphs: live::graphs(before, after, seconds),
        databases: live::databases(after),
    }
}

fn router(addr: &str, before: &Sample, after: Option<&v1::RouterCounters>, seconds: f64) -> RouterView {
    let mut asked = RequestTotals::default();
    let mut passed = None;
    if let Some(after) = after {
        let before = earlier(before, addr, after);
        asked_by_router(before, after).for_each(|(_, node)| asked.add(&node));
        passed = before.map(|before| (before, after));
    }
    let rate = |count: fn(&v1::RouterCounters) -> u64| {
        passed.map(|(before, after)| per_second(count(after).saturating_sub(count(before)), seconds))
    };
    let took = passed.map(|(before, after)| latencies(&before.latencies, &after.latencies));
    let percentile = |share| took.as_ref().and_then(|took| micros(took, share));
    RouterView {
        addr: addr.to_owned(),
        state: if after.is_some() { "up" } else { "down" },
        queries_per_second: rate(|counters| counters.queries),
        p50_us: percentile(500),
        p99_us: percentile(990),
        failed_per_second: rate(|counters| counters.failed),
        partial_per_second: rate(|counters| counters.partial),
        keys_pending: asked.keys_pending,
        hedges_per_second: per_second(asked.hedges, seconds),
        keys_hedged_ratio: asked.keys_hedged_ratio(),
    }
}

#[cfg(test)]
mod tests;
