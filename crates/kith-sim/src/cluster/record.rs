//! What is known of a run afterwards.

use kith_routing::execution::Verdict;
use kith_types::{FanOutKind, NodeId, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// One query and how it went.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryRecord {
    /// Its kind.
    pub kind: FanOutKind,
    /// How many keys it had.
    pub keys: usize,
    /// Keys on the busiest node as planned.
    pub busiest_keys: usize,
    /// When it came.
    pub began: Timestamp,
    /// How long it took.
    pub took: Duration,
    /// The right term of equation 4: its slowest request, from leaving the client to coming back.
    pub slowest: Duration,
    /// Requests sent, retries among them.
    pub requests: u32,
    /// Requests that repeat a failed one's keys.
    pub retries: u32,
    /// Keys that were asked a second time because a request was late.
    pub hedged_keys: u32,
    /// How it ended; `None` if no plan could be made.
    pub verdict: Option<Verdict>,
    /// Whether a positive answer ended it.
    pub stopped_early: bool,
    /// Keys that a node answered which does not hold them, or that were answered twice, or
    /// not at all although the query is complete. None, unless the decisions are wrong.
    pub wrong_keys: usize,
}

impl QueryRecord {
    pub(super) fn begin(kind: FanOutKind, keys: usize, busiest_keys: usize, now: Timestamp) -> Self {
        Self {
            kind,
            keys,
            busiest_keys,
            began: now,
            took: Duration::ZERO,
            slowest: Duration::ZERO,
            requests: 0,
            retries: 0,
            hedged_keys: 0,
            verdict: None,
            stopped_early: false,
            wrong_keys: 0,
        }
    }
}

/// What a run left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Queries that began after the warm-up, in the order in which they ended.
    pub queries: Vec<QueryRecord>,
    /// How busy the clients' processors were, while queries came: 0 to 1.
    pub client_utilisation: f64,
    /// How busy the nodes' processors were.
    pub node_utilisation: f64,
    /// Requests sent to a node more than a second after it fell silent, although the client
    /// could have asked another for the same keys.
    pub late_sends: u64,
    /// Queries that never ended.
    pub unended: usize,
    /// Keys that load meters still count as under way at the end.
    pub outstanding_keys: u64,
    /// When each node last served a request.
    pub last_served: BTreeMap<NodeId, Timestamp>,
    /// How long the recorded part took.
    pub recorded: Duration,
}

/// Latency and cost of some queries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// How many.
    pub queries: usize,
    /// Half took at most this many milliseconds.
    pub median_ms: f64,
    /// 99 in 100 took at most this many.
    pub p99_ms: f64,
    /// The mean.
    pub mean_ms: f64,
    /// The mean of the slowest request of each.
    pub slowest_mean_ms: f64,
    /// Requests per query.
    pub requests: f64,
}

impl Trace {
    /// Latency and cost of the queries of one kind, or of all.
    pub fn summary(&self, kind: Option<FanOutKind>) -> Summary {
        let of_kind = |query: &&QueryRecord| kind.is_none_or(|kind| kind == query.kind);
        let queries: Vec<&QueryRecord> = self.queries.iter().filter(of_kind).collect();
        let mut took: Vec<f64> = queries.iter().map(|query| millis(query.took)).collect();
        took.sort_by(f64::total_cmp);
        let mean = |of: &dyn Fn(&QueryRecord) -> f64| {
            queries.iter().map(|query| of(query)).sum::<f64>() / queries.len().max(1) as f64
        };
        Summary {
            queries: queries.len(),
            median_ms: quantile(&took, 0.5),
            p99_ms: quantile(&took, 0.99),
            mean_ms: mean(&|query| millis(query.took)),
            slowest_mean_ms: mean(&|query| millis(query.slowest)),
            requests: mean(&|query| f64::from(query.requests)),
        }
    }

    /// Requests per second of all clients together.
    pub fn requests_per_second(&self) -> f64 {
        let requests: u64 = self.queries.iter().map(|query| u64::from(query.requests)).sum();
        requests as f64 / self.recorded.as_secs_f64()
    }
}

/// A duration in milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// The value that a share `share` of the sorted values does not exceed; 0 if there are none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}
