//! What all connections of Redis clients share.

use super::{
    answer::Answer,
    clients::{Client, Clients, Connected},
    commands,
    dialogue::Host,
    reads::Reads,
    round::Group,
};
use crate::{Backend, CONNECTIONS_MAX};
use futures::future::join_all;
use kith_api::{QueryError, StoreShape};
use kith_wire::resp::{Limits, Malformed};
use metrics::{Counter, counter};
use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

/// What the connections of one listener share.
pub(super) struct Endpoint {
    backend: Arc<dyn Backend>,
    reads: Arc<Reads>,
    addr: SocketAddr,
    clients: Arc<Clients>,
    commands: AtomicU64,
    metrics: Metrics,
}

struct Metrics {
    /// By index in [`commands::ALL`]; the last is of those that are unknown.
    commands: Vec<Counter>,
    auth_failures: Counter,
    errors: Counter,
    malformed: Counter,
    stalled: Counter,
}

impl Metrics {
    fn new(role: &'static str) -> Self {
        let names = commands::ALL.iter().map(|spec| spec.name).chain(["unknown"]);
        Self {
            commands: names
                .map(|name| counter!("kith_resp_commands_total", "role" => role, "command" => name))
                .collect(),
            auth_failures: counter!("kith_resp_auth_failures_total", "role" => role),
            errors: counter!("kith_resp_errors_total", "role" => role),
            malformed: counter!("kith_resp_malformed_connections_total", "role" => role),
            stalled: counter!("kith_resp_stalled_connections_total", "role" => role),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// One that listens at `addr`, and has no connections yet.
    pub fn new(backend: Arc<dyn Backend>, addr: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::new(backend.role()),
            reads: Arc::new(Reads::new(Arc::clone(&backend))),
            backend,
            addr,
            clients: Arc::new(Clients::new(Instant::now())),
            commands: AtomicU64::new(0),
        })
    }

    /// One more connection.
    pub fn connect(&self, peer: SocketAddr) -> Connected {
        self.clients.connect(peer, self.addr)
    }

    /// Reads all groups at once; answers in their order.
    pub async fn read(&self, groups: Vec<Group>) -> Vec<Result<Answer, QueryError>> {
        let mut reads = groups.into_iter().map(|group| self.reads.read(group));
        match (reads.len(), reads.next()) {
            (1, Some(only)) => vec![only.await],
            (_, first) => join_all(first.into_iter().chain(reads)).await,
        }
    }

    /// Commands were answered with errors.
    pub fn note_errors(&self, count: u64) {
        if 0 < count {
            self.metrics.errors.increment(count);
        }
    }

    /// A connection is closed because of what it sent.
    pub fn note_malformed(&self, malformed: &Malformed) {
        self.metrics.malformed.increment(1);
        tracing::debug!(%malformed, "a Redis client breaks the protocol: closing its connection");
    }

    /// A connection is closed because it does not read.
    pub fn note_stalled(&self) {
        self.metrics.stalled.increment(1);
    }
}

impl Host for Endpoint {
    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError> {
        self.backend.shape_of(store)
    }

    fn sections(&self) -> Vec<(&'static str, String)> {
        let server = format!(
            "kith_version:{}\r\nkith_role:{}\r\nredis_mode:standalone\r\nprocess_id:{}\r\ntcp_port:{}\r\nuptime_in_seconds:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            self.backend.role(),
            std::process::id(),
            self.addr.port(),
            self.clients.uptime().as_secs(),
        );
        let clients =
            format!("connected_clients:{}\r\nmaxclients:{CONNECTIONS_MAX}\r\n", self.clients.count());
        let stats = format!(
            "total_connections_received:{}\r\ntotal_commands_processed:{}\r\n",
            self.clients.connections(),
            self.commands.load(Ordering::Relaxed),
        );
        let stores = self.backend.stores().into_iter();
        let stores = stores.map(|(name, version)| format!("{name}:version={version}\r\n")).collect();
        vec![("Server", server), ("Clients", clients), ("Stats", stats), ("Stores", stores)]
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("appendonly", "no".to_owned()),
            ("databases", "1".to_owned()),
            ("maxclients", CONNECTIONS_MAX.to_string()),
            ("port", self.addr.port().to_string()),
            ("proto-max-bulk-len", Limits::USUAL.argument_bytes.to_string()),
            ("save", String::new()),
            ("timeout", "0".to_owned()),
        ]
    }

    fn clients(&self) -> String {
        self.clients.list()
    }

    fn client(&self, client: &Client) -> String {
        self.clients.line(client)
    }

    fn note(&self, command: Option<usize>) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.metrics.commands[command.unwrap_or(commands::ALL.len())].increment(1);
    }
    fn note_unproven(&self, client: &Client, is_first: bool) {
        self.metrics.auth_failures.increment(1);
        // Once a connection: whoever guesses does not fill the log as well.
        if is_first {
            tracing::warn!(peer = %client.peer(), "a Redis client shows a token that nobody has, or of another user");
        }
    }
}
