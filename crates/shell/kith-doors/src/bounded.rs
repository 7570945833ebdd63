//! The stream of a door that does not enforce the limits on connections itself. The stream ends when the process stops, when
//! the peer has asked nothing for long, when it takes no replies, and when an unauthenticated peer sends too much.

use kith_net::server::connections::{OpenConnection, STRANGER_BYTES_MAX, Traffic};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A stream that enforces the limits on connections.
pub(crate) struct BoundedStream<S> {
    stream: S,
    traffic: Traffic,
    /// Once it is cancelled, reading ends, whatever the peer sends.
    end: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whether everything has been sent: what still arrives is discarded.
    is_parting: bool,
}

impl<S> BoundedStream<S> {
    pub fn new(stream: S, connected: Arc<OpenConnection>, end: CancellationToken) -> Self {
        let end = Box::pin(end.cancelled_owned());
        Self { stream, traffic: Traffic::new(connected), end, is_parting: false }
    }

    /// Passes on the result of one write. A write that waits for the peer fails once the connection must be closed.
    fn sent<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.traffic.set_unsent(result.is_pending());
        if result.is_pending() && self.traffic.poll_reason(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        result
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let is_spent =
            !self.traffic.connected().is_known() && STRANGER_BYTES_MAX as u64 <= self.traffic.received();
        let is_over =
            is_spent || self.end.as_mut().poll(cx).is_ready() || self.traffic.poll_reason(cx).is_ready();
        if is_over && !self.is_parting {
            return Poll::Ready(Ok(()));
        }
        let Self { stream, traffic, .. } = &mut *self;
        traffic.poll_read(Pin::new(stream), cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.traffic.count_written(&written);
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
