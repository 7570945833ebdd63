//! The bytes of a request are charged to the memory for requests as they arrive, before the request is complete. A request that
//! does not arrive in time ends its connection.

use super::frames::Frames;
use kith_gremlin::Room;
use kith_net::{
    Charge,
    server::connections::{Arrival, OpenConnection, UNCHARGED_BYTES},
};
use parking_lot::Mutex;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// This many pings may come of a peer that does not read their answers, which the WebSocket library keeps.
const UNREAD_PONGS_MAX: u64 = 512;

/// Room for what a request of this length is decoded to, whose received form is charged. Small requests are not charged.
pub(super) fn room(mut charge: Charge, length: usize) -> Room {
    Room::new(move |bytes| {
        let all = length.saturating_add(bytes);
        charge.shrink_to(all);
        bytes <= UNCHARGED_BYTES || charge.grow_to(all)
    })
}

/// The messages that a connection has begun to receive. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct PartialMessages(Arc<Mutex<Received>>);

#[derive(Debug)]
struct Received {
    frames: Frames,
    arrival: Arrival,
}

impl PartialMessages {
    /// Nothing was received yet.
    pub fn new(connected: &Arc<OpenConnection>) -> Self {
        Self(Arc::new(Mutex::new(Received { frames: Frames::default(), arrival: Arrival::new(connected) })))
    }

    /// Notes that these bytes have come. Returns `false` if there is no memory for them.
    #[must_use]
    pub fn receive(&self, bytes: &[u8]) -> bool {
        let Received { frames, arrival } = &mut *self.0.lock();
        let before = frames.bytes();
        frames.receive(bytes);
        // Pings and empty frames do not make a message arrive faster.
        arrival.received(frames.bytes() - before);
        frames.bytes() <= UNCHARGED_BYTES || arrival.pay(frames.bytes())
    }

    /// A request of this length is complete. Returns room for what it is decoded to.
    pub fn finish(&self, length: usize) -> Room {
        let Received { frames, arrival } = &mut *self.0.lock();
        frames.take(length);
        arrival.finished();
        room(arrival.take_charge(), length)
    }

    /// Pings and other frames so far that are about the connection itself.
    fn controls(&self) -> u64 {
        self.0.lock().frames.controls()
    }

    /// Ready when a message that has begun should have been complete.
    fn poll_too_slow(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Received { frames, arrival } = &mut *self.0.lock();
        arrival.poll_too_slow(cx, frames.has_begun())
    }
}

/// The stream of a WebSocket, which charges what is read from it. Reading fails with [`io::ErrorKind::OutOfMemory`] if there is no
/// memory, with [`io::ErrorKind::TimedOut`] if a message arrives too slowly, and with [`io::ErrorKind::UnexpectedEof`] at the end:
/// the WebSocket library would send no more answers after an end that is no error.
#[derive(Debug)]
pub(super) struct Inlet<S> {
    stream: S,
    unfinished: PartialMessages,
    /// The pings and the like that had come when the peer had last taken all that was sent to it.
    answered: u64,
    /// Whether bytes wait for the peer.
    is_unsent: bool,
    /// The task that reads, while it waits for the peer to read.
    reader: Option<Waker>,
}

impl<S> Inlet<S> {
    pub fn new(stream: S, unfinished: PartialMessages) -> Self {
        Self { stream, unfinished, answered: 0, is_unsent: false, reader: None }
    }

    /// Notes how much of `bytes` was written: the library offers all that waits at once.
    fn note_written(&mut self, written: &Poll<io::Result<usize>>, bytes: usize) {
        self.is_unsent = !matches!(written, Poll::Ready(Ok(count)) if *count == bytes);
        if !self.is_unsent {
            self.answered = self.unfinished.controls();
            self.reader.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Inlet<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unfinished.poll_too_slow(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if self.is_unsent && UNREAD_PONGS_MAX <= self.unfinished.controls() - self.answered {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let received = &buffer.filled()[before..];
        Poll::Ready(match received.len() {
            0 if buffer.remaining() != 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ if self.unfinished.receive(received) => Ok(()),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Inlet<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note_written(&written, bytes.len());
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
