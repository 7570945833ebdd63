//! Counters that start at 0. If a counter first appeared with the value 1, Prometheus would see no increase, and an alert would
//! miss the first event of a kind. This file lists the counters of every process; each role lists its own.

use crate::topology::TopologyReceiver;
use metrics::counter;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// Counters without labels that every process has.
const OF_PROCESSES: [&str; 5] = [
    "kith_server_frames_total",
    "kith_server_malformed_connections_total",
    "kith_server_shared_bytes_total",
    "kith_server_tls_failures_total",
    "kith_client_mismatched_values_total",
];

/// A counter with one label, and the values of that label.
pub struct LabelledCounter {
    /// The counter.
    pub name: &'static str,
    /// Its one label.
    pub label: &'static str,
    /// The values of the label.
    pub values: &'static [&'static str],
}

/// Counters with one label that every process has.
const LABELLED: [LabelledCounter; 5] = [
    LabelledCounter {
        name: "kith_server_reload_failures_total",
        label: "file",
        values: &["certificates", "access"],
    },
    LabelledCounter {
        name: "kith_server_connections_total",
        label: "protocol",
        values: &["framed", "framed-local", "grpc", "http", "other", "redis"],
    },
    LabelledCounter {
        name: "kith_server_connections_closed_total",
        label: "reason",
        values: &[
            "too_many_connections",
            "unknown",
            "crowded_out",
            "idle",
            "slow_request",
            "stalled",
            "too_many_frames",
        ],
    },
    LabelledCounter {
        name: "kith_server_requests_refused_total",
        label: "reason",
        values: &["memory", "reply_memory"],
    },
    LabelledCounter {
        name: "kith_server_refused_total",
        label: "code",
        values: &[
            "bad_request",
            "other_store",
            "permission_denied",
            "tls_required",
            "unauthenticated",
            "url_not_allowed",
        ],
    },
];

/// Registers the counters of every process, which then start at 0.
pub fn of_process() {
    zero(&OF_PROCESSES, &LABELLED);
}

/// Registers these counters, which then start at 0.
pub fn zero(names: &[&'static str], labelled: &[LabelledCounter]) {
    for &name in names {
        counter!(name).increment(0);
    }
    for LabelledCounter { name, label, values } in labelled {
        for &value in *values {
            counter!(*name, *label => value).increment(0);
        }
    }
}

/// Calls `count` once for each store: at once for those that exist, later for those that are created, until `stop`.
pub fn follow(mut topology: TopologyReceiver, stop: CancellationToken, count: fn(&str)) {
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
