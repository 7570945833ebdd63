//! The results of a run.

use kith_routing::execution::Verdict;
use kith_types::{FanOutKind, NodeId, Timestamp};
use std::collections::BTreeMap;
use std::time::Duration;

/// One query and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryRecord {
    /// The kind of the query's fan-out.
    pub kind: FanOutKind,
    /// The number of keys of the query.
    pub keys: usize,
    /// The number of keys on the busiest node, according to the plan.
    pub busiest_keys: usize,
    /// The time at which the query began.
    pub began: Timestamp,
    /// The duration of the query.
    pub took: Duration,
    /// The right term of equation 4: the longest time between a request's departure from the client and its reply's arrival.
    pub slowest: Duration,
    /// The number of requests sent, including retries.
    pub requests: u32,
    /// The number of requests that repeat the keys of a failed one.
    pub retries: u32,
    /// The number of keys that were requested a second time because a request was late.
    pub hedged_keys: u32,
    /// The outcome; `None` if no plan could be made.
    pub verdict: Option<Verdict>,
    /// Whether a positive answer ended the query early.
    pub stopped_early: bool,
    /// The number of keys that were answered by a node that does not hold them, were answered twice, or were not answered
    /// although the query is complete. Any number but 0 is an error in the production decisions.
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

/// The queries of a run, and the state of clients and nodes at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The queries that began after the warm-up, in the order in which they ended.
    pub queries: Vec<QueryRecord>,
    /// The utilisation of the clients' processors while queries arrived: 0 to 1.
    pub client_utilisation: f64,
    /// The utilisation of the nodes' processors while queries arrived: 0 to 1.
    pub node_utilisation: f64,
    /// The number of requests sent to a node more than a second after it stopped answering, although another replica of at
    /// least one of the keys was running.
    pub late_sends: u64,
    /// The number of queries that never ended.
    pub unended: usize,
    /// The number of keys that load meters still count as in flight at the end.
    pub outstanding_keys: u64,
    /// The time at which each node last served a request.
    pub last_served: BTreeMap<NodeId, Timestamp>,
    /// The duration of the part of the run that was recorded.
    pub recorded: Duration,
}

/// The latency and cost of a set of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// The number of queries.
    pub queries: usize,
    /// The median latency in milliseconds.
    pub median_ms: f64,
    /// The 99th percentile of the latency in milliseconds.
    pub p99_ms: f64,
    /// The mean latency in milliseconds.
    pub mean_ms: f64,
    /// The mean duration of the slowest request of each query, in milliseconds.
    pub slowest_mean_ms: f64,
    /// The mean number of requests per query.
    pub requests: f64,
}

impl Trace {
    /// Returns the latency and cost of the queries of one kind, or of all queries.
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

    /// Returns the requests per second of all clients together.
    pub fn requests_per_second(&self) -> f64 {
        let requests: u64 = self.queries.iter().map(|query| u64::from(query.requests)).sum();
        requests as f64 / self.recorded.as_secs_f64()
    }
}

/// Converts a duration to milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Returns the quantile `share` (0 to 1) of values that are sorted in ascending order; 0 if there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}
