//! Listening for Redis clients, and what all of their connections share.

use super::{
    Answer, Backend, Group,
    clients::{CLIENTS_MAX, Client, Clients, Connected},
    commands, connection,
    dialogue::Host,
};
use crate::serve::Bound;
use futures::future::join_all;
use kith_client::QueryError;
use kith_engine::KeyType;
use kith_wire::resp::{Limits, Malformed};
use metrics::{Counter, Gauge, counter, gauge};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Pause after a failure to accept, as when the process has no file descriptors left: those that end give theirs back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// What the connections of one listener share.
pub(super) struct Endpoint {
    backend: Arc<dyn Backend>,
    addr: SocketAddr,
    clients: Arc<Clients>,
    commands: AtomicU64,
    metrics: Metrics,
}

struct Metrics {
    /// By index in [`commands::ALL`]; the last is of those that are unknown.
    commands: Vec<Counter>,
    connections: Counter,
    connected: Gauge,
    errors: Counter,
    malformed: Counter,
    refused: Counter,
    stalled: Counter,
}

impl Metrics {
    fn new(role: &'static str) -> Self {
        let names = commands::ALL.iter().map(|spec| spec.name).chain(["unknown"]);
        Self {
            commands: names
                .map(|name| counter!("kith_resp_commands_total", "role" => role, "command" => name))
                .collect(),
            connections: counter!("kith_resp_connections_total", "role" => role),
            connected: gauge!("kith_resp_connections", "role" => role),
            errors: counter!("kith_resp_errors_total", "role" => role),
            malformed: counter!("kith_resp_malformed_connections_total", "role" => role),
            refused: counter!("kith_resp_refused_connections_total", "role" => role),
            stalled: counter!("kith_resp_stalled_connections_total", "role" => role),
        }
    }
}

/// Serves RESP on `bound` until `stop`. The tasks are those of its connections: they end soon after.
pub(crate) fn spawn(bound: Bound, backend: Arc<dyn Backend>, stop: CancellationToken) -> TaskTracker {
    let tasks = TaskTracker::new();
    let endpoint = Endpoint::new(backend, bound.addr);
    tasks.spawn(accept(bound, endpoint, tasks.clone(), stop));
    tasks
}

async fn accept(bound: Bound, endpoint: Arc<Endpoint>, tasks: TaskTracker, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = bound.listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                tasks.spawn(welcome(stream, peer, Arc::clone(&endpoint), stop.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection of a Redis client cannot be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
    tasks.close();
}

async fn welcome(mut stream: TcpStream, peer: SocketAddr, endpoint: Arc<Endpoint>, stop: CancellationToken) {
    // Small replies must not wait for an acknowledgement of the one before.
    let nodelay = stream.set_nodelay(true);
    endpoint.metrics.connections.increment(1);
    let Some(connected) = endpoint.connect(peer) else {
        endpoint.metrics.refused.increment(1);
        // Nobody waits for somebody who does not read: it is closed either way.
        let _ = stream.write_all(b"-ERR max number of clients reached\r\n").await;
        return;
    };
    endpoint.metrics.connected.increment(1);
    let served = match nodelay {
        Ok(()) => connection::serve(stream, connected, Arc::clone(&endpoint), stop).await,
        Err(error) => Err(error),
    };
    endpoint.metrics.connected.decrement(1);
    if let Err(error) = served {
        tracing::debug!(%error, %peer, "a connection of a Redis client ended");
    }
}

impl Endpoint {
    /// One that listens at `addr`, and has no connections yet.
    pub fn new(backend: Arc<dyn Backend>, addr: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            metrics: Metrics::new(backend.role()),
            backend,
            addr,
            clients: Arc::new(Clients::new(Instant::now())),
            commands: AtomicU64::new(0),
        })
    }

    /// One more connection; `None` if there are too many.
    pub fn connect(&self, peer: SocketAddr) -> Option<Connected> {
        self.clients.connect(peer, self.addr)
    }

    /// Reads all groups at once; answers in their order.
    pub async fn read(&self, groups: Vec<Group>) -> Vec<Result<Answer, QueryError>> {
        let mut reads = groups.into_iter().map(|group| Arc::clone(&self.backend).read(group));
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
    fn keys_of(&self, store: &str) -> Result<KeyType, QueryError> {
        self.backend.keys_of(store)
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
        let clients = format!("connected_clients:{}\r\nmaxclients:{CLIENTS_MAX}\r\n", self.clients.count());
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
            ("maxclients", CLIENTS_MAX.to_string()),
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
}
