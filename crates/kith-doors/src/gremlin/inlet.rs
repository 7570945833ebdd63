//! What arrives of a request is charged to the memory for requests as it comes, before the request is complete.

use kith_net::{
    Charge,
    server::connections::{Connected, UNCHARGED_BYTES},
};
use parking_lot::Mutex;
use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The memory that a decoded request takes, in multiples of its length.
const DECODED: usize = 4;

/// The request that a connection has begun to receive. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Unfinished(Arc<Mutex<Received>>);

#[derive(Debug)]
struct Received {
    bytes: usize,
    charge: Charge,
}

impl Unfinished {
    /// Nothing was received yet.
    pub fn new(place: &Connected) -> Self {
        Self(Arc::new(Mutex::new(Received { bytes: 0, charge: place.charge() })))
    }

    /// Notes that this many more bytes have come. Returns `false` if there is no memory for them.
    fn receive(&self, bytes: usize) -> bool {
        let mut received = self.0.lock();
        received.bytes += bytes;
        let total = received.bytes;
        total <= UNCHARGED_BYTES || received.charge.grow_to(total)
    }

    /// A request of this length is complete. Returns its charge, also for what it is decoded to; `None` if there is no memory
    /// for that.
    pub fn finish(&self, length: usize) -> Option<Charge> {
        let mut received = self.0.lock();
        received.bytes = 0;
        let mut charge = received.charge.take();
        let is_free = length <= UNCHARGED_BYTES || charge.grow_to(length.saturating_mul(DECODED));
        is_free.then_some(charge)
    }
}

/// A stream that charges what is read from it. Reading fails with [`io::ErrorKind::OutOfMemory`] if there is no memory, and with
/// [`io::ErrorKind::UnexpectedEof`] at the end: the WebSocket library would send no more answers after an end that is no error.
#[derive(Debug)]
pub(super) struct Inlet<S> {
    stream: S,
    unfinished: Unfinished,
}

impl<S> Inlet<S> {
    pub fn new(stream: S, unfinished: Unfinished) -> Self {
        Self { stream, unfinished }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Inlet<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let received = buffer.filled().len() - before;
        Poll::Ready(match received {
            0 if buffer.remaining() != 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ if self.unfinished.receive(received) => Ok(()),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        })
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Inlet<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
