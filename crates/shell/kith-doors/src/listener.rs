//! Serves a door on a port: accepts connections, applies limits, TLS and authentication, and counts metrics.

use crate::{Backend, CallerRights, Door, DoorCaller, DoorNames, Stream, bounded::BoundedStream, parting};
use kith_net::server::{
    BoundListener,
    connections::{OpenConnection, farewell},
    hosts::Site,
    listen::{self, ConnectionOpening},
    security::{Gate, Need, Security},
};
use metrics::{Counter, Gauge, counter, gauge};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The most connections of one door at once; further ones are refused with [`DoorNames::no_room`].
pub const CONNECTIONS_MAX: usize = 10_000;

/// The state that the connections of one listener share.
pub(crate) struct Listener {
    door: Arc<dyn Door>,
    names: DoorNames,
    backend: Arc<dyn Backend>,
    gate: Option<Arc<Gate>>,
    stop: CancellationToken,
    connected: AtomicUsize,
    metrics: Metrics,
}

struct Metrics {
    auth_failures: Counter,
    connections: Counter,
    connected: Gauge,
    refused: Counter,
}

impl Metrics {
    fn new(door: &str, role: &'static str) -> Self {
        for (what, help) in [
            ("connections", "open connections of this door"),
            ("connections_total", "connections of this door since the process started"),
            ("auth_failures_total", "failed authentications at this door"),
            ("refused_connections_total", "connections that this door refused because there were too many"),
        ] {
            metrics::describe_gauge!(format!("kith_{door}_{what}"), help);
        }
        let counter = |what| counter!(format!("kith_{door}_{what}_total"), "role" => role);
        Self {
            auth_failures: counter("auth_failures"),
            connections: counter("connections"),
            connected: gauge!(format!("kith_{door}_connections"), "role" => role),
            refused: counter("refused_connections"),
        }
    }
}

/// Serves `door` on `bound` until `stop` is cancelled, to peers that `security` admits. Returns the tasks of its connections,
/// which end soon after `stop`.
pub fn spawn(
    bound: BoundListener,
    door: Arc<dyn Door>,
    backend: Arc<dyn Backend>,
    security: &Security,
    stop: CancellationToken,
) -> TaskTracker {
    let tasks = TaskTracker::new();
    let listener = Arc::new(Listener::new(door, backend, security.gate.clone(), stop.clone()));
    let connections = tasks.clone();
    tasks.spawn(async move {
        let welcome = |(stream, peer), connected| {
            connections.spawn(Arc::clone(&listener).welcome(stream, peer, connected));
        };
        let refuse = |(stream, _)| {
            listener.metrics.refused.increment(1);
            if listener.gate.is_none() {
                bound.connections.refuse(farewell::at_once(stream, listener.names.no_room));
            }
        };
        listen::each(bound.listener, &bound.connections, &stop, welcome, refuse).await;
        connections.close();
    });
    tasks
}

/// Counts one connection of a door until it is dropped.
pub(crate) struct CountedConnection<'l>(&'l Listener);

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::Relaxed);
        self.0.metrics.connected.decrement(1);
    }
}

impl Listener {
    /// A listener that accepts no connections yet.
    pub fn new(
        door: Arc<dyn Door>,
        backend: Arc<dyn Backend>,
        gate: Option<Arc<Gate>>,
        stop: CancellationToken,
    ) -> Self {
        let names = door.names();
        let metrics = Metrics::new(names.name, backend.role());
        Self { door, names, backend, gate, stop, connected: AtomicUsize::new(0), metrics }
    }

    /// Counts one more connection of the door. `None` if there are too many.
    pub fn enter(&self) -> Option<CountedConnection<'_>> {
        let room = |connected| (connected < CONNECTIONS_MAX).then_some(connected + 1);
        self.connected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        self.metrics.connected.increment(1);
        Some(CountedConnection(self))
    }

    async fn welcome(
        self: Arc<Self>,
        mut stream: TcpStream,
        peer: SocketAddr,
        connected: Arc<OpenConnection>,
    ) {
        self.metrics.connections.increment(1);
        let Some(_visit) = self.enter() else {
            self.metrics.refused.increment(1);
            if self.gate.is_none() {
                // The connection is closed whether the peer reads this or not. No TLS handshake is made for it.
                let _ = stream.write_all(self.names.no_room).await;
            }
            return;
        };
        connected.speaks(self.names.protocol);
        if let Err(error) = self.begin(stream, peer, connected).await {
            tracing::debug!(%error, %peer, "the connection of {} ended", self.names.client);
        }
    }

    /// Serves a connection, over TLS if there is a gate.
    async fn begin(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        connected: Arc<OpenConnection>,
    ) -> io::Result<()> {
        listen::prepare(&stream)?;
        let own = stream.local_addr().ok().map(|addr| addr.ip());
        connected.is_at(Site { own, is_verified: self.gate.is_some() });
        let Some(gate) = &self.gate else {
            connected.is_known_now();
            return self.serve(Box::new(stream), peer, connected, CallerRights::anybody()).await;
        };
        match connected.unless_strange(listen::open(gate, stream, Some(peer), &self.stop)).await? {
            ConnectionOpening::Tls(stream, caller) => {
                if gate.check(&caller, &Need::Known).is_ok() {
                    connected.is_known_now();
                }
                let rights = CallerRights::new(Arc::clone(gate), caller, self.names.name);
                self.serve(stream, peer, connected, rights).await
            }
            ConnectionOpening::Clear(stream, _) => {
                listen::count_failure();
                let client = self.names.client;
                tracing::warn!(%peer, "{client} does not use TLS, which this port requires: closing its connection");
                connected.unless_strange(parting::refuse(stream, self.names.tls_required)).await
            }
            ConnectionOpening::Closed => Ok(()),
        }
    }

    /// Serves a connection whose handshake, if there is one, is complete.
    pub async fn serve(
        &self,
        mut stream: Stream,
        peer: SocketAddr,
        connected: Arc<OpenConnection>,
        rights: CallerRights,
    ) -> io::Result<()> {
        let bounds_itself = self.door.bounds_itself();
        let end = self.stop.child_token();
        if !bounds_itself {
            stream = Box::new(BoundedStream::new(stream, Arc::clone(&connected), end.clone()));
        }
        let caller = DoorCaller {
            backend: Arc::clone(&self.backend),
            names: self.names,
            rights,
            connected: Arc::clone(&connected),
            peer,
            end,
            refusals: Arc::default(),
            auth_failures: self.metrics.auth_failures.clone(),
        };
        let served = async {
            Arc::clone(&self.door).serve(&mut stream, caller).await?;
            if bounds_itself {
                return Ok(());
            }
            let most =
                if connected.is_known() { parting::LINGER_BYTES } else { parting::STRANGER_LINGER_BYTES };
            parting::part(&mut stream, most).await
        };
        connected.unless_strange(served).await
    }
}
