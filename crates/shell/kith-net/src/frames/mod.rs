//! The client side of the framed protocol. There is one connection per address, which is opened when it is first needed.
//! `docs/design/0004-framed-path.md` describes its behaviour.

mod call;
mod cipher;
mod connection;
mod greeting;
mod local;
mod once;
mod parts;
mod reader;
mod reply;
mod shared;
mod silence;
mod socket;
#[cfg(test)]
mod tests;

pub use local::{listen as listen_locally, prepare as prepare_local};
pub use parts::Parts;
pub use shared::{ReplyMemory, SLOT_BYTES as REPLY_SLOT_BYTES};

use crate::endpoint::CONNECT_TIMEOUT;
use crate::security::Dialer;
use call::Call;
use connection::Connection;
use greeting::{ConnectError, FramedConnection, greet};
use kith_types::ErrorCode;
use kith_wire::{Message, Rope, frame::Op};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tonic::Status;

/// The framed connections of a client, by address.
#[derive(Debug)]
pub struct Frames {
    dialer: Dialer,
    /// Whether peers on this machine are reached over their Unix sockets, where they have one.
    locally: bool,
    slots: Mutex<HashMap<String, Arc<PeerSlot>>>,
}

/// The connection state of one address.
#[derive(Debug, Default)]
struct PeerSlot {
    /// The current connection. `connect` sets it; the first reader that finds the connection lost resets it.
    standing: Mutex<ConnectionState>,
    /// Locked while a task connects. Holds the time and the failure of the last failed attempt.
    attempt: tokio::sync::Mutex<Option<(Instant, ConnectionLoss)>>,
}

#[derive(Clone, Debug, Default)]
enum ConnectionState {
    #[default]
    Unconnected,
    Connected(Arc<Connection>),
}

/// Why a connection was lost, or could not be opened.
#[derive(Clone, Debug)]
pub struct ConnectionLoss {
    reason: Arc<str>,
    /// Whether the peer closed the connection because it was idle. A request that was on its way then was not looked at.
    is_idle: bool,
}

impl ConnectionLoss {
    fn new(reason: impl Into<Arc<str>>) -> Self {
        Self { reason: reason.into(), is_idle: false }
    }

    /// The loss of a connection that the peer closed with this status.
    fn closed_by_peer(status: &Status) -> Self {
        let reason = format!("the peer closed the connection: {}", status.message()).into();
        Self { reason, is_idle: kith_wire::code_of(status) == ErrorCode::Idle }
    }

    fn to_status(&self) -> Status {
        // Like a status of tonic, it has no details: these would mean that the peer sent it.
        Status::unavailable(&*self.reason)
    }
}

impl Frames {
    /// Returns a client that has no connections yet.
    pub fn new(dialer: Dialer, locally: bool) -> Self {
        Self { dialer, locally, slots: Mutex::default() }
    }

    /// Sends a request to the peer at `addr` and returns the pieces of its reply. Dropping the future cancels the request.
    ///
    /// # Errors
    /// The peer's error status, or `Unavailable` if the connection cannot be opened or is lost.
    pub async fn call(
        &self,
        addr: &str,
        op: Op,
        deadline: Option<Duration>,
        body: &impl Message,
    ) -> Result<Vec<Rope>, Status> {
        let connection = self.connection(addr, op).await?;
        self.call_over(&connection, addr, op, deadline, body).await
    }

    /// Like [`Frames::call`], over an open connection to `addr`.
    async fn call_over(
        &self,
        connection: &Arc<Connection>,
        addr: &str,
        op: Op,
        deadline: Option<Duration>,
        body: &impl Message,
    ) -> Result<Vec<Rope>, Status> {
        let answered = async { Call::send(connection, op, micros_of(deadline), body)?.await }.await;
        match answered {
            // The peer closed the idle connection while the request was on its way, so the peer did not see it. It is sent
            // once more.
            Err(_) if connection.lost().is_some_and(|lost| lost.is_idle) => {
                let connection = self.connection(addr, op).await?;
                Call::send(&connection, op, micros_of(deadline), body)?.await
            }
            answered => answered,
        }
    }

    /// Like [`Frames::call`], for a reply of one piece, which is decoded.
    ///
    /// # Errors
    /// As [`Frames::call`]; `Internal` if the reply has several pieces or cannot be decoded.
    pub async fn ask<R: Message + Default>(
        &self,
        addr: &str,
        op: Op,
        deadline: Option<Duration>,
        body: &impl Message,
    ) -> Result<R, Status> {
        only(self.call(addr, op, deadline, body).await?)
    }

    /// Sends a request to the peer at `addr` whose reply may come in parts; the peer sends them as the receiver takes them.
    /// Dropping the parts cancels the request.
    ///
    /// # Errors
    /// As [`Frames::call`].
    pub async fn call_in_parts(
        &self,
        addr: &str,
        op: Op,
        deadline: Option<Duration>,
        body: &impl Message,
    ) -> Result<Parts, Status> {
        let connection = self.connection(addr, op).await?;
        Parts::send(&connection, op, micros_of(deadline), body)
    }

