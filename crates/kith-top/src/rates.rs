//! Counters of two samples, and what they come to in a second.

use super::sample::Sample;
use kith_routing::ReportedLatencies;
use kith_wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;

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

/// What several nodes did, added up.
#[derive(Default)]
pub struct Sum {
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
pub struct RequestTotals {
    /// Keys that are waited for, now.
    pub keys_pending: u64,
    requests_pending: u64,
    keys: u64,
    /// Requests that were hedges.
    pub hedges: u64,
    keys_hedged: u64,
    failed: u64,
    overtaken: u64,
}

impl Sum {
    /// What a node did between two looks at it; nothing is known of one that did not answer twice, or started anew.
    pub fn of_node(before: Option<&v1::NodeStatus>, after: &v1::NodeStatus, asked: RequestTotals) -> Self {
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

    /// Adds what others did.
    pub fn add(&mut self, other: &Self) {
        self.known |= other.known;
        self.requests += other.requests;
        self.keys += other.keys;
        self.errors += other.errors;
        self.latencies.add(&other.latencies);
        self.in_flight += other.in_flight;
        self.asked.add(&other.asked);
    }

    /// What it comes to in a second of so many.
    pub fn rates(&self, seconds: f64) -> Rates {
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

    /// Adds what was asked of others.
    pub fn add(&mut self, other: &Self) {
        self.keys_pending += other.keys_pending;
        self.requests_pending += other.requests_pending;
        self.keys += other.keys;
        self.hedges += other.hedges;
        self.keys_hedged += other.keys_hedged;
        self.failed += other.failed;
        self.overtaken += other.overtaken;
    }

    /// The part of all keys that hedges asked for; 0 if there were none.
    pub fn keys_hedged_ratio(&self) -> f64 {
        if self.keys == 0 { 0.0 } else { rounded(self.keys_hedged as f64 / self.keys as f64, 10_000.0) }
    }
}

/// What all routers asked of each node.
pub fn asked_of_nodes(before: &Sample, after: &Sample) -> BTreeMap<u32, RequestTotals> {
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
pub fn asked_by_router<'a>(
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
pub fn earlier<'a>(
    before: &'a Sample,
    addr: &str,
    after: &v1::RouterCounters,
) -> Option<&'a v1::RouterCounters> {
    let before = before.routers.get(addr)?.as_ref()?;
    (before.started_us == after.started_us).then_some(before)
}

/// How long what happened between two samples took.
pub fn latencies(before: &[u64], after: &[u64]) -> ReportedLatencies {
    ReportedLatencies::of_counts(after).since(&ReportedLatencies::of_counts(before))
}

/// Upper bound of the given quantile, in thousandths (990 = p99), in microseconds; `None` if nothing was counted.
pub fn micros(latencies: &ReportedLatencies, share: u64) -> Option<u64> {
    latencies.per_mille(share).map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
}

/// To a tenth; 0 if no time has passed.
pub fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds <= 0.0 { 0.0 } else { rounded(count as f64 / seconds, 10.0) }
}

/// To so many steps of a whole.
pub fn rounded(number: f64, steps: f64) -> f64 {
    (number * steps).round() / steps
}
