//! The sections of `INFO`. Clients look there for the server's role, for its version, and for whether it is loading.

use kith_net::server::Usage;
use std::fmt::Write;

/// The release of Redis whose commands this door follows, for clients that ask for a version.
const REDIS_VERSION: &str = "7.2.0";

/// The content of the sections.
#[derive(Debug)]
pub(super) struct Facts {
    pub role: &'static str,
    /// 40 hexadecimal digits that differ from process to process.
    pub run_id: String,
    pub port: u16,
    pub uptime_seconds: u64,
    pub clients: usize,
    pub clients_max: usize,
    pub connections: u64,
    pub commands: u64,
    pub usage: Usage,
    /// The stores with their versions.
    pub stores: Vec<(String, u64)>,
}

/// The sections: their names, and their lines.
pub(super) fn sections(facts: &Facts) -> Vec<(&'static str, String)> {
    vec![
        ("Server", server(facts)),
        (
            "Clients",
            lines(&[
                ("connected_clients", &facts.clients),
                ("maxclients", &facts.clients_max),
                ("blocked_clients", &0),
            ]),
        ),
        ("Memory", memory(&facts.usage)),
        ("Persistence", lines(&[("loading", &0), ("rdb_bgsave_in_progress", &0), ("aof_enabled", &0)])),
        (
            "Stats",
            lines(&[
                ("total_connections_received", &facts.connections),
                ("total_commands_processed", &facts.commands),
            ]),
        ),
        ("Replication", replication(facts)),
        ("CPU", cpu(&facts.usage)),
        ("Cluster", lines(&[("cluster_enabled", &0)])),
        // How many keys the stores have is not known here.
        ("Keyspace", String::new()),
        (
            "Stores",
            facts.stores.iter().map(|(name, version)| format!("{name}:version={version}\r\n")).collect(),
        ),
    ]
}

fn server(facts: &Facts) -> String {
    lines(&[
        ("redis_version", &REDIS_VERSION),
        ("kith_version", &env!("CARGO_PKG_VERSION")),
        ("kith_role", &facts.role),
        ("redis_mode", &"standalone"),
        ("os", &std::env::consts::OS),
        ("arch_bits", &usize::BITS),
        ("process_id", &std::process::id()),
        ("run_id", &facts.run_id),
        ("tcp_port", &facts.port),
        ("uptime_in_seconds", &facts.uptime_seconds),
        ("uptime_in_days", &(facts.uptime_seconds / 86_400)),
    ])
}

/// Every process answers by itself, so each is a master without replicas.
fn replication(facts: &Facts) -> String {
    lines(&[
        ("role", &"master"),
        ("connected_slaves", &0),
        ("master_failover_state", &"no-failover"),
        ("master_replid", &facts.run_id),
        ("master_repl_offset", &0),
        ("second_repl_offset", &-1),
        ("repl_backlog_active", &0),
    ])
}

fn memory(usage: &Usage) -> String {
    let bytes = |number: Option<f64>| number.unwrap_or_default() as u64;
    let (used, peak) = (bytes(usage.resident_bytes), bytes(usage.peak_bytes));
    let human = |bytes: u64| format!("{:.2}M", bytes as f64 / f64::from(1 << 20));
    lines(&[
        ("used_memory", &used),
        ("used_memory_human", &human(used)),
        ("used_memory_rss", &used),
        ("used_memory_peak", &peak),
        ("used_memory_peak_human", &human(peak)),
        ("maxmemory", &0),
        ("maxmemory_policy", &"noeviction"),
    ])
}

fn cpu(usage: &Usage) -> String {
    let (all, kernel) = (usage.cpu_seconds.unwrap_or_default(), usage.kernel_cpu_seconds.unwrap_or_default());
    let own = (all - kernel).max(0.0);
    lines(&[("used_cpu_sys", &format!("{kernel:.6}")), ("used_cpu_user", &format!("{own:.6}"))])
}

fn lines(fields: &[(&str, &dyn std::fmt::Display)]) -> String {
    let mut text = String::new();
    for (name, value) in fields {
        // Writing to a string cannot fail.
        let _ = write!(text, "{name}:{value}\r\n");
    }
    text
}
