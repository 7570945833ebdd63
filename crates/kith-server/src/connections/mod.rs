//! What connections may take of a process, whatever they speak: how many there are, how many of them by peers that nobody knows yet,
//! bytes of requests in memory, and how long one may be idle (docs/design/0012-protection.md). The decisions are pure
//! ([`census`], [`budget`], [`watch`]); this is their shell.

mod budget;
mod census;
pub(crate) mod farewell;
mod limits;
mod opening;
pub(crate) mod requests;
mod stream;
mod watch;

pub(crate) use budget::{Charge, UNCHARGED_BYTES, room};
pub(crate) use limits::FILES_MIN;
pub use limits::{ConnectionSettings, IDLE_DEFAULT, OPEN_MAX_DEFAULT};
pub(crate) use stream::Watched;
pub(crate) use watch::{Reason, Seen, Watch};

use crate::error::StartError;
use budget::Budget;
use census::{Census, Verdict};
use limits::Limits;
use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    sync::{Notify, Semaphore},
    time::{Instant as TimerInstant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

/// Peers that are told at the same time why they are not taken; others are hung up on.
const FAREWELLS_MAX: usize = 32;
/// Bytes of requests that one connection may have in memory: the largest request, a copy of it, and some more beside them.
const CONNECTION_BYTES_MAX: usize = 176 << 20;
/// And all connections of a process.
const PROCESS_BYTES_MAX: usize = 192 << 20;
/// Bytes that a stranger may send: enough for a request that shows a token.
pub(crate) const STRANGER_BYTES_MAX: usize = 24 << 10;
/// And in one frame, which holds nothing but the token.
pub(crate) const STRANGER_FRAME_BYTES_MAX: usize = 8 << 10;
/// Frames of a stranger, and commands of one that is a Redis client.
pub(crate) const STRANGER_MESSAGES_MAX: u64 = 16;
/// A peer shows who it is within this time.
pub(crate) const STRANGER_PATIENCE: Duration = Duration::from_secs(10);

/// The connections of one process. Cheap to clone; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    started: Instant,
    limits: Limits,
    next: AtomicU64,
    requests: Arc<Budget>,
    farewells: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    census: Census,
    /// How each stranger is told to leave.
    strangers: HashMap<u64, CancellationToken>,
}

/// Why a connection is not taken.
#[derive(Debug)]
pub(crate) struct TooMany;

impl Connections {
    /// None yet.
    ///
    /// # Errors
    /// [`StartError::TooFewFiles`].
    pub fn new(settings: ConnectionSettings) -> Result<Self, StartError> {
        let files = limits::raise_file_limit();
        if files < FILES_MIN {
            return Err(StartError::TooFewFiles { files });
        }
        Ok(Self::within(settings, files))
    }

    /// None yet, of a process that may have so many files open.
    fn within(settings: ConnectionSettings, files: usize) -> Self {
        Self::limited(Limits::new(settings, files))
    }

    /// A separate count for the HTTP port, which authenticates nobody: its peers must not take the places of authenticated ones.
    pub fn of_http(&self) -> Self {
        Self::limited(self.0.limits.of_http())
    }

    fn limited(limits: Limits) -> Self {
        let census = Census::new(limits.open_max, limits.strangers_max);
        Self(Arc::new(Shared {
            started: Instant::now(),
            limits,
            next: AtomicU64::new(0),
            requests: Budget::new(PROCESS_BYTES_MAX),
            farewells: Arc::new(Semaphore::new(FAREWELLS_MAX)),
            state: Mutex::new(State { census, strangers: HashMap::new() }),
        }))
    }

