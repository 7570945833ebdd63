//! Counters stand at 0 before there is anything to count. Prometheus takes a counter that appears as 1 for one that never rose, so
//! an alert would miss the first event of a kind.

use crate::topology::TopologyReceiver;
use kith_routing::execution::HedgeAbort;
use metrics::{counter, gauge};
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// What queries are called in metrics.
const QUERIES: [&str; 15] = [
    "connections",
    "entities",
    "members",
    "network",
    "distance",
    "path",
    "common",
    "suggest",
    "explain",
    "mget",
    "mget_stream",
    "compute",
    "compute_stream",
    "aggregate",
    "resp",
];

/// Counters without labels that every process has.
const OF_PROCESSES: [&str; 5] = [
    "kith_server_frames_total",
    "kith_server_malformed_connections_total",
    "kith_server_shared_bytes_total",
    "kith_server_tls_failures_total",
    "kith_client_mismatched_values_total",
];

/// Those of a router.
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

/// Those of a node.
const OF_NODES: [&str; 14] = [
    "kith_node_damage_found_total",
    "kith_node_damaged_reads_total",
    "kith_node_expired_total",
    "kith_node_fetch_held_back_total",
    "kith_node_fetched_bytes_total",
    "kith_node_fetched_from_peers_bytes_total",
    "kith_node_files_repaired_total",
    "kith_node_overloaded_total",
    "kith_node_read_by_peers_bytes_total",
    "kith_node_reads_beside_fetch_total",
    "kith_node_reused_bytes_total",
    "kith_node_scrub_rounds_total",
    "kith_node_scrubs_put_off_total",
    "kith_node_warmed_bytes_total",
];

/// Values of the labels of a counter.
struct Labelled {
    name: &'static str,
    label: &'static str,
    values: &'static [&'static str],
}

/// Counters with one label that every process has.
const LABELLED: [Labelled; 4] = [
    Labelled {
        name: "kith_server_connections_total",
        label: "protocol",
        values: &["framed", "framed-local", "grpc", "http", "other", "redis"],
    },
    Labelled {
        name: "kith_server_connections_closed_total",
        label: "reason",
        values: &["too_many_connections", "unknown", "crowded_out", "idle", "slow_request", "stalled"],
    },
    Labelled {
        name: "kith_server_requests_refused_total",
        label: "reason",
        values: &["memory", "reply_memory"],
    },
    Labelled {
        name: "kith_server_refused_total",
        label: "code",
        values: &["bad_request", "permission_denied", "tls_required", "unauthenticated"],
    },
];

/// Those of a router.
const LABELLED_OF_ROUTERS: [Labelled; 6] = [
    Labelled { name: "kith_router_query_errors_total", label: "op", values: &QUERIES },
    Labelled { name: "kith_router_partial_answers_total", label: "op", values: &QUERIES },
    Labelled { name: "kith_router_requests_total", label: "op", values: &QUERIES },
    Labelled {
        name: "kith_router_network_cache_lookups_total",
        label: "outcome",
        values: &["hit", "stale", "miss", "joined"],
    },
    Labelled { name: "kith_router_list_cache_lookups_total", label: "outcome", values: &["hit", "miss"] },
    Labelled {
        name: "kith_client_connections_opened_total",
        label: "op",
        values: &["alive", "evaluate", "ping", "query"],
    },
];

/// Those of a node.
const LABELLED_OF_NODES: [Labelled; 1] =
    [Labelled { name: "kith_node_waits_told_total", label: "believed", values: &["true", "false"] }];

/// Why a router refuses queries.
const REFUSALS: [&str; 5] =
    ["quota_keys", "quota_bytes", "overloaded", "batch_too_large", "answer_too_large"];
/// How a push ends.
const OUTCOMES: [&str; 4] = ["done", "failed", "refused", "cancelled"];

/// Counts for a router from zero: now what every router counts, and from when it is known what is counted for a store.
pub(crate) fn of_router(topology: &TopologyReceiver, stop: &CancellationToken) {
    zero(&OF_PROCESSES, &LABELLED);
    zero(&OF_ROUTERS, &LABELLED_OF_ROUTERS);
    for reason in HedgeAbort::ALL {
        counter!("kith_client_hedges_aborted_total", "reason" => reason.name()).increment(0);
    }
    refusals_of_router("unknown");
    follow(topology.clone(), stop.clone(), store_of_router);
}

/// Counts for a node from zero, likewise.
pub(crate) fn of_node(topology: &TopologyReceiver, stop: &CancellationToken) {
    zero(&OF_PROCESSES, &LABELLED);
    zero(&OF_NODES, &LABELLED_OF_NODES);
    gauge!("kith_node_files_damaged").increment(0.0);
    gauge!("kith_node_exports_waiting").increment(0.0);
    gauge!("kith_node_fetch_held_back_bytes_per_second").increment(0.0);
    follow(topology.clone(), stop.clone(), store_of_node);
}

fn zero(names: &[&'static str], labelled: &[Labelled]) {
    for &name in names {
        counter!(name).increment(0);
    }
    for Labelled { name, label, values } in labelled {
        for &value in *values {
            counter!(*name, *label => value).increment(0);
        }
    }
}

/// Has `count` see each store once, those that there are at once.
fn follow(mut topology: TopologyReceiver, stop: CancellationToken, count: fn(&str)) {
    let mut known = BTreeSet::new();
    let mut see = move |topology: &mut TopologyReceiver| {
        let current = topology.borrow_and_update().clone();
        for store in &current.stores {
            if known.insert(store.name.clone()) {
                count(&store.name);
            }
        }
    };
    see(&mut topology);
    tokio::spawn(async move {
        while let Some(Ok(())) = stop.run_until_cancelled(topology.changed()).await {
            see(&mut topology);
        }
    });
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
    for quantile in ["0.5", "0.99"] {
        gauge!("kith_router_store_latency_seconds", "store" => store.to_owned(), "quantile" => quantile)
            .increment(0.0);
    }
    refusals_of_router(store);
}

fn refusals_of_router(store: &str) {
    for reason in REFUSALS {
        counter!("kith_router_refused_total", "store" => store.to_owned(), "reason" => reason).increment(0);
    }
}

fn store_of_node(store: &str) {
    for reason in ["quota_keys", "quota_bytes"] {
        counter!("kith_node_refused_total", "store" => store.to_owned(), "reason" => reason).increment(0);
    }
}
