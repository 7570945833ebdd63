//! A connection that a library serves (HTTP), watched where its bytes pass through.

use super::{Connected, Reason, STRANGER_BYTES_MAX, closed, opening::Opening, traffic::Traffic};
use futures::{FutureExt, future::BoxFuture};
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// How long a stranger that has sent all the bytes it may has to show who it is, while its requests are under way.
const FULL_PATIENCE: Duration = Duration::from_secs(1);
/// The most bytes that one read takes from a stranger.
const PIECE_BYTES: usize = 1 << 10;
/// After this many bytes that arrived faster than they were read, others have their turn: they may be a thousand requests.
const READ_AT_ONCE: usize = 64 << 10;

/// A stream that ends, as if its peer had closed it, once its connection must be closed. From a stranger (a peer that has
/// not shown who it is), only a limited number of bytes and of HTTP/2 streams is read.
pub(crate) struct Watched<S> {
    stream: S,
    traffic: Traffic,
    /// `None` once the peer is known.
    stranger: Option<UnprovenCaller>,
    /// Ready once a known peer must leave.
    leave: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The bytes that were read since the reader last had to wait.
    at_once: usize,
    /// How the stream has ended, for its reader. Writes do not wait for the peer any more.
    over: Option<Over>,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// As if the peer had closed it.
    Quietly,
    /// With an error.
    Failed,
}

/// A peer that has not shown who it is.
struct UnprovenCaller {
    /// Ready if the peer remains a stranger for too long, or its place is given to another connection.
    ends: BoxFuture<'static, io::Result<()>>,
    opening: Opening,
    /// Runs once the peer has sent all the bytes it may.
    full: Option<Pin<Box<Sleep>>>,
}

impl UnprovenCaller {
    fn new(connected: &Arc<Connected>) -> Self {
        let connected = Arc::clone(connected);
        let ends = async move { connected.unless_strange(std::future::pending()).await }.boxed();
        Self { ends, opening: Opening::new(), full: None }
    }
}

impl<S: Unpin> Watched<S> {
    pub fn new(stream: S, connected: Arc<Connected>) -> Self {
        let stranger = (!connected.is_known()).then(|| UnprovenCaller::new(&connected));
        let leave = Box::pin(connected.has_to_leave());
        Self { stream, traffic: Traffic::new(connected), stranger, leave, at_once: 0, over: None }
    }

    /// Ready once the connection must be closed.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Over> {
        if let Some(over) = self.over {
            return Poll::Ready(over);
        }
        if let Some(stranger) = &mut self.stranger {
            if self.traffic.connected().is_known() {
                self.stranger = None;
            } else if stranger.ends.poll_unpin(cx).is_ready() {
                return Poll::Ready(*self.over.insert(Over::Failed));
            }
        }
        // For a stranger, `ends` covers this.
        if self.stranger.is_none() && self.leave.as_mut().poll(cx).is_ready() {
            closed(self.traffic.connected().why_it_leaves());
            return Poll::Ready(*self.over.insert(Over::Failed));
        }
        // A request that arrives too slowly is noticed where its body is read.
        let over = match ready!(self.traffic.poll_reason(cx)) {
            Reason::Idle => Over::Quietly,
            Reason::SlowRequest | Reason::Stalled => Over::Failed,
        };
        Poll::Ready(*self.over.insert(over))
    }

    /// Passes on the result of a write. A write that waits for the peer fails once the connection must be closed: the
    /// library does not read while it has bytes to send, so it would not notice otherwise.
    fn sent<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.traffic.set_unsent(result.is_pending());
        if result.is_pending() && self.poll_over(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        result
    }

    fn note_written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.traffic.count_written(&written);
        self.sent(cx, written)
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Reads from a stranger, never beyond the end of an HTTP/2 frame, so that no stream beyond the limit is read. The
    /// connection of a stranger that has sent all the bytes it may, and does not become known soon, is closed.
    fn poll_stranger(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(stranger) = &mut self.stranger else { return Poll::Ready(Ok(())) };
        let allowed = stranger
            .opening
            .allowance()
            .min(STRANGER_BYTES_MAX.saturating_sub(self.traffic.received() as usize));
        if allowed == 0 {
            let full = stranger.full.get_or_insert_with(|| Box::pin(sleep(FULL_PATIENCE)));
            ready!(full.as_mut().poll(cx));
            closed("unknown");
            self.over = Some(Over::Quietly);
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; PIECE_BYTES];
        let mut piece = ReadBuf::new(&mut bytes[..allowed.min(PIECE_BYTES).min(buffer.remaining())]);
        ready!(self.traffic.poll_read(Pin::new(&mut self.stream), cx, &mut piece))?;
        stranger.opening.reads(piece.filled());
        buffer.put_slice(piece.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(over) = self.poll_over(cx) {
            return Poll::Ready(match over {
                Over::Quietly => Ok(()),
                Over::Failed => Err(io::ErrorKind::TimedOut.into()),
            });
        }
        if self.stranger.is_some() {
            return self.poll_stranger(cx, buffer);
        }
        if READ_AT_ONCE <= self.at_once {
            self.at_once = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Self { stream, traffic, at_once, .. } = &mut *self;
        let before = buffer.filled().len();
        let read = traffic.poll_read(Pin::new(stream), cx, buffer);
        *at_once = if read.is_pending() { 0 } else { *at_once + buffer.filled().len() - before };
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.note_written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.sent(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.sent(cx, shut)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::testing::known, *};
    use futures::task::noop_waker;
    use tokio::io::repeat;

    #[tokio::test]
    async fn a_connection_whose_bytes_never_end_lets_others_have_their_turn() {
        let mut watched = Watched::new(repeat(7), known());
        let (waker, mut bytes) = (noop_waker(), vec![0; 4 << 10]);
        let mut cx = Context::from_waker(&waker);
        for _ in 0..2 {
            let mut read = 0;
            loop {
                let mut buffer = ReadBuf::new(&mut bytes);
                match Pin::new(&mut watched).poll_read(&mut cx, &mut buffer) {
                    Poll::Ready(done) => done.expect("it is open"),
                    Poll::Pending => break,
                }
                read += buffer.filled().len();
            }
            assert_eq!(read, READ_AT_ONCE);
        }
    }
}
