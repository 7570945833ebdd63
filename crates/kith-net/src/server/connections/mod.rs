//! What connections may take of a process, whatever they speak: how many there are, how many of them by peers that nobody knows yet,
//! bytes of requests and replies in memory, and how long one may be idle (docs/design/0012-protection.md). The decisions are pure
//! (`census`, `room`, `watch`); this is their shell.

mod census;
mod connected;
pub mod farewell;
mod limits;
mod opening;
pub(crate) mod requests;
mod room;
mod stream;
mod traffic;
mod watch;

pub(crate) use connected::UNCHARGED_REPLY_BYTES;
pub use connected::{Connected, UnderWay};
pub(crate) use limits::FILES_MIN;
pub use limits::{ConnectionSettings, IDLE_DEFAULT, OPEN_MAX_DEFAULT, REPLY_BYTES_DEFAULT};
pub use room::UNCHARGED_BYTES;
pub(crate) use room::room;
pub(crate) use stream::Watched;
pub use traffic::Traffic;
pub use watch::{Reason, Seen, Watch};

use crate::{Budget, server::ListenError};
use census::{Census, Verdict};
use kith_types::ErrorCode;
use limits::Limits;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use watch::Taking;

/// Peers that are told at the same time why they are not taken; others are hung up on.
const FAREWELLS_MAX: usize = 32;
/// Bytes of requests that one connection may have in memory: the largest request, a copy of it, and some more beside them.
const CONNECTION_BYTES_MAX: usize = 176 << 20;
/// And all connections of a process: three quarters of it, which are for large requests too, hold what one connection may have.
const PROCESS_BYTES_MAX: usize = 240 << 20;
/// How often to look whether peers take their replies.
const TAKING_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes that a stranger may send: enough for a request that shows a token.
pub const STRANGER_BYTES_MAX: usize = 24 << 10;
/// And in one frame, which holds nothing but the token.
pub(crate) const STRANGER_FRAME_BYTES_MAX: usize = 8 << 10;
/// Frames of a stranger, and commands of one that is a Redis client.
pub const STRANGER_MESSAGES_MAX: u64 = 16;
/// A peer shows who it is within this time.
pub(crate) const STRANGER_PATIENCE: Duration = Duration::from_secs(10);

/// The connections of one process. Cheap to clone; clones are the same.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    started: Instant,
    limits: Limits,
    next: AtomicU64,
    requests: Arc<Budget>,
    replies: Arc<Budget>,
    farewells: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    census: Census,
    open: HashMap<u64, Open>,
}

/// What is kept of each connection.
#[derive(Debug)]
struct Open {
    /// Has it end.
    leave: CancellationToken,
    /// The replies that it holds.
    replies: Arc<Budget>,
    /// Bytes that its peer has taken so far.
    taken: Arc<AtomicU64>,
    taking: Taking,
}

/// Why a connection is not taken.
#[derive(Debug)]
pub struct TooMany;

impl Connections {
    /// None yet.
    ///
    /// Called in a runtime: while replies take much memory, a task closes the connections whose peers do not take theirs.
    ///
    /// # Errors
    /// [`ListenError::TooFewFiles`].
    pub fn new(settings: ConnectionSettings) -> Result<Self, ListenError> {
        let files = limits::raise_file_limit();
        if files < FILES_MIN {
            return Err(ListenError::TooFewFiles { files });
        }
        let connections = Self::within(settings, files);
        tokio::spawn(close_stalled(Arc::downgrade(&connections.0)));
        Ok(connections)
    }

    /// None yet, of a process that may have so many files open.
    fn within(settings: ConnectionSettings, files: usize) -> Self {
        let limits = Limits::new(settings, files);
        Self::limited(limits, Budget::new(limits.reply_bytes))
    }

    /// A separate count for the HTTP port, which authenticates nobody: its peers must not take the places of authenticated ones.
    pub fn of_http(&self) -> Self {
        Self::limited(self.0.limits.of_http(), Arc::clone(&self.0.replies))
    }

    /// Memory for replies: of all connections, and of replies that are gathered for them.
    pub fn replies(&self) -> &Arc<Budget> {
        &self.0.replies
    }

