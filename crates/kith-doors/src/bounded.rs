//! The stream of a door that does not enforce the limits on connections itself. The stream ends when the process stops, when
//! the peer has asked nothing for long, when it takes no replies, and when an unauthenticated peer sends too much.

use kith_net::server::connections::{Connected, Reason, STRANGER_BYTES_MAX, Seen, Watch, closed};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Interval, MissedTickBehavior, interval_at},
};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A stream that enforces the limits on connections.
pub(crate) struct Bounded<S> {
    stream: S,
    place: Arc<Connected>,
    /// Once it is cancelled, reading ends, whatever the peer sends.
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    watch: Watch,
    look: Interval,
    received: u64,
    sent: u64,
    is_unsent: bool,
    /// Whether everything has been sent: what still arrives is discarded.
    is_parting: bool,
}

impl<S> Bounded<S> {
    pub fn new(stream: S, place: Arc<Connected>, end: CancellationToken) -> Self {
        let (watch, every) = place.watch();
        let mut look = interval_at(Instant::now() + every, every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = Box::pin(end.cancelled_owned());
        Self { stream, place, end, watch, look, received: 0, sent: 0, is_unsent: false, is_parting: false }
    }

    /// Ready once the connection is to be closed.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Reason> {
        loop {
            ready!(self.look.poll_tick(cx));
            let (messages, is_under_way) = self.place.requests();
            let (received, sent, is_unsent) = (self.received, self.sent, self.is_unsent);
            // Only whole requests count as messages, so a peer that sends one too slowly is idle.
            let seen = Seen { messages, received, sent, has_begun: false, is_unsent, is_under_way };
            if let Some(reason) = self.watch.look(seen) {
                closed(reason.code().name());
                return Poll::Ready(reason);
            }
        }
    }

    /// Passes on the result of one write. A write that waits for the peer fails once the connection is to be closed.
    fn sent<T>(&mut self, cx: &mut Context<'_>, step: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_unsent = step.is_pending();
        if step.is_pending() && self.poll_over(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        step
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_spent = !self.place.is_known() && STRANGER_BYTES_MAX as u64 <= self.received;
        let is_over = is_spent || self.end.as_mut().poll(cx).is_ready() || self.poll_over(cx).is_ready();
        if is_over && !self.is_parting {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.received += (buffer.filled().len() - before) as u64;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.sent += *bytes as u64;
            self.place.has_taken(self.sent);
        }
        self.sent(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.sent(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.is_parting = true;
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.sent(cx, shut)
    }
}
