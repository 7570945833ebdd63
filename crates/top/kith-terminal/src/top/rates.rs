//! The differences between the counters of two samples, as rates per second.

use super::sample::Sample;
use kith_routing::ReportedLatencies;
use kith_wire::v1;
use serde::Serialize;
use std::collections::BTreeMap;

/// The load of one node or of several. `None`: unknown, because the node did not answer or restarted during the interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// Requests of all clients, as counted by the nodes.
    pub requests_per_second: Option<f64>,
    pub keys_per_second: Option<f64>,
    /// Requests that were answered with an error.
    pub errors_per_second: Option<f64>,
    /// The median of the time in which nodes served requests, and its 99th percentile; `None` also if there were no
    /// requests.
    pub p50_us: Option<u64>,
    pub p99_us: Option<u64>,
    pub in_flight: u32,
    /// The keys for which routers wait now.
    pub keys_pending: u64,
    pub requests_pending: u64,
    /// Hedge requests of routers: requests that repeat the keys of a late request to another node.
    pub hedges_per_second: f64,
    /// The keys of hedges, as a share of all keys that routers requested.
    pub keys_hedged_ratio: f64,
    /// Requests of routers whose hedge answered first.
    pub overtaken_per_second: f64,
    /// Requests of routers that failed or timed out.
    pub failed_per_second: f64,
}

/// The counters of several nodes, added up.
#[derive(Default)]
pub struct Sum {
    /// Whether the counters of at least one node are known.
    known: bool,
    requests: u64,
    keys: u64,
    errors: u64,
    latencies: ReportedLatencies,
    in_flight: u32,
    asked: RequestTotals,
}

/// The requests of routers, added up.
#[derive(Clone, Copy, Default)]
pub struct RequestTotals {
    /// The keys for which routers wait now.
    pub keys_pending: u64,
    requests_pending: u64,
    keys: u64,
    /// The number of hedge requests.
    pub hedges: u64,
    keys_hedged: u64,
    failed: u64,
    overtaken: u64,
}

impl Sum {
    /// Returns the difference of a node's counters between two samples. The counters are unknown if the node did not answer
    /// twice, or if it restarted.
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

    /// Adds the counters of other nodes.
    pub fn add(&mut self, other: &Self) {
        self.known |= other.known;
        self.requests += other.requests;
        self.keys += other.keys;
        self.errors += other.errors;
        self.latencies.add(&other.latencies);
        self.in_flight += other.in_flight;
        self.asked.add(&other.asked);
    }

    /// Returns the rates per second over an interval of this length.
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
    /// Returns the difference of the counters of one node. They are not negative: a node that left the routing table and
    /// returned is counted from 0 again.
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

    /// Adds the requests to other nodes.
    pub fn add(&mut self, other: &Self) {
        self.keys_pending += other.keys_pending;
        self.requests_pending += other.requests_pending;
        self.keys += other.keys;
        self.hedges += other.hedges;
        self.keys_hedged += other.keys_hedged;
        self.failed += other.failed;
        self.overtaken += other.overtaken;
    }

    /// Returns the share of keys that hedges requested; 0 if there were no keys.
    pub fn keys_hedged_ratio(&self) -> f64 {
        if self.keys == 0 { 0.0 } else { rounded(self.keys_hedged as f64 / self.keys as f64, 10_000.0) }
    }
}

/// Returns the requests of all routers to each node.
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

/// Returns the requests of a router to each node. Pending requests are known even without an earlier sample. A node that is
/// absent from the earlier sample has received all its requests since then.
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

/// Returns the counters of an earlier sample, if the router has not restarted since.
pub fn earlier<'a>(
    before: &'a Sample,
    addr: &str,
    after: &v1::RouterCounters,
) -> Option<&'a v1::RouterCounters> {
    let before = before.routers.get(addr)?.as_ref()?;
    (before.started_us == after.started_us).then_some(before)
}

/// Returns the latencies of the requests between two samples.
pub fn latencies(before: &[u64], after: &[u64]) -> ReportedLatencies {
    ReportedLatencies::of_counts(after).since(&ReportedLatencies::of_counts(before))
}

/// Returns the upper bound of the given quantile, in thousandths (990 = p99), in microseconds; `None` if nothing was
/// counted.
pub fn micros(latencies: &ReportedLatencies, share: u64) -> Option<u64> {
    latencies.per_mille(share).map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX))
}

/// Returns a rate, rounded to a tenth; 0 if no time has passed.
pub fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds <= 0.0 { 0.0 } else { rounded(count as f64 / seconds, 10.0) }
}

/// Rounds a number to a multiple of 1 / `steps`.
pub fn rounded(number: f64, steps: f64) -> f64 {
    (number * steps).round() / steps
}