    /// Takes one more connection, of a stranger. Waits for a moment where many come at once.
    ///
    /// # Errors
    /// [`TooMany`]: it is counted.
    pub async fn admit(&self, address: Option<IpAddr>) -> Result<Arc<Connected>, TooMany> {
        loop {
            let wait = match self.try_admit(address) {
                Ok(connected) => return Ok(connected),
                Err(Verdict::Wait(wait)) => wait,
                Err(_) => {
                    closed("too_many_connections");
                    return Err(TooMany);
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    fn try_admit(&self, address: Option<IpAddr>) -> Result<Arc<Connected>, Verdict> {
        let now = self.0.started.elapsed();
        let mut state = self.lock();
        match state.census.verdict(now) {
            Verdict::Welcome => {}
            Verdict::Instead(stranger) => {
                // Its place is free from now on; it is closed as soon as its task runs.
                state.census.makes_way(stranger);
                if let Some(leave) = state.strangers.remove(&stranger) {
                    leave.cancel();
                }
            }
            other => return Err(other),
        }
        let (id, leave) = (self.0.next.fetch_add(1, Ordering::Relaxed), CancellationToken::new());
        state.census.enters(id, now, address);
        state.strangers.insert(id, leave.clone());
        drop(state);
        Ok(Arc::new(Connected {
            connections: self.clone(),
            id,
            leave,
            strange_until: TimerInstant::now() + STRANGER_PATIENCE,
            became_known: Notify::new(),
            is_known: AtomicBool::new(false),
            protocol: Mutex::new(None),
            under_way: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            budget: self.0.requests.child(CONNECTION_BYTES_MAX),
        }))
    }

    /// Connections at once.
    pub fn open_max(&self) -> usize {
        self.0.limits.open_max
    }

    /// Has `farewell` tell a peer that is not taken, if few are told already.
    pub fn refuse(&self, farewell: impl Future<Output = ()> + Send + 'static) {
        if let Ok(permit) = Arc::clone(&self.0.farewells).try_acquire_owned() {
            tokio::spawn(async move {
                farewell.await;
                drop(permit);
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a connection that this process closed, or did not take.
pub(crate) fn closed(reason: &'static str) {
    metrics::counter!("kith_server_connections_closed_total", "reason" => reason).increment(1);
}

/// A connection, as long as it is there.
#[derive(Debug)]
pub(crate) struct Connected {
    connections: Connections,
    id: u64,
    /// Cancelled when somebody else gets its place.
    leave: CancellationToken,
    /// When it has to have shown who it is.
    strange_until: TimerInstant,
    became_known: Notify,
    is_known: AtomicBool,
    /// What it speaks, once that is known.
    protocol: Mutex<Option<&'static str>>,
    /// Requests under way, and all that there were: of protocols whose requests are not counted elsewhere.
    under_way: AtomicUsize,
    requests: AtomicU64,
    budget: Arc<Budget>,
}

impl Connected {
    /// The peer has shown who it is, or nobody asks.
    pub fn is_known_now(&self) {
        if !self.is_known.swap(true, Ordering::AcqRel) {
            let mut state = self.connections.lock();
            state.census.is_known(self.id);
            state.strangers.remove(&self.id);
            drop(state);
            self.became_known.notify_waiters();
        }
    }

    /// Whether the peer has shown who it is.
    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Acquire)
    }

    /// Ready once the peer has shown who it is.
    pub async fn known(&self) {
        let known = self.became_known.notified();
        tokio::pin!(known);
        known.as_mut().enable();
        if !self.is_known() {
            known.await;
        }
    }

    /// Counts it among those who speak a protocol.
    pub fn speaks(&self, protocol: &'static str) {
        metrics::counter!("kith_server_connections_total", "protocol" => protocol).increment(1);
        metrics::gauge!("kith_server_connections", "protocol" => protocol).increment(1);
        *self.protocol.lock().unwrap_or_else(PoisonError::into_inner) = Some(protocol);
    }

    /// Ends `served` if the peer does not show in time who it is, or somebody else needs its place before it does.
    ///
    /// # Errors
    /// Those of `served`; `TimedOut`.
    pub async fn unless_strange<T>(&self, served: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::pin!(served);
        let reason = tokio::select! {
            biased;
            done = &mut served => return done,
            () = self.known() => None,
            () = self.leave.cancelled() => Some("crowded_out"),
            () = sleep_until(self.strange_until) => Some("unknown"),
        };
        match reason {
            None => served.await,
            Some(reason) => {
                closed(reason);
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// A message that begins, to be charged as it comes.
    pub fn charge(&self) -> Charge {
        Charge::new(&self.budget)
    }

    /// A watch over it from its beginning, and how often to look.
    pub fn watch(&self) -> (Watch, Duration) {
        let pace = self.connections.0.limits.pace;
        (Watch::new(pace), pace.interval)
    }

    /// A request that is under way until what is returned is dropped.
    pub fn request(self: &Arc<Self>) -> UnderWay {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// Requests so far that [`Connected::request`] was told of, and whether any is under way.
    pub fn requests(&self) -> (u64, bool) {
        (self.requests.load(Ordering::Relaxed), self.under_way.load(Ordering::Relaxed) != 0)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        if let Some(protocol) = *self.protocol.get_mut().unwrap_or_else(PoisonError::into_inner) {
            metrics::gauge!("kith_server_connections", "protocol" => protocol).decrement(1);
        }
        let mut state = self.connections.lock();
        state.census.leaves(self.id);
        state.strangers.remove(&self.id);
    }
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Connected>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a request is refused with for which there is no memory.
pub(crate) fn no_memory() -> Status {
    metrics::counter!("kith_server_requests_refused_total", "reason" => "memory").increment(1);
    let message = "requests that are under way take all the memory that this process has for them";
    let help = "try again in a moment, or ask for less at once";
    kith_wire::status(Code::ResourceExhausted, "overloaded", message, help)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A connection whose peer is known, the only one of its process.
    pub(crate) fn known() -> Arc<Connected> {
        let connections = Connections::within(ConnectionSettings::default(), 1 << 20);
        let connected = connections.try_admit(None).expect("it is alone");
        connected.is_known_now();
        connected
    }
}
