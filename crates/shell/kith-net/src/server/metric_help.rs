//! The `# HELP` lines of metrics, and the buckets of histograms. `docs/operating/metrics.md` lists them, and says more where it is needed.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};

/// The upper ends of the buckets of durations, in seconds. Each histogram has one series for each of them, and three more.
const SECONDS: [f64; 13] =
    [0.000_25, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];
/// The upper ends of the buckets of numbers of changes.
const CHANGES: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 25.0, 100.0, 250.0, 1_000.0];

/// Gives histograms their buckets. Without buckets, they would be quantiles since the start of the process, which no alert
/// can use.
pub(super) fn with_buckets(builder: PrometheusBuilder) -> PrometheusBuilder {
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let changes = Matcher::Suffix("_changes".to_owned());
    let builder = builder.set_buckets_for_metric(seconds, &SECONDS);
    let builder = builder.and_then(|builder| builder.set_buckets_for_metric(changes, &CHANGES));
    builder.expect("the lists of buckets are not empty")
}

/// Describes all metrics to the installed recorder. The kind of metric that a description is registered for has no effect.
pub(super) fn describe() {
    for (name, help) in HELP {
        metrics::describe_gauge!(*name, *help);
    }
}

/// The meaning of each metric. Metrics of doors are described where doors listen.
const HELP: &[(&str, &str)] = &[
    ("kith_build_info", "1, with the version of the program as a label"),
    ("kith_client_connections_opened_total", "framed connections that this process opened, by operation"),
    ("kith_client_hedged_keys_total", "keys in hedges"),
    ("kith_client_hedged_keys_wasted_total", "keys in hedges that another answer served first"),
    ("kith_client_hedges_aborted_total", "late requests that were not hedged, by reason"),
    ("kith_client_hedges_total", "hedges: requests sent to another node because the first one was late"),
    ("kith_client_hedges_won_total", "hedges whose answer came first for at least one key"),
    (
        "kith_client_mismatched_values_total",
        "values received with a wrong checksum, and read again from another replica",
    ),
    ("kith_database_calls_total", "calls that this database process answered"),
    ("kith_database_faults_total", "calls that this database process answered with an error, by code"),
    ("kith_live_cache_bytes", "memory of the cached objects and associations of a live graph"),
    ("kith_live_commit_changes", "changes per transaction of a leader"),
    (
        "kith_live_fills_refused_total",
        "entries read from the database but not kept, because a newer change had arrived",
    ),
    ("kith_live_fills_total", "entries read from the database because they were not in the cache"),
    ("kith_live_follow_failures_total", "failed attempts to follow the logs of a live graph"),
    ("kith_live_index_hits_total", "values looked up in an index of a partition and answered from memory"),
    ("kith_live_index_misses_total", "values looked up in an index of a partition in the database"),
    (
        "kith_live_jumps_total",
        "how often the cache of a partition was emptied, because the log lacked changes that the node lacked",
    ),
    ("kith_live_list_bytes", "memory of the sorted lists of a live graph"),
    ("kith_live_trimmed_total", "old rows that this node removed from the database as a leader"),
    ("kith_live_writes_total", "writes to live graphs that this node answered as a leader, by outcome"),
    ("kith_node_damage_found_total", "files that a scrub found damaged"),
    ("kith_node_damaged_reads_total", "reads that found damaged bytes"),
    ("kith_node_disk_bytes", "bytes of the file system with the node's versions"),
    ("kith_node_disk_free_bytes", "free bytes of the file system with the node's versions"),
    ("kith_node_evaluate_seconds", "duration of a request at the node"),
    ("kith_node_expired_total", "requests that were dropped unread because their deadline had passed"),
    ("kith_node_exports_waiting", "exports that wait for their store's read quota"),
    (
        "kith_node_fetch_held_back_bytes_per_second",
        "rate to which fetches are slowed down to protect reads, 0 if they are not",
    ),
    ("kith_node_fetch_held_back_total", "how often a slowdown of fetches has begun"),
    ("kith_node_fetched_bytes_total", "bytes requested from object stores and peers"),
    ("kith_node_fetched_from_peers_bytes_total", "bytes that peers supplied to this node"),
    ("kith_node_files_damaged", "damaged files that are not repaired yet"),
    ("kith_node_files_repaired_total", "damaged files that were repaired"),
    ("kith_node_overloaded_total", "requests that the node refused because it was overloaded"),
    ("kith_node_read_by_peers_bytes_total", "bytes that this node supplied to peers"),
    ("kith_node_read_p99_fetching_seconds", "p99 of reads inside the node during a fetch, 0 if unknown"),
    (
        "kith_node_read_p99_steady_seconds",
        "p99 of reads inside the node while it fetches nothing, 0 if unknown",
    ),
    ("kith_node_reads_beside_fetch_total", "reads that were measured during a fetch"),
    ("kith_node_refused_total", "parts of direct reads that were refused because of a read quota"),
    ("kith_node_resident_ratio", "proportion of a version's pages that are in memory"),
    (
        "kith_node_reused_bytes_total",
        "bytes of new versions that were taken from versions on the disk instead of fetched",
    ),
    ("kith_node_scrub_rounds_total", "completed rounds of the background check of all files"),
    (
        "kith_node_scrubs_put_off_total",
        "components that a scrub could not check for lack of descriptors or memory",
    ),
    (
        "kith_node_wait_p99_fetching_seconds",
        "p99 of routers' waits for this node during a fetch, 0 if unknown",
    ),
    (
        "kith_node_wait_p99_steady_seconds",
        "p99 of routers' waits for this node while it fetches nothing, 0 if unknown",
    ),
    ("kith_node_waits_told_total", "reports of routers about how long they waited"),
    ("kith_node_warmed_bytes_total", "bytes read into memory before a new version served"),
    ("kith_resp_auth_failures_total", "AUTH commands with an unknown token"),
    ("kith_resp_commands_total", "commands of Redis clients"),
    ("kith_resp_errors_total", "error replies to Redis clients"),
    (
        "kith_resp_malformed_connections_total",
        "Redis clients that were disconnected because they violated the protocol",
    ),
    (
        "kith_resp_stalled_connections_total",
        "Redis clients that were disconnected because they read no reply",
    ),
    ("kith_router_flip_seconds", "duration of the metadata write that makes a new version serve"),
    ("kith_router_forwarded_total", "queries forwarded to the router that caches the member's network"),
    ("kith_router_group_out", "1 if the group is taken out, otherwise 0"),
    ("kith_router_list_cache_bytes", "size of the router's cache of neighbour lists"),
    ("kith_router_list_cache_entries", "entries of the router's cache of neighbour lists"),
    ("kith_router_list_cache_lookups_total", "lookups in the cache of neighbour lists"),
    ("kith_router_metadata_age_seconds", "seconds since the router last reached the metadata store"),
    ("kith_router_network_cache_bytes", "size of the network cache"),
    ("kith_router_network_cache_entries", "entries of the network cache"),
    ("kith_router_network_cache_evictions_total", "evictions from the network cache"),
    ("kith_router_network_cache_hit_ratio", "hit ratio of the network cache"),
    ("kith_router_network_cache_lookups_total", "lookups in the network cache"),
    ("kith_router_nodes", "nodes in use"),
    ("kith_router_nodes_down", "nodes in use that are down or have never registered, as this router sees it"),
    ("kith_router_partial_answers_total", "incomplete answers to queries that allow them"),
    ("kith_router_pushes_total", "pushes that this router ran, by outcome"),
    ("kith_router_query_errors_total", "failed queries"),
    ("kith_router_query_seconds", "duration of a request at the router, by operation"),
    ("kith_router_read_bytes_total", "bytes of values in answers"),
    ("kith_router_read_keys_total", "keys of admitted reads"),
    ("kith_router_rebalance_stopped", "1 if a rebalance has stopped and waits for an operator, otherwise 0"),
    (
        "kith_router_record_dropped_total",
        "lines of the query record that were dropped because the disk was too slow",
    ),
    ("kith_router_refused_total", "refused queries, by reason"),
    ("kith_router_requests_total", "requests to nodes"),
    ("kith_router_slow_queries_total", "queries over the threshold of the slow-query log"),
    ("kith_router_store_answers_total", "answers of this router, by store"),
    ("kith_router_store_frozen", "1 if the store is frozen, otherwise 0"),
    (
        "kith_router_store_latency_seconds",
        "duration of this router's answers, by store and operation; writes to live graphs are included, streams are not",
    ),
    (
        "kith_router_store_push_running_seconds",
        "seconds since the running push of the store began, 0 if there is none",
    ),
    (
        "kith_router_store_version_age_seconds",
        "seconds since the current version of the store was pushed, 0 if there is none",
    ),
    ("kith_router_streams", "streams in progress"),
    (
        "kith_router_streams_cut_total",
        "streams that were ended because the client did not read them before the deadline",
    ),
    (
        "kith_server_certificate_expiry_timestamp_seconds",
        "when the first of the certificates in a file expires, in seconds since 1970",
    ),
    ("kith_server_connections", "open connections, by protocol"),
    ("kith_server_connections_closed_total", "connections that this process closed or refused, by reason"),
    ("kith_server_connections_total", "accepted connections, by protocol"),
    ("kith_server_frames_total", "frames received"),
    (
        "kith_server_malformed_connections_total",
        "framed connections that were closed because of a malformed frame",
    ),
    (
        "kith_server_refused_total",
        "calls that were refused because the caller is unknown or lacks a right, by error code",
    ),
    (
        "kith_server_reload_failed",
        "1 if the last attempt to reload changed files failed, so that the previous contents are in use, otherwise 0",
    ),
    ("kith_server_reload_failures_total", "failed attempts to reload changed files"),
    ("kith_server_requests_refused_total", "requests that were refused for lack of memory"),
    ("kith_server_shared_bytes_total", "bytes of replies that were passed through shared memory"),
    ("kith_server_tls_failures_total", "callers whose TLS handshake failed"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_have_buckets_and_everything_has_help() {
        let recorder = with_buckets(PrometheusBuilder::new()).build_recorder();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            describe();
            metrics::histogram!("kith_router_query_seconds", "op" => "mget").record(0.003);
            metrics::histogram!("kith_live_commit_changes").record(7.0);
            metrics::counter!("kith_server_frames_total").increment(1);
        });
        handle.run_upkeep();
        let text = handle.render();
        for line in [
            "# TYPE kith_router_query_seconds histogram",
            "kith_router_query_seconds_bucket{op=\"mget\",le=\"0.0025\"} 0",
            "kith_router_query_seconds_bucket{op=\"mget\",le=\"0.005\"} 1",
            "kith_live_commit_changes_bucket{le=\"10\"} 1",
            "# HELP kith_server_frames_total frames received",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }
}
