//! Limits what connections may use of a process, in every protocol: their number, how many of them belong to
//! unauthenticated peers (*strangers*), the memory of requests and replies, and the idle time
//! (docs/design/0012-protection.md). The decisions are pure (`census`, `room`, `watch`); this module applies them.

mod census;
mod connected;
pub mod farewell;
mod holdback;
mod http2;
mod limits;
mod lookout;
pub(crate) mod open_streams;
pub(crate) mod requests;
mod room;
mod stream;
pub(crate) mod streams;
mod traffic;
mod watch;

pub(crate) use connected::UNCHARGED_REPLY_BYTES;
pub use connected::{OpenConnection, UnderWay};
pub use limits::{
    ConnectionSettings, IDLE_DEFAULT, OPEN_MAX_DEFAULT, REPLY_BYTES_DEFAULT, STRANGER_BYTES_MAX,
    STRANGER_MESSAGES_MAX,
};
pub(crate) use limits::{FILES_MIN, STRANGER_FRAME_BYTES_MAX, STRANGER_TIMEOUT};
pub use lookout::{Arrival, Lookout};
pub use requests::IfRefused;
pub use room::UNCHARGED_BYTES;
pub(crate) use room::room;
pub(crate) use stream::WatchedStream;
pub use traffic::Traffic;
pub use watch::{ActivitySample, Reason};

use crate::{
    Budget,
    server::{ListenError, hosts::AcceptedHost},
};
use census::{Census, Verdict};
use kith_types::ErrorCode;
use limits::{CONNECTION_BYTES_MAX, LASTING_BYTES_MAX, Limits, PROCESS_BYTES_MAX, STREAMS_BYTES_MAX};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{sync::Semaphore, time::MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tonic::Status;
use watch::{TakingRate, Watch};

/// How many refused peers receive the reason at the same time. Further ones are disconnected without a message.
const FAREWELLS_MAX: usize = 32;
/// How often to check whether peers read their replies.
const TAKING_INTERVAL: Duration = Duration::from_secs(1);

/// The connections of one process. Cheap to clone; clones share their state.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    started: Instant,
    limits: Limits,
    next: AtomicU64,
    requests: Arc<Budget>,
    /// The part of `requests` for HTTP/2 streams.
    streams: Arc<Budget>,
    /// The part of `streams` for those that last.
    lasting: Arc<Budget>,
    replies: Arc<Budget>,
    accepted_hosts: Arc<[AcceptedHost]>,
    farewells: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    census: Census,
    open: HashMap<u64, Open>,
}

/// The record of each open connection.
#[derive(Debug)]
struct Open {
    /// Cancelled to make the connection end.
    leave: CancellationToken,
    /// The budget of the replies that it holds.
    replies: Arc<Budget>,
    /// The bytes that its peer has taken so far.
    taken: Arc<AtomicU64>,
    taking: TakingRate,
    /// Whether it ends because another connection gets its place.
    is_crowded_out: Arc<AtomicBool>,
}

/// A connection was refused because there is no room for it.
#[derive(Debug)]
pub struct TooMany;

impl Connections {
    /// Returns a count without connections.
    ///
    /// It must be called in a runtime, because it spawns a task: while memory for replies is short, the task closes
    /// connections whose peers do not read their replies.
    ///
    /// # Errors
    /// [`ListenError::TooFewFiles`] if the process may have too few files open.
    pub fn new(settings: ConnectionSettings) -> Result<Self, ListenError> {
        let files = limits::raise_file_limit();
        if files < FILES_MIN {
            return Err(ListenError::TooFewFiles { files });
        }
        let connections = Self::within(settings, files);
        tokio::spawn(close_stalled(Arc::downgrade(&connections.0)));
        Ok(connections)
    }

    /// Returns a count without connections, for a process that may have `files` files open.
    fn within(settings: ConnectionSettings, files: usize) -> Self {
        let limits = Limits::new(&settings, files);
        let hosts = settings.accepted_hosts.into();
        Self::limited(limits, Budget::new(limits.reply_bytes), hosts)
    }

    /// Returns a separate count for the HTTP port, which authenticates nobody. So its peers cannot take the places of
    /// authenticated peers.
    pub fn of_http(&self) -> Self {
        let (limits, replies) = (self.0.limits.of_http(), Arc::clone(&self.0.replies));
        let census = Census::of_strangers(limits.open_max);
        Self::counted(census, limits, replies, Arc::clone(&self.0.accepted_hosts))
    }

    /// The budget for replies: those that wait for their readers, and those that are being received for them.
    pub fn replies(&self) -> &Arc<Budget> {
        &self.0.replies
    }

    fn limited(limits: Limits, replies: Arc<Budget>, accepted_hosts: Arc<[AcceptedHost]>) -> Self {
        let census = Census::new(limits.open_max, limits.strangers_max);
        Self::counted(census, limits, replies, accepted_hosts)
    }

