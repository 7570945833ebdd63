//! From two samples to what happened between them. Pure: no clock, no sockets.

use super::sample::Sample;
use kith_routing::ReportedLatencies;
use kith_wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;

/// What happened during an interval. A contract, as other answers: field names stay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct View {
    pub interval_s: f64,
    /// All nodes together.
    pub cluster: Rates,
    pub groups: Vec<GroupView>,
    pub nodes: Vec<NodeView>,
    pub routers: Vec<RouterView>,
}

/// One replica group: its nodes together.
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
    /// `None`: a spare, in no group yet.
    pub group: Option<u32>,
    pub node: u32,
    pub state: String,
    pub addr: String,
    #[serde(flatten)]
    pub rates: Rates,
}

/// What one node or several were asked. `None` is unknown: of a node that does not answer, or started meanwhile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// As nodes count them, for all clients.
    pub requests_per_second: Option<f64>,
    pub keys_per_second: Option<f64>,
    /// Requests that were answered with an error.
    pub errors_per_second: Option<f64>,
    /// How long nodes worked on half of the requests at most, and on 99 in 100; `None` too if there was none.
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
    pub in_flight: u32,
    /// What routers wait for, now.
    pub keys_pending: u64,
    pub requests_pending: u64,
    /// Requests of routers that were hedges of what another node was late with.
    pub hedges_per_second: f64,
    /// Their keys, as a part of all keys that routers asked for.
    pub keys_hedged_ratio: f64,
    /// Requests of routers that a hedge overtook.
    pub overtaken_per_second: f64,
    /// Requests of routers that failed or timed out.
    pub failed_per_second: f64,
}

/// One router.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouterView {
    pub addr: String,
    /// `up`, or `down`: it does not answer.
    pub state: &'static str,
    pub queries_per_second: Option<f64>,
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
    /// Queries that were answered with an error.
    pub failed_per_second: Option<f64>,
    /// Queries whose answer lacks something.
    pub partial_per_second: Option<f64>,
    /// What it waits for, of all nodes.
    pub keys_pending: u64,
    pub hedges_per_second: f64,
    pub keys_hedged_ratio: f64,
}

/// What several nodes did, added up.
#[derive(Default)]
struct Sum {
    /// Whether anything is known of a node at least.
    known: bool,
    requests: u64,
    keys: u64,
    errors: u64,
    latencies: ReportedLatencies,
    in_flight: u32,
    asked: RequestTotals,
}

/// What routers asked, added up.
#[derive(Clone, Copy, Default)]
struct RequestTotals {
    keys_pending: u64,
    requests_pending: u64,
    keys: u64,
    hedges: u64,
    keys_hedged: u64,
    failed: u64,
    overtaken: u64,
}

/// What happened between two samples, the earlier first.
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
    }
}

impl Sum {
    fn of_node(before: Option<&v1::NodeStatus>, after: &v1::NodeStatus, asked: RequestTotals) -> Self {
        let in_flight = after.load.as_ref().map_or(0, |load| load.in_flight);
        let earlier = before.and_then(|before| before.counters.as_ref());
        let (Some(before), Some(after)) = (earlier, after.counters.as_ref()) else {
            return Self { in_flight, asked, ..Self::default() };
        };
        if before.started_us != after.started_us {
            return Self { in_flight, asked, ..Self::default() };
        }
        Self {
            known: true,
            requests: after.requests.saturating_sub(before.requests),
            keys: after.keys.saturating_sub(before.keys),
            errors: after.failed.saturating_sub(before.failed),
            latencies: latencies(&before.latencies, &after.latencies),
            in_flight,
            asked,
        }
    }

    fn add(&mut self, other: &Self) {
        self.known |= other.known;
        self.requests += other.requests;
        self.keys += other.keys;
        self.errors += other.errors;
        self.latencies.add(&other.latencies);
        self.in_flight += other.in_flight;
        self.asked.add(&other.asked);
    }