    fn limited(limits: Limits, replies: Arc<Budget>) -> Self {
        let census = Census::new(limits.open_max, limits.strangers_max);
        Self(Arc::new(Shared {
            started: Instant::now(),
            limits,
            next: AtomicU64::new(0),
            requests: Budget::new(PROCESS_BYTES_MAX),
            replies,
            farewells: Arc::new(Semaphore::new(FAREWELLS_MAX)),
            state: Mutex::new(State { census, open: HashMap::new() }),
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
                if let Some(open) = state.open.get(&stranger) {
                    open.leave.cancel();
                }
            }
            other => return Err(other),
        }
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let open = Open {
            leave: CancellationToken::new(),
            replies: self.0.replies.child(self.0.limits.reply_bytes_each()),
            taken: Arc::default(),
            taking: Taking::default(),
        };
        let connected = Connected::new(self, id, &open);
        state.census.enters(id, now, address);
        state.open.insert(id, open);
        Ok(Arc::new(connected))
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
        self.0.lock()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// While replies take more than half of their memory, ends connections whose peers hardly take theirs.
async fn close_stalled(connections: Weak<Shared>) {
    let mut looks = tokio::time::interval(TAKING_INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(shared) = connections.upgrade() else { return };
        if !shared.replies.is_pressed() {
            continue;
        }
        for open in shared.lock().open.values_mut() {
            if open.taking.is_too_slow(open.replies.taken(), open.taken.load(Ordering::Relaxed)) {
                open.leave.cancel();
            }
        }
    }
}

/// Counts a connection that this process closed, or did not take.
pub fn closed(reason: &'static str) {
    metrics::counter!("kith_server_connections_closed_total", "reason" => reason).increment(1);
}

/// What a request is refused with for which there is no memory.
pub(crate) fn no_memory() -> Status {
    metrics::counter!("kith_server_requests_refused_total", "reason" => "memory").increment(1);
    let message = "requests that are under way take all the memory that this process has for them";
    let help = "try again in a moment, or ask for less at once";
    kith_wire::status(ErrorCode::Overloaded, message, help)
}

/// Connections for tests.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use super::*;

    /// A connection whose peer is known, the only one of its process.
    pub fn known() -> Arc<Connected> {
        known_to(&Connections::within(ConnectionSettings::default(), 1 << 20))
    }

    /// The same, where the process has so much memory for replies.
    pub fn known_within(reply_bytes: usize) -> Arc<Connected> {
        let settings = ConnectionSettings { reply_bytes: Some(reply_bytes), ..ConnectionSettings::default() };
        known_to(&Connections::within(settings, 1 << 20))
    }

    pub(super) fn known_to(connections: &Connections) -> Arc<Connected> {
        let connected = connections.try_admit(None).expect("few are there");
        connected.is_known_now();
        connected
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::known_to, *};
    use std::io;

    #[tokio::test]
    async fn while_memory_for_replies_is_short_those_who_do_not_take_theirs_are_closed() {
        let settings = ConnectionSettings { reply_bytes: Some(1 << 20), ..ConnectionSettings::default() };
        let connections = Connections::new(settings).expect("files enough");
        let [stuck, slow, quick] = [(); 3].map(|()| known_to(&connections));
        let held = |connected: &Connected| connected.charge_reply(100 << 10).expect("there is room");
        let _held = [held(&stuck), held(&slow), held(&quick)];
        let takes = |connected: Arc<Connected>, bytes: u64| async move {
            let served = async {
                for tenth in 0u64.. {
                    connected.has_taken(tenth * bytes / 10);
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Ok(())
            };
            let ended = tokio::time::timeout(Duration::from_secs(6), connected.unless_strange(served)).await;
            ended.map(|ended| ended.map_err(|error| error.kind()))
        };
        // 300 KiB of a MiB are no reason yet.
        let waits = tokio::join!(takes(Arc::clone(&stuck), 0), takes(Arc::clone(&slow), 1 << 10));
        assert!(waits.0.is_err() && waits.1.is_err(), "{waits:?}");
        let _more = [held(&quick), held(&quick), held(&quick)];
        let takes = tokio::join!(takes(stuck, 0), takes(slow, 1 << 10), takes(quick, 100 << 10));
        assert_eq!(takes.0, Ok(Err(io::ErrorKind::TimedOut)));
        assert_eq!(takes.1, Ok(Err(io::ErrorKind::TimedOut)));
        assert!(takes.2.is_err(), "it reads: {takes:?}");
    }
}
