//! One connection as its process counts it: who its peer is, what it asks, and the memory that it takes.

use super::{CONNECTION_BYTES_MAX, Connections, Open, Reason, STRANGER_PATIENCE, Watch, closed};
use crate::{Budget, Charge};
use kith_types::ErrorCode;
use parking_lot::Mutex;
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{Instant as TimerInstant, sleep_until},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;

/// Replies up to this size are not charged.
pub(crate) const UNCHARGED_REPLY_BYTES: usize = 4 << 10;

/// A connection, as long as it is there.
#[derive(Debug)]
pub struct Connected {
    connections: Connections,
    id: u64,
    /// Cancelled when somebody else gets its place, or its replies are in the way of others.
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
    replies: Arc<Budget>,
    taken: Arc<AtomicU64>,
}

impl Connected {
    /// The connection `id` of `connections`, whose peer is not known yet.
    pub(super) fn new(connections: &Connections, id: u64, open: &Open) -> Self {
        Self {
            connections: connections.clone(),
            id,
            leave: open.leave.clone(),
            strange_until: TimerInstant::now() + STRANGER_PATIENCE,
            became_known: Notify::new(),
            is_known: AtomicBool::new(false),
            protocol: Mutex::new(None),
            under_way: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            budget: connections.0.requests.child(CONNECTION_BYTES_MAX),
            replies: Arc::clone(&open.replies),
            taken: Arc::clone(&open.taken),
        }
    }

    /// The peer has shown who it is, or nobody asks.
    pub fn is_known_now(&self) {
        if !self.is_known.swap(true, Ordering::AcqRel) {
            let mut state = self.connections.lock();
            state.census.is_known(self.id);
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
        *self.protocol.lock() = Some(protocol);
    }

    /// Ends `served` if the peer does not show in time who it is, somebody else needs its place before it does, or it does not take its
    /// replies while their memory is short.
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
        let reason = match reason {
            Some(reason) => reason,
            None => tokio::select! {
                biased;
                done = &mut served => return done,
                () = self.leave.cancelled() => Reason::Stalled.code().name(),
            },
        };
        closed(reason);
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Ready once it is to end at once, though its peer is known.
    pub fn has_to_leave(&self) -> WaitForCancellationFutureOwned {
        self.leave.clone().cancelled_owned()
    }

    /// A message that begins, to be charged as it comes.
    pub fn charge(&self) -> Charge {
        self.budget.charge()
    }

    /// A charge for replies that has taken nothing yet.
    pub fn no_reply(&self) -> Charge {
        self.replies.charge()
    }

    /// A reply of so many bytes, charged until it is sent; nothing is taken for a short one.
    ///
    /// # Errors
    /// `overloaded`: there is no memory for it.
    pub fn charge_reply(&self, bytes: usize) -> Result<Charge, Status> {
        let mut charge = self.no_reply();
        if bytes <= UNCHARGED_REPLY_BYTES || charge.grow_to(bytes) {
            return Ok(charge);
        }
        metrics::counter!("kith_server_requests_refused_total", "reason" => "reply_memory").increment(1);
        let message =
            "replies that wait for their readers take all the memory that this process has for them";
        let help = "read replies as they come, ask for less at once, stream, or raise `reply-memory`";
        Err(kith_wire::status(ErrorCode::Overloaded, message, help))
    }

    /// The peer has taken so many bytes since the connection began.
    pub fn has_taken(&self, bytes: u64) {
        self.taken.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of replies that are charged now.
    #[cfg(any(test, feature = "testing"))]
    pub fn reply_bytes(&self) -> usize {
        self.replies.taken()
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
        if let Some(protocol) = *self.protocol.get_mut() {
            metrics::gauge!("kith_server_connections", "protocol" => protocol).decrement(1);
        }
        let mut state = self.connections.lock();
        state.census.leaves(self.id);
        state.open.remove(&self.id);
    }
}

/// A request under way.
#[derive(Debug)]
pub struct UnderWay(Arc<Connected>);

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
