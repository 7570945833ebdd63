//! The counters of a node. Each starts at 0, before there is anything to count.

use kith_cluster::{
    counts::{self, LabelledCounter, zero},
    topology::TopologyReceiver,
};
use metrics::{counter, gauge};
use tokio_util::sync::CancellationToken;

/// Counters without labels.
const OF_NODES: [&str; 20] = [
    "kith_live_fills_refused_total",
    "kith_live_fills_total",
    "kith_live_follow_failures_total",
    "kith_live_index_hits_total",
    "kith_live_index_misses_total",
    "kith_live_jumps_total",
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

/// Counters with one label.
const LABELLED_OF_NODES: [LabelledCounter; 3] = [
    LabelledCounter { name: "kith_live_trimmed_total", label: "rows", values: &["changes", "outcomes"] },
    LabelledCounter {
        name: "kith_live_writes_total",
        label: "outcome",
        values: &[
            "done",
            "invalid",
            "refused",
            "write_id_taken",
            "not_leader",
            "overloaded",
            "outcome_unknown",
            "unavailable",
        ],
    },
    LabelledCounter { name: "kith_node_waits_told_total", label: "believed", values: &["true", "false"] },
];

/// Registers the counters of a node, with the value 0.
pub(super) fn of_node(topology: &TopologyReceiver, stop: &CancellationToken) {
    counts::of_process();
    zero(&OF_NODES, &LABELLED_OF_NODES);
    gauge!("kith_node_files_damaged").increment(0.0);
    gauge!("kith_node_exports_waiting").increment(0.0);
    gauge!("kith_node_fetch_held_back_bytes_per_second").increment(0.0);
    counts::follow(topology.clone(), stop.clone(), store_of_node);
}

fn store_of_node(store: &str) {
    for reason in ["quota_keys", "quota_bytes"] {
        counter!("kith_node_refused_total", "store" => store.to_owned(), "reason" => reason).increment(0);
    }
}
