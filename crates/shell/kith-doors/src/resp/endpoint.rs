//! The state that all connections of Redis clients share: the backend, the list of clients, and metrics.

use super::{
    answer::Answer,
    clients::{Client, Clients, ListedConnection},
    commands,
    host::Host,
    info::{self, Facts},
    keys::Group,
    reads::Reads,
};
use crate::{Backend, CONNECTIONS_MAX};
use futures::future::join_all;
use kith_net::server;
use kith_query::{QueryError, StoreShape};
use kith_wire::resp::{Limits, MalformedCommand};
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

/// The state that the connections of one listener share.
pub(super) struct Endpoint {
    backend: Arc<dyn Backend>,
    reads: Arc<Reads>,
    addr: SocketAddr,
    clients: Arc<Clients>,
    commands: AtomicU64,
    run_id: String,
    metrics: Metrics,
}

struct Metrics {
    /// By index in [`commands::ALL`]; the last one counts unknown commands.
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
    /// An endpoint that listens at `addr`, without connections.
    pub fn new(backend: Arc<dyn Backend>, addr: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::new(backend.role()),
            reads: Arc::new(Reads::new(Arc::clone(&backend))),
            backend,
            addr,
            clients: Arc::new(Clients::new(Instant::now())),
            commands: AtomicU64::new(0),
            run_id: rand::random::<[u8; 20]>().map(|byte| format!("{byte:02x}")).concat(),
        })
    }

    /// Adds a connection.
    pub fn connect(&self, peer: SocketAddr) -> ListedConnection {
        self.clients.connect(peer, self.addr)
    }

    /// Reads all groups concurrently, and returns their answers in the same order.
    pub async fn read(&self, groups: Vec<Group>) -> Vec<Result<Answer, QueryError>> {
        let mut reads = groups.into_iter().map(|group| self.reads.read(group));
        match (reads.len(), reads.next()) {
            (1, Some(only)) => vec![only.await],
            (_, first) => join_all(first.into_iter().chain(reads)).await,
        }
    }

    /// The stores with their versions.
    pub fn stores(&self) -> Vec<(String, u64)> {
        self.backend.stores()
    }

    /// Counts commands that were answered with an error.
    pub fn note_errors(&self, count: u64) {
        if 0 < count {
            self.metrics.errors.increment(count);
        }
    }

    /// Counts a connection that is closed because it broke the protocol.
    pub fn note_malformed(&self, malformed: &MalformedCommand) {
        self.metrics.malformed.increment(1);
        tracing::debug!(%malformed, "a Redis client broke the protocol: closing its connection");
    }

    /// Counts a connection that is closed because it does not read its replies.
    pub fn note_stalled(&self) {
        self.metrics.stalled.increment(1);
    }
}

impl Host for Endpoint {
    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError> {
        self.backend.shape_of(store)
    }

    fn sections(&self) -> Vec<(&'static str, String)> {
        info::sections(&Facts {
            role: self.backend.role(),
            run_id: self.run_id.clone(),
            port: self.addr.port(),
            uptime_seconds: self.clients.uptime().as_secs(),
            clients: self.clients.count(),
            clients_max: CONNECTIONS_MAX,
            connections: self.clients.connections(),
            commands: self.commands.load(Ordering::Relaxed),
            usage: server::of_process(),
            stores: self.backend.stores(),
        })
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

    fn clients(&self, ids: Option<&[u64]>) -> String {
        self.clients.list(ids)
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
        // Once per connection, so that a client that guesses tokens cannot fill the log.
        if is_first {
            tracing::warn!(peer = %client.peer(), "a Redis client presented an unknown token, or the token of another user");
        }
    }
}