    /// Returns the addresses whose connections were lost since the last call and have not been opened again.
    pub fn take_cut(&self) -> Vec<String> {
        let slots = self.slots();
        let cut = slots.iter().filter(|(_, slot)| slot.is_cut());
        cut.map(|(addr, _)| addr.clone()).collect()
    }

    /// The number of addresses for which a slot is kept.
    pub fn addresses(&self) -> usize {
        self.slots().len()
    }

    /// Drops the slots of all addresses that are not in `known`. A connection is closed when no request uses it any more.
    pub fn keep_only(&self, known: &HashSet<&str>) {
        self.slots().retain(|addr, _| known.contains(addr.as_str()));
    }

    /// Drops the slot of an address. Its connection is closed when no request uses it any more.
    pub fn release(&self, addr: &str) {
        self.slots().remove(addr);
    }

    /// Opens the connection to the peer at `addr`, unless it is open already.
    ///
    /// # Errors
    /// The reason why it cannot be opened.
    pub async fn open(&self, addr: &str) -> Result<(), Status> {
        self.connection(addr, Op::Alive).await.map(drop)
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Arc<PeerSlot>>> {
        self.slots.lock()
    }

    async fn connection(&self, addr: &str, op: Op) -> Result<Arc<Connection>, Status> {
        let slot = self.slot(addr);
        match slot.standing() {
            ConnectionState::Connected(connection) => Ok(connection),
            ConnectionState::Unconnected => slot.connect(addr, op, self).await,
        }
    }

    fn slot(&self, addr: &str) -> Arc<PeerSlot> {
        let mut slots = self.slots();
        if let Some(slot) = slots.get(addr) {
            return Arc::clone(slot);
        }
        let slot = Arc::<PeerSlot>::default();
        slots.insert(addr.to_owned(), Arc::clone(&slot));
        slot
    }
}

impl PeerSlot {
    fn standing(&self) -> ConnectionState {
        let mut standing = self.lock();
        let is_over = match &*standing {
            ConnectionState::Unconnected => false,
            ConnectionState::Connected(connection) => connection.lost().is_some(),
        };
        if is_over {
            *standing = ConnectionState::Unconnected;
        }
        standing.clone()
    }

    /// Whether the connection was lost since the last time that this or `standing` was called.
    fn is_cut(&self) -> bool {
        let was_connected = matches!(*self.lock(), ConnectionState::Connected(_));
        was_connected && matches!(self.standing(), ConnectionState::Unconnected)
    }

    /// Opens the connection. If several tasks need it, one of them connects and the others wait for its result. `op` is the
    /// operation that needs the connection; it labels the metric.
    async fn connect(&self, addr: &str, op: Op, frames: &Frames) -> Result<Arc<Connection>, Status> {
        let came = Instant::now();
        let mut attempt = self.attempt.lock().await;
        match self.standing() {
            ConnectionState::Connected(connection) => return Ok(connection),
            ConnectionState::Unconnected => {}
        }
        if let Some((ended, lost)) = &*attempt
            && came <= *ended
        {
            return Err(lost.to_status());
        }
        let connected =
            tokio::time::timeout(CONNECT_TIMEOUT, greet(addr, &frames.dialer, frames.locally)).await;
        let connected = connected.unwrap_or_else(|_| {
            let reason = format!("{addr} did not answer within {} ms", CONNECT_TIMEOUT.as_millis());
            Err(ConnectError::Lost(ConnectionLoss::new(reason)))
        });
        match connected {
            Ok(FramedConnection { stream, cipher, shared }) => {
                let connection = reader::start(stream, cipher, shared, frames.dialer.replies().cloned());
                metrics::counter!("kith_client_connections_opened_total", "op" => op.name()).increment(1);
                *self.lock() = ConnectionState::Connected(Arc::clone(&connection));
                Ok(connection)
            }
            Err(ConnectError::Refused(status)) => Err(*status),
            Err(ConnectError::Lost(lost)) => {
                *attempt = Some((Instant::now(), lost.clone()));
                Err(lost.to_status())
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        self.standing.lock()
    }
}

/// A deadline in the unit of frames, microseconds; zero means none.
fn micros_of(deadline: Option<Duration>) -> u32 {
    deadline.map_or(0, |left| u32::try_from(left.as_micros()).unwrap_or(u32::MAX).max(1))
}

/// Decodes a reply of one piece.
fn only<R: Message + Default>(mut pieces: Vec<Rope>) -> Result<R, Status> {
    match (pieces.pop(), pieces.is_empty()) {
        (Some(piece), true) => decoded(piece),
        _ => Err(Status::internal("the reply does not have exactly one piece")),
    }
}

/// Decodes a body as a message.
///
/// # Errors
/// `Internal` if the body is not such a message.
pub fn decoded<M: Message + Default>(body: Rope) -> Result<M, Status> {
    body.decode().map_err(|error| Status::internal(format!("the reply cannot be decoded: {error}")))
}
