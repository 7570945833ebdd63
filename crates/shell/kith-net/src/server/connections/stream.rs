//! A connection that a library serves (HTTP), watched where its bytes pass through.

use super::{
    OpenConnection, Reason, STRANGER_BYTES_MAX, closed,
    http2::{Allowance, Frames},
    open_streams::STARTING_MAX,
    traffic::Traffic,
};
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
    task::coop,
    time::{Instant, Sleep, sleep},
};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// How long a stranger that has sent all the bytes it may has to show who it is, while its requests are under way.
const FULL_TIMEOUT: Duration = Duration::from_secs(1);
/// The most bytes that one read takes from a stranger.
const PIECE_BYTES: usize = 1 << 10;
/// After this many bytes that arrived faster than they were read, others have their turn: they may be a thousand requests.
const READ_AT_ONCE: usize = 64 << 10;
/// The most bytes that one read takes of HTTP/2. Even a read of the shortest requests begins few of them.
const HTTP2_PIECE_BYTES: usize = 8 << 10;
/// A bound on the steps of a task's turn that [`end_turn`] uses up: more than tokio gives it.
const TURN_STEPS_MAX: usize = 1_024;

/// A stream that ends, as if its peer had closed it, once its connection must be closed. From a stranger (a peer that has
/// not shown who it is), only a limited number of bytes and of HTTP/2 streams is read. From others, HTTP/2 is read as fast as
/// the tasks of their requests run.
pub(crate) struct WatchedStream<S> {
    stream: S,
    traffic: Traffic,
    /// `None` if the connection does not use HTTP/2.
    http2: Option<Http2>,
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
    /// Runs once the peer has sent all the bytes it may.
    full: Option<Pin<Box<Sleep>>>,
}

impl UnprovenCaller {
    fn new(connected: &Arc<OpenConnection>) -> Self {
        let connected = Arc::clone(connected);
        let ends = async move { connected.unless_strange(std::future::pending()).await }.boxed();
        Self { ends, full: None }
    }
}

/// The HTTP/2 frames that a connection has sent, and how many it may still send.
struct Http2 {
    frames: Frames,
    allowance: Allowance,
    /// When the allowance was last checked.
    checked: Instant,
    /// The streams that were opened before the reader last had to wait.
    streams_before: u64,
}

impl Http2 {
    fn new() -> Self {
        let (frames, allowance) = (Frames::new(), Allowance::new());
        Self { frames, allowance, checked: Instant::now(), streams_before: 0 }
    }

    /// Counts bytes that were read; `writes` of this process have succeeded so far. Returns `false` if the peer sends too many
    /// frames that ask for nothing.
    fn reads(&mut self, bytes: &[u8], writes: u64) -> bool {
        self.frames.reads(bytes);
        if !self.allowance.is_due(self.frames.idle()) {
            return true;
        }
        let now = Instant::now();
        let after = now.duration_since(std::mem::replace(&mut self.checked, now));
        self.allowance.pays(self.frames.idle(), writes, after)
    }

    /// Whether this turn has opened as many streams as a turn may open.
    fn has_opened_many(&self) -> bool {
        STARTING_MAX as u64 <= self.frames.streams() - self.streams_before
    }
}

/// Ends the turn of this task: what it reads and writes has to wait until others had theirs. Without this, h2 would read again
/// at once, for each request that it passes on.
fn end_turn(cx: &mut Context<'_>) {
    for _ in 0..TURN_STEPS_MAX {
        match coop::poll_proceed(cx) {
            Poll::Ready(step) => step.made_progress(),
            // tokio wakes the task.
            Poll::Pending => return,
        }
    }
    // The task is outside of tokio, or takes no turns.
    cx.waker().wake_by_ref();
}

impl<S: Unpin> WatchedStream<S> {
    /// Wraps a connection that uses HTTP/1.
    pub fn new(stream: S, connected: Arc<OpenConnection>) -> Self {
        let stranger = (!connected.is_known()).then(|| UnprovenCaller::new(&connected));
        let leave = Box::pin(connected.has_to_leave());
        let traffic = Traffic::new(connected);
        Self { stream, traffic, http2: None, stranger, leave, at_once: 0, over: None }
    }

