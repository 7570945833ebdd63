//! The reading side of a framed connection: it reads bytes, decrypts them if the connection uses TLS, and hands out frames.

use super::{
    ConnectionLoss,
    cipher::Cipher,
    connection::Connection,
    shared::SharedReplies,
    silence::Silence,
    socket::{self, Socket, Source},
};
use crate::Budget;
use bytes::{BufMut, BytesMut};
use kith_wire::frame::{self, Flags, FrameError, HEADER_BYTES, Header};
use std::{
    io,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::AsyncReadExt,
    time::{Interval, MissedTickBehavior},
};

/// How often a connection is checked for a silent peer.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The most bytes that one read takes, unless a longer frame has begun.
const READ_BYTES: usize = 64 << 10;
/// The rest of a frame's body is read directly into its message if at least this much of it is missing; a shorter rest is
/// read into the buffer and copied.
const DIRECT_BYTES_MIN: usize = 16 << 10;
/// How much one read takes where a long frame is likely to begin: its header, and only few bytes of the body, which must be
/// copied.
const NEXT_BYTES: usize = 2 << 10;

/// The state of a connection's reading task.
struct Reader {
    source: Source,
    /// For a connection over TLS: received bytes that are not decrypted yet.
    sealed: Option<BytesMut>,
    buffer: BytesMut,
    /// The frame whose body is being read directly into its message, if there is one.
    direct: Option<Direct>,
    /// Whether the last frame was read directly and its reply goes on, so that another long frame is likely to follow.
    goes_on: bool,
    look: Interval,
    silence: Silence,
}

/// A frame of a long reply whose body is read directly into its message.
struct Direct {
    header: Header,
    /// The message as far as it has arrived. The connection lent it.
    message: BytesMut,
    /// Missing bytes of the body.
    left: usize,
}

/// Starts the task that reads from a connection. The task ends with the connection. With a cipher, the stream carries TLS.
pub(super) fn start(
    stream: Socket,
    cipher: Option<Cipher>,
    shared: Option<Arc<SharedReplies>>,
    replies: Option<Arc<Budget>>,
) -> Arc<Connection> {
    let (source, sink) = socket::split(stream);
    let mut reader = Reader::new(source, cipher.is_some());
    let connection = Arc::new(Connection::new(sink, cipher, shared, replies));
    // The task holds only a weak reference, so that the connection is closed when no user of it is left.
    let owner = Arc::downgrade(&connection);
    tokio::spawn(std::future::poll_fn(move |cx| {
        let Some(connection) = owner.upgrade() else { return Poll::Ready(()) };
        connection.wake_at_need(cx);
        let lost = ready!(reader.poll(&connection, cx));
        connection.end(&lost);
        Poll::Ready(())
    }));
    connection
}

impl Reader {
    fn new(source: Source, is_encrypted: bool) -> Self {
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            source,
            sealed: is_encrypted.then(BytesMut::new),
            buffer: BytesMut::new(),
            direct: None,
            goes_on: false,
            look,
            silence: Silence::default(),
        }
    }

    /// Reads and hands out frames. Ready with the reason when the connection is lost.
    fn poll(&mut self, connection: &Connection, cx: &mut Context<'_>) -> Poll<ConnectionLoss> {
        loop {
            match self.poll_read(cx) {
                Poll::Ready(Ok(0)) => {
                    return Poll::Ready(ConnectionLoss::new("the peer closed the connection"));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(ConnectionLoss::new(error.to_string())),
                Poll::Pending => break,
            }
            self.silence.broken();
            if let Err(lost) = self.take_in(connection) {
                return Poll::Ready(lost);
            }
        }
        while self.look.poll_tick(cx).is_ready() {
            if let Err(lost) = connection.look_after(&mut self.silence) {
                return Poll::Ready(lost);
            }
        }
        connection.poll_unsent(cx)
    }

    /// Reads available bytes into the message or buffer where they belong. Returns how many bytes were read.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Some(Direct { message, left, .. }) = &mut self.direct {
            let read = ready!(pin!(self.source.read_buf(&mut message.limit(*left))).poll(cx))?;
            *left -= read;
            return Poll::Ready(Ok(read));
        }
        let into = self.sealed.as_mut().unwrap_or(&mut self.buffer);
        // If a frame has begun, room for it has been reserved already.
        if into.capacity() - into.len() < READ_BYTES / 4 {
            into.reserve(READ_BYTES);
        }
        let room = if self.goes_on { NEXT_BYTES } else { into.capacity() - into.len() };
        let read = ready!(pin!(self.source.read_buf(&mut into.limit(room))).poll(cx))?;
        self.goes_on = false;
        Poll::Ready(Ok(read))
    }

    /// Hands out all frames that have arrived completely.
    fn take_in(&mut self, connection: &Connection) -> Result<(), ConnectionLoss> {
        if let Some(Direct { header, message, .. }) = self.direct.take_if(|direct| direct.left == 0) {
            self.goes_on = !header.flags.has(Flags::LAST);
            connection.take_back(&header, message);
        }
        if self.direct.is_some() {
            return Ok(());
        }
        if let Some(sealed) = &mut self.sealed {
            connection.open(sealed, &mut self.buffer)?;
        }
        let unreadable = |error: FrameError| {
            ConnectionLoss::new(format!("the peer sent something that is not a frame: {error}"))
        };
        loop {
            if self.begin_direct(connection)? {
                return Ok(());
            }
            let Some(frame) = frame::decode(&mut self.buffer).map_err(unreadable)? else { return Ok(()) };
            if frame.header.id == 0 {
                return Err(ConnectionLoss::closed_by_peer(&frame.status()));
            }
            connection.hand_out(frame)?;
        }
    }

    /// Starts to read the rest of a begun frame directly into its message, if enough of it is missing. Returns whether it
    /// did. Encrypted frames are not read directly, because decryption copies them anyway.
    fn begin_direct(&mut self, connection: &Connection) -> Result<bool, ConnectionLoss> {
        if self.sealed.is_some() {
            return Ok(false);
        }
        let Some(begun) = frame::begun(&self.buffer) else { return Ok(false) };
        let came = &self.buffer[HEADER_BYTES..];
        let left = begun.body_bytes - came.len();
        if left < DIRECT_BYTES_MIN {
            return Ok(false);
        }
        let Some(mut message) = connection.lend(&begun)? else { return Ok(false) };
        message.extend_from_slice(came);
        self.buffer.clear();
        self.direct = Some(Direct { header: begun.header, message, left });
        Ok(true)
    }
}
