//! One connection as its process counts it: whether its peer is authenticated, its requests, and the memory that it uses.

use super::{
    CONNECTION_BYTES_MAX, Connections, Open, Reason, STRANGER_TIMEOUT, Watch, closed,
    open_streams::OpenStreams, watch::Pace,
};
use crate::{
    Budget, Charge, Share,
    server::hosts::{AcceptedHost, Site},
};
use kith_types::ErrorCode;
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};
use tokio::{
    sync::Notify,
    time::{Instant as TimerInstant, sleep_until},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

/// Replies up to this size are not charged.
pub(crate) const UNCHARGED_REPLY_BYTES: usize = 4 << 10;

/// A connection. It counts as open until this is dropped.
#[derive(Debug)]
pub struct OpenConnection {
    connections: Connections,
    id: u64,
    /// Cancelled when another connection gets this one's place, or when its peer does not read replies while memory is
    /// short.
    leave: CancellationToken,
    /// When the peer must have authenticated.
    strange_until: TimerInstant,
    became_known: Notify,
    is_known: AtomicBool,
    /// The protocol of the connection, once it is known.
    protocol: Mutex<Option<&'static str>>,
    /// The number of requests under way, and of all requests so far. Used for protocols whose requests are not counted
    /// elsewhere.
    under_way: AtomicUsize,
    requests: AtomicU64,
    budget: Arc<Budget>,
    replies: Arc<Budget>,
    taken: Arc<AtomicU64>,
    share: Share,
    streams: OpenStreams,
    is_crowded_out: Arc<AtomicBool>,
    site: OnceLock<Site>,
}

impl OpenConnection {
    /// Returns the connection `id` of `connections`, whose peer is not authenticated yet.
    pub(super) fn new(connections: &Connections, id: u64, open: &Open) -> Self {
        Self {
            connections: connections.clone(),
            id,
            leave: open.leave.clone(),
            strange_until: TimerInstant::now() + STRANGER_TIMEOUT,
            became_known: Notify::new(),
            is_known: AtomicBool::new(false),
            protocol: Mutex::new(None),
            under_way: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            budget: connections.0.requests.child(CONNECTION_BYTES_MAX),
            replies: Arc::clone(&open.replies),
            taken: Arc::clone(&open.taken),
            share: Share::default(),
            streams: OpenStreams::default(),
            is_crowded_out: Arc::clone(&open.is_crowded_out),
            site: OnceLock::new(),
        }
    }

    /// Marks the peer as authenticated. Also called where no gate authenticates callers.
    pub fn is_known_now(&self) {
        if !self.is_known.swap(true, Ordering::AcqRel) {
            let mut state = self.connections.lock();
            state.census.is_known(self.id);
            drop(state);
            self.became_known.notify_waiters();
        }
    }

    /// Whether the peer is authenticated.
    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Acquire)
    }

    /// Waits until the peer is authenticated.
    pub async fn known(&self) {
        let known = self.became_known.notified();
        tokio::pin!(known);
        known.as_mut().enable();
        if !self.is_known() {
            known.await;
        }
    }

    /// Counts the connection in the metrics of `protocol`.
    pub fn speaks(&self, protocol: &'static str) {
        metrics::counter!("kith_server_connections_total", "protocol" => protocol).increment(1);
        metrics::gauge!("kith_server_connections", "protocol" => protocol).increment(1);
        *self.protocol.lock() = Some(protocol);
    }

    /// Runs `served`, and ends it early if the peer does not authenticate in time, if another connection needs its place
    /// before it has authenticated, or if it does not read its replies while their memory is short.
    ///
    /// # Errors
    /// The errors of `served`; `TimedOut` if it was ended early.
    pub async fn unless_strange<T>(&self, served: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::pin!(served);
        let reason = tokio::select! {
            biased;
            done = &mut served => return done,
            () = self.known() => None,
            () = self.leave.cancelled() => Some("crowded_out"),
            () = sleep_until(self.strange_until) => Some("unknown"),
        };
        let reason = match reason {
            Some(reason) => reason,
            None => tokio::select! {
                biased;
                done = &mut served => return done,
                () = self.leave.cancelled() => self.why_it_leaves(),
            },
        };
        closed(reason);
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Why the connection of a known peer must end at once, as a label of metrics.
    pub(super) fn why_it_leaves(&self) -> &'static str {
        match self.is_crowded_out.load(Ordering::Relaxed) {
            true => "crowded_out",
            false => Reason::Stalled.code().name(),
        }
    }

    /// Ready when the connection must end at once, although its peer is authenticated.
    pub fn has_to_leave(&self) -> WaitForCancellationFutureOwned {
        self.leave.clone().cancelled_owned()
    }

    /// Says where the connection ends.
    pub fn is_at(&self, site: Site) {
        // Nothing calls this twice.
        let _ = self.site.set(site);
    }

    /// Where the connection ends.
    pub fn site(&self) -> Site {
        self.site.get().copied().unwrap_or_default()
    }

    /// The hosts whose web pages may send requests.
    pub fn accepted_hosts(&self) -> &[AcceptedHost] {
        &self.connections.0.accepted_hosts
    }

    /// The share of long computations that count for this connection.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// The HTTP/2 streams of the connection.
    pub(super) fn streams(&self) -> &OpenStreams {
        &self.streams
    }

    /// Returns an empty charge for the memory of an arriving request.
    pub fn charge(&self) -> Charge {
        self.budget.charge()
    }

    /// Returns an empty charge for the memory of an HTTP/2 stream.
    pub(super) fn no_stream(&self) -> Charge {
        self.connections.0.streams.charge()
    }

    /// Returns an empty charge for the memory of an HTTP/2 stream that lasts as long as its caller likes.
    pub(super) fn no_lasting_stream(&self) -> Charge {
        self.connections.0.lasting.charge()
    }

    /// Returns an empty charge for the memory of replies.
    pub fn no_reply(&self) -> Charge {
        self.replies.charge()
    }

    /// Charges a reply of `bytes` bytes. The charge is to be kept until the reply is sent. A short reply is not charged.
    ///
    /// # Errors
    /// `overloaded` if there is no memory for the reply.
    pub fn charge_reply(&self, bytes: usize) -> Result<Charge, Status> {
        let mut charge = self.no_reply();
        if bytes <= UNCHARGED_REPLY_BYTES || charge.grow_to(bytes) {
            return Ok(charge);
        }
        metrics::counter!("kith_server_requests_refused_total", "reason" => "reply_memory").increment(1);
        let message = "replies that wait for their readers use all memory that this process has for replies";
        let help = "read replies as they arrive, ask for less at once, stream, or raise `reply-memory`";
        Err(kith_wire::status(ErrorCode::Overloaded, message, help))
    }

    /// Records how many bytes the peer has taken since the connection began.
    pub fn has_taken(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Relaxed);
    }

    /// The bytes of requests that are charged now.
    #[cfg(any(test, feature = "testing"))]
    pub fn request_bytes(&self) -> usize {
        self.budget.taken()
    }

    /// The bytes of replies that are charged now.
    #[cfg(any(test, feature = "testing"))]
    pub fn reply_bytes(&self) -> usize {
        self.replies.taken()
    }

    /// Returns a new watch over the connection, and how often to call it.
    pub(super) fn watch(&self) -> (Watch, Pace) {
        let pace = self.connections.0.limits.pace;
        (Watch::new(pace), pace)
    }

    /// Counts a request as under way until the returned value is dropped.
    pub fn request(self: &Arc<Self>) -> UnderWay {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// The number of requests that [`OpenConnection::request`] has counted so far, and whether any of them is under way.
    pub fn requests(&self) -> (u64, bool) {
        (self.requests.load(Ordering::Relaxed), self.under_way.load(Ordering::Relaxed) != 0)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if let Some(protocol) = *self.protocol.get_mut() {
            metrics::gauge!("kith_server_connections", "protocol" => protocol).decrement(1);
        }
        let mut state = self.connections.lock();
        state.census.leaves(self.id);
        state.open.remove(&self.id);
    }
}

/// A request that is counted as under way until this is dropped.
#[derive(Debug)]
pub struct UnderWay(Arc<OpenConnection>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::known_within, *};

    #[test]
    fn replies_that_do_not_fit_are_refused_and_short_ones_are_not_charged() {
        let connected = known_within(1 << 20);
        let first = connected.charge_reply(900 << 10).expect("there is room");
        let refused = connected.charge_reply(200 << 10).expect_err("there is none");
        assert_eq!(
            (refused.code(), kith_wire::detail_of(&refused).code.as_str()),
            (tonic::Code::ResourceExhausted, "overloaded")
        );
        let short = connected.charge_reply(UNCHARGED_REPLY_BYTES).expect("it is short");
        assert_eq!(connected.reply_bytes(), 900 << 10);
        drop((first, short));
        assert_eq!(connected.reply_bytes(), 0);
    }
}
