//! Listening for Redis clients, and what all of their connections share.

use super::{
    Answer, Backend, Group,
    clients::{CLIENTS_MAX, Client, Clients, Connected},
    commands, connection,
    dialogue::Host,
    visitor::Visitor,
};
use futures::future::join_all;
use kith_api::QueryError;
use kith_net::server::{
    Bound,
    connections::{self, farewell},
    listen::{self, Opening},
    security::{Gate, Need, Security},
};
use kith_schema::KeyType;
use kith_wire::resp::{Limits, Malformed};
use metrics::{Counter, Gauge, counter, gauge};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// What those are told who speak in the clear to a port that takes TLS only.
const TLS_REQUIRED: &str = "ERR tls_required: this port takes TLS only (redis-cli --tls --cacert FILE; redis-py ssl=True, ssl_ca_certs=FILE)";

/// What those are told for whom there is no room, as Redis does.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

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
    auth_failures: Counter,
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
            auth_failures: counter!("kith_resp_auth_failures_total", "role" => role),
            connections: counter!("kith_resp_connections_total", "role" => role),
            connected: gauge!("kith_resp_connections", "role" => role),
            errors: counter!("kith_resp_errors_total", "role" => role),
            malformed: counter!("kith_resp_malformed_connections_total", "role" => role),
            refused: counter!("kith_resp_refused_connections_total", "role" => role),
            stalled: counter!("kith_resp_stalled_connections_total", "role" => role),
        }
    }
}

/// Serves RESP on `bound` until `stop`, to whom `security` lets in. The tasks are those of its connections: they end soon after.
pub fn spawn(
    bound: Bound,
    backend: Arc<dyn Backend>,
    security: &Security,
    stop: CancellationToken,
) -> TaskTracker {
    let tasks = TaskTracker::new();
    let endpoint = Endpoint::new(backend, bound.addr);
    let gate = security.gate.clone();
    let connections = tasks.clone();
    tasks.spawn(async move {
        let welcome = |(stream, peer), place| {
            let served = welcome(stream, peer, place, gate.clone(), Arc::clone(&endpoint), stop.clone());
            connections.spawn(served);
        };
        let refuse = |(stream, _)| {
            endpoint.metrics.refused.increment(1);
            if gate.is_none() {
                bound.connections.refuse(farewell::at_once(stream, TOO_MANY));
            }
        };
        listen::each(bound.listener, &bound.connections, &stop, welcome, refuse).await;
        connections.close();
    });
    tasks
}

async fn welcome(
    mut stream: TcpStream,
    peer: SocketAddr,
    place: Arc<connections::Connected>,
    gate: Option<Arc<Gate>>,
    endpoint: Arc<Endpoint>,
    stop: CancellationToken,
) {
    endpoint.metrics.connections.increment(1);
    let Some(connected) = endpoint.connect(peer) else {
        endpoint.metrics.refused.increment(1);
        if gate.is_none() {
            // Nobody waits for somebody who does not read: it is closed either way. Hands are not shaken to say so.
            let _ = stream.write_all(TOO_MANY).await;
        }
        return;
    };
    endpoint.metrics.connected.increment(1);
    place.speaks("redis");
    let served = begin(stream, connected, place, gate, Arc::clone(&endpoint), stop).await;
    endpoint.metrics.connected.decrement(1);
    if let Err(error) = served {
        tracing::debug!(%error, %peer, "a connection of a Redis client ended");
    }
}

/// Serves a connection: over TLS where there is a gate.
async fn begin(
    stream: TcpStream,
    connected: Connected,
    place: Arc<connections::Connected>,
    gate: Option<Arc<Gate>>,
    endpoint: Arc<Endpoint>,
    stop: CancellationToken,
) -> io::Result<()> {
    listen::prepare(&stream)?;
    let Some(gate) = gate else {
        place.is_known_now();
        return connection::serve(stream, connected, place, endpoint, Visitor::anybody(), stop).await;
    };
    let peer = connected.client.peer();
    match place.unless_strange(listen::open(&gate, stream, Some(peer), &stop)).await? {
        Opening::Tls(stream, caller) => {
            if gate.check(&caller, &Need::Known).is_ok() {
                place.is_known_now();
            }
            connection::serve(stream, connected, place, endpoint, Visitor::new(gate, caller), stop).await
        }
        Opening::Clear(stream, _) => {
            listen::count_failure();
            tracing::warn!(%peer, "a Redis client speaks in the clear, and this port takes TLS only: closing its connection");
            place.unless_strange(connection::refuse(stream, TLS_REQUIRED)).await
        }
        Opening::Closed => Ok(()),
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
    fn note_unproven(&self, client: &Client, is_first: bool) {
        self.metrics.auth_failures.increment(1);
        // Once a connection: whoever guesses does not fill the log as well.
        if is_first {
            tracing::warn!(peer = %client.peer(), "a Redis client shows a token that nobody has, or of another user");
        }
    }
}
