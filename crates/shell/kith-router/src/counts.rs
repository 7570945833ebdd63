//! The counters of a router, which start at 0 before there is anything to count.

use kith_cluster::{
    counts::{self, LabelledCounter, zero},
    topology::TopologyReceiver,
};
use kith_query::Question;
use kith_routing::execution::HedgeAbort;
use kith_types::OperationName;
use metrics::counter;
use tokio_util::sync::CancellationToken;

/// The values of the label `op` that are not operations: writes, doors, streams and the questions about plans and shapes.
const OTHER_REQUESTS: [&str; 12] = [
    "explain",
    "mget_stream",
    "compute_stream",
    "resp",
    "object_add",
    "object_update",
    "object_delete",
    "assoc_add",
    "assoc_delete",
    "assoc_change_type",
    "shape",
    "schema",
];

/// Counters without labels.
const OF_ROUTERS: [&str; 9] = [
    "kith_router_forwarded_total",
    "kith_router_network_cache_evictions_total",
    "kith_router_record_dropped_total",
    "kith_router_slow_queries_total",
    "kith_router_streams_cut_total",
    "kith_client_hedged_keys_total",
    "kith_client_hedged_keys_wasted_total",
    "kith_client_hedges_total",
    "kith_client_hedges_won_total",
];

/// Counters with one label.
const LABELLED_OF_ROUTERS: [LabelledCounter; 3] = [
    LabelledCounter {
        name: "kith_router_network_cache_lookups_total",
        label: "outcome",
        values: &["hit", "stale", "miss", "joined"],
    },
    LabelledCounter {
        name: "kith_router_list_cache_lookups_total",
        label: "outcome",
        values: &["hit", "miss"],
    },
    LabelledCounter {
        name: "kith_client_connections_opened_total",
        label: "op",
        values: &["alive", "database", "evaluate", "ping", "query"],
    },
];

/// The reasons for which a router refuses queries.
const REFUSALS: [&str; 5] =
    ["quota_keys", "quota_bytes", "overloaded", "batch_too_large", "answer_too_large"];
/// The outcomes of a push.
const OUTCOMES: [&str; 4] = ["done", "failed", "refused", "cancelled"];

/// Registers the counters of a router, which then start at 0. The counters of a store are registered as soon as the store
/// is known.
pub(crate) fn of_router(topology: &TopologyReceiver, stop: &CancellationToken) {
    counts::of_process();
    zero(&OF_ROUTERS, &LABELLED_OF_ROUTERS);
    requests().for_each(of_requests);
    for reason in HedgeAbort::ALL {
        counter!("kith_client_hedges_aborted_total", "reason" => reason.name()).increment(0);
    }
    refusals_of_router("unknown");
    counts::follow(topology.clone(), stop.clone(), store_of_router);
}

/// Every value of the label `op`, except for the doors that a program adds.
fn requests() -> impl Iterator<Item = &'static str> {
    Question::operations().into_iter().map(OperationName::name).chain(OTHER_REQUESTS)
}

/// Registers the counters of requests with this value of the label `op`, such as the name of a door that a program adds.
pub(crate) fn of_requests(op: &'static str) {
    for name in
        ["kith_router_query_errors_total", "kith_router_partial_answers_total", "kith_router_requests_total"]
    {
        counter!(name, "op" => op).increment(0);
    }
}

fn store_of_router(store: &str) {
    for outcome in OUTCOMES {
        counter!("kith_router_pushes_total", "store" => store.to_owned(), "outcome" => outcome).increment(0);
    }
    for name in
        ["kith_router_read_keys_total", "kith_router_read_bytes_total", "kith_router_store_answers_total"]
    {
        counter!(name, "store" => store.to_owned()).increment(0);
    }
    refusals_of_router(store);
}

fn refusals_of_router(store: &str) {
    for reason in REFUSALS {
        counter!("kith_router_refused_total", "store" => store.to_owned(), "reason" => reason).increment(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_counters_of_every_operation_and_of_other_requests_start_at_0() {
        let requests: Vec<&str> = requests().collect();
        let distinct: BTreeSet<&str> = requests.iter().copied().collect();
        assert_eq!(distinct.len(), requests.len(), "no request is listed twice: {requests:?}");
        for name in
            ["connections", "suggest", "object_find", "mget", "gremlin", "explain", "assoc_add", "resp"]
        {
            assert!(distinct.contains(name), "{name}");
        }
    }
}
