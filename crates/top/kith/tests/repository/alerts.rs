//! The alerting rules of `docs/operating/alerts.md`, tested with promtool: each one fires on its series, and all stay silent
//! on the series of a healthy cluster.

use std::{collections::BTreeSet, fmt::Write, fs, process::Command};

/// A rule, series on which it fires, and the time at which it has to fire.
type Fires = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const SLOW: &[(&str, &str)] = &[
    (
        r#"kith_router_store_latency_seconds_bucket{instance="r1",store="people",op="write",le="0.1"}"#,
        "0+1x60",
    ),
    (
        r#"kith_router_store_latency_seconds_bucket{instance="r1",store="people",op="write",le="0.25"}"#,
        "0+60x60",
    ),
    (
        r#"kith_router_store_latency_seconds_bucket{instance="r1",store="people",op="write",le="+Inf"}"#,
        "0+60x60",
    ),
];

const ALL: &[Fires] = &[
    ("KithProcessDown", &[(r#"up{job="kith",instance="n1"}"#, "1x3 0x20")], "10m"),
    ("KithNodeDown", &[(r#"kith_router_nodes_down{instance="r1",group="0",zone=""}"#, "0x3 1x20")], "10m"),
    (
        "KithZoneDown",
        &[
            (r#"kith_router_nodes_down{instance="r1",group="0",zone="a"}"#, "0x3 2x20"),
            (r#"kith_router_nodes{instance="r1",group="0",zone="a"}"#, "2x23"),
        ],
        "10m",
    ),
    ("KithGroupOut", &[(r#"kith_router_group_out{instance="r1",group="0"}"#, "1x500")], "7h"),
    ("KithRebalanceStopped", &[(r#"kith_router_rebalance_stopped{instance="r1"}"#, "0x3 1x20")], "15m"),
    (
        "KithRouterMetadataStale",
        &[(r#"kith_router_metadata_age_seconds{instance="r1"}"#, "0 60 120 180 240")],
        "4m",
    ),
    (
        "KithStoreNotPushed",
        &[(r#"kith_router_store_version_age_seconds{instance="r1",store="people"}"#, "140000x30")],
        "20m",
    ),
    (
        "KithPushFailed",
        &[(r#"kith_router_pushes_total{instance="r1",store="people",outcome="failed"}"#, "0x5 1x20")],
        "10m",
    ),
    (
        "KithPushTakesLong",
        &[(r#"kith_router_store_push_running_seconds{instance="r1",store="people"}"#, "0+60x100")],
        "70m",
    ),
    ("KithStoreFrozen", &[(r#"kith_router_store_frozen{instance="r1",store="people"}"#, "1x1600")], "25h"),
    (
        "KithDiskFills",
        &[
            (r#"kith_node_disk_free_bytes{instance="n1"}"#, "100x30"),
            (r#"kith_node_disk_bytes{instance="n1"}"#, "1000x30"),
        ],
        "10m",
    ),
    ("KithFilesDamaged", &[(r#"kith_node_files_damaged{instance="n1"}"#, "0 1x30")], "20m"),
    ("KithReadsFindDamage", &[(r#"kith_node_damaged_reads_total{instance="n1"}"#, "0x5 1x20")], "10m"),
    ("KithSlowStore", SLOW, "20m"),
    ("KithQueriesFail", &[(r#"kith_router_query_errors_total{instance="r1",op="mget"}"#, "0+120x30")], "20m"),
    (
        "KithPartialAnswers",
        &[(r#"kith_router_partial_answers_total{instance="r1",op="mget"}"#, "0+6x30")],
        "20m",
    ),
    (
        "KithRefused",
        &[(r#"kith_router_refused_total{instance="r1",store="people",reason="quota_keys"}"#, "0+120x30")],
        "20m",
    ),
    ("KithNodeOverloaded", &[(r#"kith_node_overloaded_total{instance="n1"}"#, "0+6x30")], "20m"),
    (
        "KithFetchesHeldBack",
        &[(r#"kith_node_fetch_held_back_bytes_per_second{instance="n1"}"#, "4194304x60")],
        "40m",
    ),
    (
        "KithStrangers",
        &[
            (r#"kith_server_tls_failures_total{instance="r1"}"#, "0+120x30"),
            (r#"kith_server_refused_total{instance="r1",code="unauthenticated"}"#, "0x30"),
        ],
        "20m",
    ),
    ("KithReloadFailed", &[(r#"kith_server_reload_failed{instance="r1",file="access"}"#, "0x3 1x30")], "15m"),
    (
        "KithCertificateExpires",
        &[(
            r#"kith_server_certificate_expiry_timestamp_seconds{instance="r1",file="tls-cert"}"#,
            "500000x100",
        )],
        "90m",
    ),
    (
        "KithDescriptorsRunOut",
        &[
            (r#"process_open_fds{job="kith",instance="n1"}"#, "900x30"),
            (r#"process_max_fds{job="kith",instance="n1"}"#, "1024x30"),
        ],
        "20m",
    ),
];

/// The series of a healthy cluster. A node that is down while its group is taken out for an hour is healthy too.
const HEALTHY: &[(&str, &str)] = &[
    (r#"up{job="kith",instance="n1"}"#, "1x1600"),
    (r#"kith_router_nodes_down{instance="r1",group="0",zone="a"}"#, "0x1600"),
    (r#"kith_router_nodes{instance="r1",group="0",zone="a"}"#, "2x1600"),
    (r#"kith_router_nodes_down{instance="r1",group="1",zone="b"}"#, "0x100 1x60 0x1440"),
    (r#"kith_router_nodes{instance="r1",group="1",zone="b"}"#, "2x1600"),
    (r#"kith_router_group_out{instance="r1",group="0"}"#, "0x1600"),
    (r#"kith_router_group_out{instance="r1",group="1"}"#, "0x100 1x60 0x1440"),
    (r#"kith_router_rebalance_stopped{instance="r1"}"#, "0x1600"),
    (r#"kith_router_metadata_age_seconds{instance="r1"}"#, "0.5x1600"),
    (r#"kith_router_store_version_age_seconds{instance="r1",store="people"}"#, "0+60x1600"),
    (r#"kith_router_pushes_total{instance="r1",store="people",outcome="failed"}"#, "0x1600"),
    (r#"kith_router_store_push_running_seconds{instance="r1",store="people"}"#, "0+60x30 0x1570"),
    (r#"kith_router_store_frozen{instance="r1",store="people"}"#, "0x1600"),
    (r#"kith_node_disk_free_bytes{instance="n1"}"#, "500x1600"),
    (r#"kith_node_disk_bytes{instance="n1"}"#, "1000x1600"),
    (r#"kith_node_files_damaged{instance="n1"}"#, "0x1600"),
    (r#"kith_node_damaged_reads_total{instance="n1"}"#, "0x1600"),
    // It was slow for a minute long ago, which quantiles since the start would still show.
    (
        r#"kith_router_store_latency_seconds_bucket{instance="r1",store="people",op="mget",le="0.1"}"#,
        "0x2 0+1x1600",
    ),
    (
        r#"kith_router_store_latency_seconds_bucket{instance="r1",store="people",op="mget",le="0.25"}"#,
        "0 6000x2 6000+1x1600",
    ),
    (
        r#"kith_router_store_latency_seconds_bucket{instance="r1",store="people",op="mget",le="+Inf"}"#,
        "0 6000x2 6000+1x1600",
    ),
    (r#"kith_router_query_errors_total{instance="r1",op="mget"}"#, "0+1x1600"),
    (r#"kith_router_partial_answers_total{instance="r1",op="mget"}"#, "0x1600"),
    (r#"kith_router_refused_total{instance="r1",store="people",reason="quota_keys"}"#, "0x1600"),
    (r#"kith_node_overloaded_total{instance="n1"}"#, "0x1600"),
    (r#"kith_node_fetch_held_back_bytes_per_second{instance="n1"}"#, "0x1600"),
    (r#"kith_server_tls_failures_total{instance="r1"}"#, "0x1600"),
    (r#"kith_server_refused_total{instance="r1",code="unauthenticated"}"#, "0+1x1600"),
    (r#"kith_server_reload_failed{instance="r1",file="access"}"#, "0x1600"),
    (r#"kith_server_certificate_expiry_timestamp_seconds{instance="r1",file="tls-cert"}"#, "5000000x1600"),
    (r#"process_open_fds{job="kith",instance="n1"}"#, "90x1600"),
    (r#"process_max_fds{job="kith",instance="n1"}"#, "1024x1600"),
];

/// The rules in the document.
fn rules(document: &str) -> &str {
    let block = document.split("```").find(|block| block.starts_with("yaml"));
    block.and_then(|block| block.split_once('\n')).expect("a block of rules").1
}

fn series(text: &mut String, series: &[(&str, &str)]) {
    text.push_str("  - interval: 1m\n    input_series:\n");
    for (name, values) in series {
        writeln!(text, "      - series: '{name}'\n        values: '{values}'").expect("a string");
    }
    text.push_str("    promql_expr_test:\n");
}

/// Checks that every rule of `document` fires on its series, and that none fires on a healthy cluster.
pub fn check(document: &str) {
    let rules = rules(document);
    let alert =
        |line: &str| Some(line.trim().strip_prefix("- alert: ")?.split_whitespace().next()?.to_owned());
    let named: BTreeSet<String> = rules.lines().filter_map(alert).collect();
    let tested: BTreeSet<String> = ALL.iter().map(|(alert, ..)| (*alert).to_owned()).collect();
    assert_eq!(named, tested, "every rule has series on which it fires");
    let mut tests = "rule_files: [rules.yml]\nevaluation_interval: 30s\ntests:\n".to_owned();
    for (alert, input, at) in ALL {
        series(&mut tests, input);
        let firing = format!("min(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}})");
        writeln!(
            tests,
            "      - expr: '{firing}'\n        eval_time: {at}\n        exp_samples: [{{value: 1}}]"
        )
        .expect("a string");
    }
    series(&mut tests, HEALTHY);
    for at in ["10m", "40m", "2h", "130m", "150m", "8h", "26h"] {
        let firing = "ALERTS{alertstate=\"firing\"}";
        writeln!(tests, "      - expr: '{firing}'\n        eval_time: {at}\n        exp_samples: []")
            .expect("a string");
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rules.yml"), rules).expect("a file");
    fs::write(folder.path().join("tests.yml"), tests).expect("a file");
    let ran =
        Command::new("promtool").current_dir(folder.path()).args(["test", "rules", "tests.yml"]).output();
    let ran = ran.expect("promtool is installed: scripts/packages.sh does that");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
}