    fn rates(&self, seconds: f64) -> Rates {
        let rate = |count: u64| self.known.then(|| per_second(count, seconds));
        Rates {
            requests_per_second: rate(self.requests),
            keys_per_second: rate(self.keys),
            errors_per_second: rate(self.errors),
            p50_us: micros(&self.latencies, 500),
            p99_us: micros(&self.latencies, 990),
            in_flight: self.in_flight,
            keys_pending: self.asked.keys_pending,
            requests_pending: self.asked.requests_pending,
            hedges_per_second: per_second(self.asked.hedges, seconds),
            keys_hedged_ratio: self.asked.keys_hedged_ratio(),
            overtaken_per_second: per_second(self.asked.overtaken, seconds),
            failed_per_second: per_second(self.asked.failed, seconds),
        }
    }
}

impl RequestTotals {
    /// A node that left the table and came back is counted from 0: nothing is known of it then.
    fn between(before: &v1::AskedCounters, after: &v1::AskedCounters) -> Self {
        Self {
            keys_pending: after.keys_pending,
            requests_pending: after.requests_pending.into(),
            keys: after.keys.saturating_sub(before.keys),
            hedges: after.hedges.saturating_sub(before.hedges),
            keys_hedged: after.keys_hedged.saturating_sub(before.keys_hedged),
            failed: after.failed.saturating_sub(before.failed),
            overtaken: after.overtaken.saturating_sub(before.overtaken),
        }
    }

    fn add(&mut self, other: &Self) {
        self.keys_pending += other.keys_pending;
        self.requests_pending += other.requests_pending;
        self.keys += other.keys;
        self.hedges += other.hedges;
        self.keys_hedged += other.keys_hedged;
        self.failed += other.failed;
        self.overtaken += other.overtaken;
    }

    fn keys_hedged_ratio(&self) -> f64 {
        if self.keys == 0 { 0.0 } else { rounded(self.keys_hedged as f64 / self.keys as f64, 10_000.0) }
    }
}

/// What all routers asked of each node.
fn asked_of_nodes(before: &Sample, after: &Sample) -> BTreeMap<u32, RequestTotals> {
    let mut sums = BTreeMap::<u32, RequestTotals>::new();
    for (addr, counters) in &after.routers {
        let Some(counters) = counters else { continue };
        for (node, asked) in asked_by_router(earlier(before, addr, counters), counters) {
            sums.entry(node).or_default().add(&asked);
        }
    }
    sums
}

/// What a router asked of each node. What is pending is known without an earlier sample, and a node that was not asked
/// before then was asked since.
fn asked_by_router<'a>(
    before: Option<&'a v1::RouterCounters>,
    after: &'a v1::RouterCounters,
) -> impl Iterator<Item = (u32, RequestTotals)> + 'a {
    after.nodes.iter().map(move |node| {
        let asked = match before {
            Some(before) => {
                let earlier = before.nodes.iter().find(|earlier| earlier.node == node.node);
                RequestTotals::between(earlier.unwrap_or(&v1::AskedCounters::default()), node)
            }
            None => RequestTotals::between(node, node),
        };
        (node.node, asked)
    })
}

/// The earlier counters of the same start of the same router.
fn earlier<'a>(before: &'a Sample, addr: &str, after: &v1::RouterCounters) -> Option<&'a v1::RouterCounters> {
    let before = before.routers.get(addr)?.as_ref()?;
    (before.started_us == after.started_us).then_some(before)
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

fn latencies(before: &[u64], after: &[u64]) -> ReportedLatencies {
    ReportedLatencies::of_counts(after).since(&ReportedLatencies::of_counts(before))
}

fn micros(latencies: &ReportedLatencies, share: u64) -> Option<u64> {
    latencies.per_mille(share).map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
}

/// To a tenth; 0 if no time has passed.
fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds <= 0.0 { 0.0 } else { rounded(count as f64 / seconds, 10.0) }
}

fn rounded(number: f64, steps: f64) -> f64 {
    (number * steps).round() / steps
}

#[cfg(test)]
mod tests;
