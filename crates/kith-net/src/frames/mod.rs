//! The framed protocol, client side: one connection per address, opened when it is first needed. How it behaves:
//! `docs/design/0004-framed-path.md`.

mod call;
mod cipher;
mod connection;
mod greeting;
mod local;
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

use crate::security::Dialer;
use call::Call;
use connection::Connection;
use greeting::{ConnectError, Greeted, greet};
use kith_types::ErrorCode;
use kith_wire::{Message, Rope, frame::Op};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};
use tonic::Status;

/// Time to open a connection, its preface answered, before the peer counts as unreachable.
pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Framed connections, by address.
#[derive(Debug)]
pub struct Frames {
    dialer: Dialer,
    /// Whether peers on this machine are asked past TCP, where both have it.
    locally: bool,
    places: Mutex<HashMap<String, Arc<PeerSlot>>>,
}

/// One address.
#[derive(Debug, Default)]
struct PeerSlot {
    /// Replaced when it is lost, and by nobody else.
    standing: Mutex<ConnectionState>,
    /// Held by the one who connects; what became of the last attempt.
    attempt: tokio::sync::Mutex<Option<(Instant, Lost)>>,
}

#[derive(Clone, Debug, Default)]
enum ConnectionState {
    #[default]
    Unconnected,
    Connected(Arc<Connection>),
}

/// Why a connection is over, or could not be opened.
#[derive(Clone, Debug)]
pub struct Lost {
    reason: Arc<str>,
    /// Whether the peer closed it because nothing was asked: what crossed that on its way was not looked at.
    is_idle: bool,
}

impl Lost {
    fn new(reason: impl Into<Arc<str>>) -> Self {
        Self { reason: reason.into(), is_idle: false }
    }

    /// What the peer said before it closed the connection.
    fn told(status: &Status) -> Self {
        let reason = format!("the peer gave up: {}", status.message()).into();
        Self { reason, is_idle: kith_wire::code_of(status) == ErrorCode::Idle }
    }

    fn to_status(&self) -> Status {
        // As tonic tells it, without details: nodes did not say this, this side did.
        Status::unavailable(&*self.reason)
    }
}

impl Frames {
    /// No connection yet.
    pub fn new(dialer: Dialer, locally: bool) -> Self {
        Self { dialer, locally, places: Mutex::default() }
    }

    /// Asks the peer at `addr`; the pieces of its reply. Dropping the future cancels the request there.
    ///
    /// # Errors
    /// What the peer said, or why it said nothing.
    pub async fn call(
        &self,
        addr: &str,
        op: Op,
        deadline: Option<Duration>,
        body: &impl Message,
    ) -> Result<Vec<Rope>, Status> {
        let connection = self.connection(addr, op).await?;
        let answered = async { Call::send(&connection, op, micros_of(deadline), body)?.await }.await;
        match answered {
            // The request crossed the peer's goodbye: nobody has seen it.
            Err(_) if connection.lost().is_some_and(|lost| lost.is_idle) => {
                let connection = self.connection(addr, op).await?;
                Call::send(&connection, op, micros_of(deadline), body)?.await
            }
            answered => answered,
        }
    }

    /// The same, for replies in one piece.
    ///
    /// # Errors
    /// As [`Frames::call`]; a reply that cannot be read.
    pub async fn ask<R: Message + Default>(
        &self,
        addr: &str,
        op: Op,
        deadline: Option<Duration>,
        body: &impl Message,
    ) -> Result<R, Status> {
        let mut pieces = self.call(addr, op, deadline, body).await?;
        match (pieces.pop(), pieces.is_empty()) {
            (Some(piece), true) => decoded(piece),
            _ => Err(Status::internal("a reply in pieces where one was expected")),
        }
    }

    /// Asks the peer at `addr` for a reply that may come in parts, as they are taken. Dropping them cancels the request there.
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

    /// The addresses whose connections were lost since this was asked last, and that nobody has opened again.
    pub fn take_cut(&self) -> Vec<String> {
        let places = self.places();
        let cut = places.iter().filter(|(_, place)| place.is_cut());
        cut.map(|(addr, _)| addr.clone()).collect()
    }

    /// How many addresses were asked, and not let go of.
    pub fn addresses(&self) -> usize {
        self.places().len()
    }

    /// Lets go of all other addresses: a connection there is closed when nothing is under way over it any more.
    pub fn keep_only(&self, known: &HashSet<&str>) {
        self.places().retain(|addr, _| known.contains(addr.as_str()));
    }

    /// Opens the connection to the peer at `addr`, unless there is one.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn open(&self, addr: &str) -> Result<(), Status> {
        self.connection(addr, Op::Alive).await.map(drop)
    }

    fn places(&self) -> MutexGuard<'_, HashMap<String, Arc<PeerSlot>>> {
        self.places.lock()
    }

    async fn connection(&self, addr: &str, op: Op) -> Result<Arc<Connection>, Status> {
        let place = self.place(addr);
        match place.standing() {
            ConnectionState::Connected(connection) => Ok(connection),
            ConnectionState::Unconnected => place.connect(addr, op, self).await,
        }
    }

    fn place(&self, addr: &str) -> Arc<PeerSlot> {
        let mut places = self.places();
        if let Some(place) = places.get(addr) {
            return Arc::clone(place);
        }
        let place = Arc::<PeerSlot>::default();
        places.insert(addr.to_owned(), Arc::clone(&place));
        place
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

    /// Whether its connection was lost since this was asked last.
    fn is_cut(&self) -> bool {
        let was_connected = matches!(*self.lock(), ConnectionState::Connected(_));
        was_connected && matches!(self.standing(), ConnectionState::Unconnected)
    }

    /// One connects, the others wait for what becomes of it. `op` is what it is needed for.
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
            Err(ConnectError::Lost(Lost::new(reason)))
        });
        match connected {
            Ok(Greeted { stream, cipher, shared }) => {
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

/// A deadline as frames have it.
fn micros_of(deadline: Option<Duration>) -> u32 {
    deadline.map_or(0, |left| u32::try_from(left.as_micros()).unwrap_or(u32::MAX).max(1))
}

/// A body as the message that it should be.
///
/// # Errors
/// If it is none.
pub fn decoded<M: Message + Default>(body: Rope) -> Result<M, Status> {
    body.decode().map_err(|error| Status::internal(format!("a reply that cannot be read: {error}")))
}