    fn counted(
        census: Census,
        limits: Limits,
        replies: Arc<Budget>,
        accepted_hosts: Arc<[AcceptedHost]>,
    ) -> Self {
        let requests = Budget::new(PROCESS_BYTES_MAX);
        let streams = requests.child(STREAMS_BYTES_MAX);
        Self(Arc::new(Shared {
            started: Instant::now(),
            limits,
            next: AtomicU64::new(0),
            lasting: streams.child(LASTING_BYTES_MAX),
            streams,
            requests,
            replies,
            accepted_hosts,
            farewells: Arc::new(Semaphore::new(FAREWELLS_MAX)),
            state: Mutex::new(State { census, open: HashMap::new() }),
        }))
    }

    /// Accepts one more connection, whose peer is not authenticated yet. It may wait for a moment if many peers connect at
    /// once.
    ///
    /// # Errors
    /// [`TooMany`] if there is no room; the refusal is counted.
    pub async fn admit(&self, address: Option<IpAddr>) -> Result<Arc<OpenConnection>, TooMany> {
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

    fn try_admit(&self, address: Option<IpAddr>) -> Result<Arc<OpenConnection>, Verdict> {
        let now = self.0.started.elapsed();
        let mut state = self.lock();
        match state.census.verdict(now) {
            Verdict::Welcome => {}
            Verdict::Instead(stranger) => {
                // Its place is free from now on; the connection is closed as soon as its task runs.
                state.census.makes_way(stranger);
                if let Some(open) = state.open.get(&stranger) {
                    open.is_crowded_out.store(true, Ordering::Relaxed);
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
            taking: TakingRate::default(),
            is_crowded_out: Arc::default(),
        };
        let connected = OpenConnection::new(self, id, &open);
        state.census.enters(id, now, address);
        state.open.insert(id, open);
        Ok(Arc::new(connected))
    }

    /// The most open connections.
    pub fn open_max(&self) -> usize {
        self.0.limits.open_max
    }

    /// Runs `farewell`, which tells a refused peer the reason, unless too many others are running.
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

/// While replies use more than half of their memory, ends connections whose peers hardly read.
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

/// Counts a connection that this process closed or refused.
pub fn closed(reason: &'static str) {
    metrics::counter!("kith_server_connections_closed_total", "reason" => reason).increment(1);
}

/// Counts and returns the error of a request for which there is no memory.
pub(crate) fn no_memory() -> Status {
    metrics::counter!("kith_server_requests_refused_total", "reason" => "memory").increment(1);
    let message = "the requests under way use all memory that this process has for requests";
    let help = "try again in a moment, or ask for less at once";
    kith_wire::status(ErrorCode::Overloaded, message, help)
}

/// The refusal of a request that would last, beside too many others.
fn too_many_lasting() -> Status {
    metrics::counter!("kith_server_requests_refused_total", "reason" => "memory").increment(1);
    let message = "too many callers follow the topology or the health of this process";
    kith_wire::status(ErrorCode::Overloaded, message, "follow another router or node")
}

/// Connections for tests.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use super::{watch::Pace, *};

    /// Returns an authenticated connection, the only one of its process.
    pub fn known() -> Arc<OpenConnection> {
        known_to(&Connections::within(ConnectionSettings::default(), 1 << 20))
    }

    /// Like `known`, for a process with `reply_bytes` bytes of memory for replies.
    pub fn known_within(reply_bytes: usize) -> Arc<OpenConnection> {
        let settings = ConnectionSettings { reply_bytes: Some(reply_bytes), ..ConnectionSettings::default() };
        known_to(&Connections::within(settings, 1 << 20))
    }

    /// Like `known`, for a process that gives a request little time to arrive.
    pub fn known_hasty() -> Arc<OpenConnection> {
        let limits = Limits { pace: Pace::hasty(), ..Limits::new(&ConnectionSettings::default(), 1 << 20) };
        known_to(&Connections::limited(limits, Budget::new(limits.reply_bytes), Arc::new([])))
    }

    pub(super) fn known_to(connections: &Connections) -> Arc<OpenConnection> {
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
        let held = |connected: &OpenConnection| connected.charge_reply(100 << 10).expect("there is room");
        let _held = [held(&stuck), held(&slow), held(&quick)];
        let takes = |connected: Arc<OpenConnection>, bytes: u64| async move {
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
        // 300 KiB of a MiB are no reason to close a connection.
        let waits = tokio::join!(takes(Arc::clone(&stuck), 0), takes(Arc::clone(&slow), 1 << 10));
        assert!(waits.0.is_err() && waits.1.is_err(), "{waits:?}");
        let _more = [held(&quick), held(&quick), held(&quick)];
        let takes = tokio::join!(takes(stuck, 0), takes(slow, 1 << 10), takes(quick, 100 << 10));
        assert_eq!(takes.0, Ok(Err(io::ErrorKind::TimedOut)));
        assert_eq!(takes.1, Ok(Err(io::ErrorKind::TimedOut)));
        assert!(takes.2.is_err(), "it reads: {takes:?}");
    }
}
