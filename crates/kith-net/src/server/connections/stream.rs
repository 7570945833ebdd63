//! A connection that a library serves (HTTP), watched where its bytes pass by.

use super::{Connected, Reason, STRANGER_BYTES_MAX, Seen, Watch, closed, opening::Opening};
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
    time::{Instant, Interval, MissedTickBehavior, Sleep, sleep},
};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// How long a stranger that has sent all that it may waits for its requests to show who it is: they are under way.
const FULL_PATIENCE: Duration = Duration::from_secs(1);
/// What one read of a stranger takes at the most.
const PIECE_BYTES: usize = 1 << 10;

/// A stream that ends, as if its peer had closed it, once its connection is to be closed. A stranger's bytes are read up to a bound, and so
/// many streams.
pub(crate) struct Watched<S> {
    stream: S,
    connected: Arc<Connected>,
    /// `None` once the peer is known.
    stranger: Option<Stranger>,
    /// Ready once it is to end though the peer is known.
    leave: Pin<Box<WaitForCancellationFutureOwned>>,
    watch: Watch,
    look: Interval,
    received: u64,
    sent: u64,
    /// Whether the peer did not take what was written last.
    is_unsent: bool,
    /// What its reader is told since the connection is over. Who writes does not wait for the peer any more.
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
struct Stranger {
    /// Ready if it remains one for too long, or somebody else gets its place.
    ends: BoxFuture<'static, io::Result<()>>,
    opening: Opening,
    /// Since it has sent all that it may.
    full: Option<Pin<Box<Sleep>>>,
}

impl Stranger {
    fn new(connected: &Arc<Connected>) -> Self {
        let connected = Arc::clone(connected);
        let ends = async move { connected.unless_strange(std::future::pending()).await }.boxed();
        Self { ends, opening: Opening::new(), full: None }
    }
}

impl<S: Unpin> Watched<S> {
    pub fn new(stream: S, connected: Arc<Connected>) -> Self {
        let (watch, every) = connected.watch();
        let mut look = tokio::time::interval_at(Instant::now() + every, every);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let stranger = (!connected.is_known()).then(|| Stranger::new(&connected));
        let leave = Box::pin(connected.has_to_leave());
        let (received, sent, is_unsent, over) = (0, 0, false, None);
        Self { stream, connected, stranger, leave, watch, look, received, sent, is_unsent, over }
    }

    /// Ready once it is to be closed.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Over> {
        if let Some(over) = self.over {
            return Poll::Ready(over);
        }
        if let Some(stranger) = &mut self.stranger {
            if self.connected.is_known() {
                self.stranger = None;
            } else if stranger.ends.poll_unpin(cx).is_ready() {
                return Poll::Ready(*self.over.insert(Over::Failed));
            }
        }
        // Of a stranger this is told by `ends`.
        if self.stranger.is_none() && self.leave.as_mut().poll(cx).is_ready() {
            closed(Reason::Stalled.code().name());
            return Poll::Ready(*self.over.insert(Over::Failed));
        }
        loop {
            ready!(self.look.poll_tick(cx));
            let (messages, is_under_way) = self.connected.requests();
            let (received, sent, is_unsent) = (self.received, self.sent, self.is_unsent);
            // Whether a request comes too slowly is seen where its body is read.
            let seen = Seen { messages, received, sent, has_begun: false, is_unsent, is_under_way };
            if let Some(reason) = self.watch.look(seen) {
                closed(reason.code().name());
                return Poll::Ready(*self.over.insert(match reason {
                    Reason::Idle => Over::Quietly,
                    Reason::SlowRequest | Reason::Stalled => Over::Failed,
                }));
            }
        }
    }

    /// What came of a step of writing. One that waits for the peer ends with the connection: a library that has bytes to send may not read,
    /// and would never hear of it.
    fn sent<T>(&mut self, cx: &mut Context<'_>, step: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_unsent = step.is_pending();
        if step.is_pending() && self.poll_over(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        step
    }

    fn note_written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.sent += *bytes as u64;
            self.connected.has_taken(self.sent);
        }
        self.sent(cx, written)
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Reads of a stranger, never beyond a frame, so that nothing of one stream too many is read. One that has sent all that it may and is
    /// not known soon has asked often enough without showing who it is.
    fn poll_stranger(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(stranger) = &mut self.stranger else { return Poll::Ready(Ok(())) };
        let allowed =
            stranger.opening.allowance().min(STRANGER_BYTES_MAX.saturating_sub(self.received as usize));
        if allowed == 0 {
            let full = stranger.full.get_or_insert_with(|| Box::pin(sleep(FULL_PATIENCE)));
            ready!(full.as_mut().poll(cx));
            closed("unknown");
            self.over = Some(Over::Quietly);
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; PIECE_BYTES];
        let mut piece = ReadBuf::new(&mut bytes[..allowed.min(PIECE_BYTES).min(buffer.remaining())]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut piece))?;
        stranger.opening.reads(piece.filled());
        self.received += piece.filled().len() as u64;
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
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.received += (buffer.filled().len() - before) as u64;
        Poll::Ready(Ok(()))
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
