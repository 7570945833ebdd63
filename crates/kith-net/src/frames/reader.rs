//! What comes over a framed connection: read, decrypted where it is encrypted, and handed out frame by frame.

use super::{
    Lost,
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

/// How often a connection that owes an answer is looked after.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// What one read takes at the most, unless a longer frame has begun.
const READ_BYTES: usize = 64 << 10;
/// A frame is read to where its body will lie if at least so much of it is to come; less is copied there.
const DIRECT_BYTES_MIN: usize = 16 << 10;
/// What one read takes where such a frame is likely to begin: its header, and little that must be copied.
const NEXT_BYTES: usize = 2 << 10;

/// What a connection's task owns.
struct Reader {
    source: Source,
    /// What came of a connection over TLS and is not decrypted yet.
    sealed: Option<BytesMut>,
    buffer: BytesMut,
    /// The frame that is coming, if it is read to where it will lie.
    direct: Option<Direct>,
    /// Whether the frame that came last was such a one and its reply goes on, so that another is likely to come.
    goes_on: bool,
    look: Interval,
    silence: Silence,
}

/// A frame of a long reply that is coming.
struct Direct {
    header: Header,
    /// Its message as far as it has come, lent by the connection.
    message: BytesMut,
    /// Bytes of the body that are to come.
    left: usize,
}

/// Starts the task that reads from a connection; it ends with the connection. With a cipher, the stream carries TLS.
pub(super) fn start(
    stream: Socket,
    cipher: Option<Cipher>,
    shared: Option<Arc<SharedReplies>>,
    replies: Option<Arc<Budget>>,
) -> Arc<Connection> {
    let (source, sink) = socket::split(stream);
    let mut reader = Reader::new(source, cipher.is_some());
    let connection = Arc::new(Connection::new(sink, cipher, shared, replies));
    // Not an owner: a connection that nobody can use any more is closed.
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

    /// Ends with the reason why the connection is over.
    fn poll(&mut self, connection: &Connection, cx: &mut Context<'_>) -> Poll<Lost> {
        loop {
            match self.poll_read(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Lost::new("the peer closed the connection")),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Lost::new(error.to_string())),
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

    /// Reads what is there, to where it belongs; how much it was.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Some(Direct { message, left, .. }) = &mut self.direct {
            let read = ready!(pin!(self.source.read_buf(&mut message.limit(*left))).poll(cx))?;
            *left -= read;
            return Poll::Ready(Ok(read));
        }
        let into = self.sealed.as_mut().unwrap_or(&mut self.buffer);
        // A frame that has begun has its room already.
        if into.capacity() - into.len() < READ_BYTES / 4 {
            into.reserve(READ_BYTES);
        }
        let room = if self.goes_on { NEXT_BYTES } else { into.capacity() - into.len() };
        let read = ready!(pin!(self.source.read_buf(&mut into.limit(room))).poll(cx))?;
        self.goes_on = false;
        Poll::Ready(Ok(read))
    }

    /// Hands out whole replies.
    fn take_in(&mut self, connection: &Connection) -> Result<(), Lost> {
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
        let unreadable = |error: FrameError| Lost::new(format!("the peer sent what is no frame: {error}"));
        loop {
            if self.begin_direct(connection)? {
                return Ok(());
            }
            let Some(frame) = frame::decode(&mut self.buffer).map_err(unreadable)? else { return Ok(()) };
            if frame.header.id == 0 {
                return Err(Lost::told(&frame.status()));
            }
            connection.hand_out(frame)?;
        }
    }

    /// Whether the rest of the frame that has begun is read to where it will lie. Not of what is encrypted: that is copied as it is decrypted.
    fn begin_direct(&mut self, connection: &Connection) -> Result<bool, Lost> {
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
