//! A connection that a library serves (HTTP), watched where its bytes pass by.

use super::{Connected, Reason, STRANGER_BYTES_MAX, Seen, Watch, closed};
use futures::{FutureExt, future::BoxFuture};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Interval, MissedTickBehavior},
};

/// A stream that ends, as if its peer had closed it, once its connection is to be closed. A stranger's bytes are read up to a bound.
pub(crate) struct Watched<S> {
    stream: S,
    connected: Arc<Connected>,
    /// Ready if the peer remains a stranger for too long; `None` once it is known.
    stranger: Option<BoxFuture<'static, io::Result<()>>>,
    watch: Watch,
    look: Interval,
    received: u64,
    sent: u64,
    /// Whether the peer did not take what was written last.
    is_unsent: bool,
}

impl<S: Unpin> Watched<S> {
    pub fn new(stream: S, connected: Arc<Connected>) -> Self {
        let (watch, every) = connected.watch();
        let mut look = tokio::time::interval_at(Instant::now() + every, every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stranger = (!connected.is_known()).then(|| {
            let connected = Arc::clone(&connected);
            async move { connected.unless_strange(std::future::pending()).await }.boxed()
        });
        Self { stream, connected, stranger, watch, look, received: 0, sent: 0, is_unsent: false }
    }

    /// Whether it is to be closed now.
    fn poll_look(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Reason>> {
        if let Some(stranger) = &mut self.stranger {
            if self.connected.is_known() {
                self.stranger = None;
            } else if let Poll::Ready(Err(error)) = stranger.poll_unpin(cx) {
                return Poll::Ready(Err(error));
            }
        }
        loop {
            ready!(self.look.poll_tick(cx));
            let (messages, is_under_way) = self.connected.requests();
            let (received, sent, is_unsent) = (self.received, self.sent, self.is_unsent);
            // Whether a request comes too slowly is seen where its body is read.
            let seen = Seen { messages, received, sent, has_begun: false, is_unsent, is_under_way };
            if let Some(reason) = self.watch.look(seen) {
                return Poll::Ready(Ok(reason));
            }
        }
    }

    fn note_written(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.is_unsent = written.is_pending();
        if let Poll::Ready(Ok(bytes)) = &written {
            self.sent += *bytes as u64;
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(reason) = self.poll_look(cx)? {
            closed(reason.name());
            return match reason {
                Reason::Idle => Poll::Ready(Ok(())),
                Reason::SlowRequest | Reason::Stalled => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            };
        }
        // It is woken when the peer is known, or its time is over.
        if self.stranger.is_some() && STRANGER_BYTES_MAX as u64 <= self.received {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.received += (buffer.filled().len() - before) as u64;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.note_written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