    /// Wraps a connection that uses HTTP/2.
    pub fn http2(stream: S, connected: Arc<OpenConnection>) -> Self {
        Self { http2: Some(Http2::new()), ..Self::new(stream, connected) }
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

impl<S: AsyncRead + Unpin> WatchedStream<S> {
    /// Reads from a stranger, never beyond the end of an HTTP/2 frame, so that no stream beyond the limit is read. The
    /// connection of a stranger that has sent all the bytes it may, and does not become known soon, is closed.
    fn poll_stranger(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Some(stranger) = &mut self.stranger else { return Poll::Ready(Ok(())) };
        let frames = self.http2.as_mut().map(|http2| &mut http2.frames);
        let of_frame = frames.as_ref().map_or(usize::MAX, |frames| frames.allowance());
        let allowed = of_frame.min(STRANGER_BYTES_MAX.saturating_sub(self.traffic.received() as usize));
        if allowed == 0 {
            let full = stranger.full.get_or_insert_with(|| Box::pin(sleep(FULL_TIMEOUT)));
            ready!(full.as_mut().poll(cx));
            closed("unknown");
            self.over = Some(Over::Quietly);
            return Poll::Ready(Ok(()));
        }
        let mut bytes = [0; PIECE_BYTES];
        let mut piece = ReadBuf::new(&mut bytes[..allowed.min(PIECE_BYTES).min(buffer.remaining())]);
        ready!(self.traffic.poll_read(Pin::new(&mut self.stream), cx, &mut piece))?;
        if let Some(frames) = frames {
            frames.reads(piece.filled());
        }
        buffer.put_slice(piece.filled());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> WatchedStream<S> {
    /// Reads from a peer that is known. The connection of one that sends too many HTTP/2 frames that ask for nothing is
    /// closed.
    fn poll_known(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let has_opened_many = self.http2.as_ref().is_some_and(Http2::has_opened_many);
        if READ_AT_ONCE <= self.at_once || has_opened_many {
            self.begins_turn();
            end_turn(cx);
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let read = match self.http2 {
            None => self.traffic.poll_read(Pin::new(&mut self.stream), cx, buffer),
            Some(_) => self.poll_http2(cx, buffer),
        };
        match read.is_pending() {
            true => self.begins_turn(),
            false => self.at_once += buffer.filled().len() - before,
        }
        read
    }

    fn poll_http2(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, traffic, http2: Some(http2), over, .. } = self else { return Poll::Ready(Ok(())) };
        ready!(traffic.connected().streams().poll_few(cx));
        let room = buffer.remaining().min(HTTP2_PIECE_BYTES);
        let mut piece = ReadBuf::new(buffer.initialize_unfilled_to(room));
        ready!(traffic.poll_read(Pin::new(stream), cx, &mut piece))?;
        let came = piece.filled().len();
        if !http2.reads(piece.filled(), traffic.writes()) {
            closed("too_many_frames");
            *over = Some(Over::Failed);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        buffer.advance(came);
        Poll::Ready(Ok(()))
    }

    /// Notes that the reader has had to wait.
    fn begins_turn(&mut self) {
        self.at_once = 0;
        if let Some(http2) = &mut self.http2 {
            http2.streams_before = http2.frames.streams();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
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
        self.poll_known(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
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
    use std::future::poll_fn;
    use tokio::io::{AsyncReadExt, repeat};

    /// The bytes that one turn of a task reads of a stream whose bytes never end.
    async fn read_in_a_turn(mut watched: WatchedStream<impl AsyncRead + Unpin + Send + 'static>) -> usize {
        let turn = tokio::spawn(async move {
            let (mut bytes, mut read) = (vec![0; 4 << 10], 0);
            poll_fn(|cx| {
                // A library that asks again although the answer was to wait, as h2 does for each request that it passes on.
                for _ in 0..1_000 {
                    let mut buffer = ReadBuf::new(&mut bytes);
                    let _ = Pin::new(&mut watched).poll_read(cx, &mut buffer);
                    read += buffer.filled().len();
                }
                Poll::Ready(read)
            })
            .await
        });
        turn.await.expect("it ends")
    }

    /// A source of bytes that takes part in the turns of tasks, as a socket does.
    struct Socket<S>(S);

    impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let step = ready!(coop::poll_proceed(cx));
            ready!(Pin::new(&mut self.0).poll_read(cx, buffer))?;
            step.made_progress();
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_connection_whose_bytes_never_end_lets_others_have_their_turn() {
        assert_eq!(read_in_a_turn(WatchedStream::new(Socket(repeat(7)), known())).await, READ_AT_ONCE);
        // The bytes are those of frames of an unknown kind, each with 458,759 bytes.
        assert_eq!(read_in_a_turn(WatchedStream::http2(Socket(repeat(7)), known())).await, READ_AT_ONCE);
    }

    #[tokio::test]
    async fn few_requests_begin_in_one_turn() {
        let requests = [[0; 24].to_vec(), [0, 0, 1, 1, 5, 0, 0, 0, 1, 9].repeat(100_000)].concat();
        let read = read_in_a_turn(WatchedStream::http2(Socket(io::Cursor::new(requests)), known())).await;
        assert_eq!(read, 4 << 10, "one read has begun more than enough");
    }

    #[tokio::test]
    async fn a_peer_that_cancels_pings_or_sends_settings_without_end_is_closed() {
        for (kind, payload) in [(3, 4), (4, 0), (6, 8), (2, 5), (0, 0), (200, 1)] {
            let frame = [&[0, 0, payload, kind, 0, 0, 0, 0, 1][..], &vec![0; usize::from(payload)]].concat();
            let frames = [vec![0; 24], frame.repeat(100_000)].concat();
            let mut watched = WatchedStream::http2(io::Cursor::new(frames.clone()), known());
            let mut read = Vec::new();
            let ended = watched.read_to_end(&mut read).await.map_err(|error| error.kind());
            assert_eq!(ended, Err(io::ErrorKind::TimedOut), "frames of kind {kind}");
            assert!(read.len() < 10_000 * frame.len(), "frames of kind {kind}: {} bytes", read.len());
            assert!(watched.read(&mut [0; 9]).await.is_err(), "it stays closed");
        }
    }
}
