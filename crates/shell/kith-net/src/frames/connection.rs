//! One framed connection. Callers write their requests themselves; one task reads the replies for all of them.

use super::{
    ConnectionLoss,
    cipher::Cipher,
    reply::{PendingReply, ReplyFault, ReplyReceiver, no_memory},
    shared::SharedReplies,
    silence::{Look, Silence},
    socket::Sink,
};
use crate::Budget;
use bytes::{Buf, BytesMut};
use kith_types::ErrorCode;
use kith_wire::{
    Message,
    frame::{Flags, Frame, FrameError, FrameStart, Header, Op, SlotPlace, encode_slots},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    io,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use tonic::Status;

/// New requests are refused while more than this many bytes are unsent, because the peer does not read.
const UNSENT_BYTES_MAX: usize = 64 << 20;
/// An emptied buffer with a capacity above this size is freed.
const SPARE_BYTES: usize = 1 << 20;

/// An open connection. It is lost when the peer closes it, sends nothing for too long while it owes an answer, or sends
/// something that is not a frame.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Sink,
    /// Shared memory in which the bodies of long replies may lie.
    shared: Option<Arc<SharedReplies>>,
    /// The budget that long replies are charged to, from their first frame until the last reader has dropped them.
    replies: Option<Arc<Budget>>,
    /// Locked while a request is registered and written, and while a frame of a reply is handed out.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    /// The requests that wait for a reply, by request id.
    waiting: HashMap<u64, PendingReply>,
    /// Bytes that the socket has not accepted yet, encrypted if the connection uses TLS. Callers append to it; callers and
    /// the reading task write it to the socket.
    unsent: BytesMut,
    /// The TLS state, if the connection uses TLS.
    cipher: Option<Box<Cipher>>,
    /// The waker of the reading task. It is woken when bytes are left unsent, and when the connection is dropped.
    reader: Option<Waker>,
    /// Why the connection is lost; `None` while it is open.
    lost: Option<ConnectionLoss>,
}

impl Connection {
    /// Returns a connection that writes to `socket`. With a cipher it uses TLS.
    pub fn new(
        socket: Sink,
        cipher: Option<Cipher>,
        shared: Option<Arc<SharedReplies>>,
        replies: Option<Arc<Budget>>,
    ) -> Self {
        let state = State { cipher: cipher.map(Box::new), ..State::default() };
        Self { socket, shared, replies, state: Mutex::new(state) }
    }

    /// Why the connection is lost; `None` while it is open.
    pub fn lost(&self) -> Option<ConnectionLoss> {
        self.lock().lost.clone()
    }

    /// Registers a request and writes it.
    ///
    /// # Errors
    /// The connection is lost, too many bytes are unsent, or the message is too long.
    pub(super) fn request(
        self: &Arc<Self>,
        header: Header,
        body: &impl Message,
        reply: ReplyReceiver,
    ) -> Result<SentRequest, Status> {
        let mut state = self.lock();
        if let Some(lost) = &state.lost {
            return Err(lost.to_status());
        }
        if UNSENT_BYTES_MAX < state.unsent.len() {
            let message = "the peer does not read its requests";
            return Err(kith_wire::status(ErrorCode::Overloaded, message, "ask another replica"));
        }
        let id = state.last_id + 1;
        let shared = if self.shared.is_some() { Flags::SHARED } else { Flags::default() };
        let header = Header { id, flags: header.flags.with(shared), ..header };
        self.give_back(&mut state);
        state.put(|out| header.encode(body, out)).map_err(|error| {
            kith_wire::status(ErrorCode::BadRequest, error.to_string(), "ask for less at once")
        })?;
        state.last_id = id;
        state.waiting.insert(id, PendingReply::new(reply, self.replies.as_ref()));
        self.flush(&mut state);
        Ok(SentRequest { connection: Arc::clone(self), id, is_over: false })
    }

    /// Grants the peer `bytes` bytes of credit for the reply to request `id`.
    fn credit(&self, id: u64, bytes: u32) {
        let mut state = self.lock();
        if state.waiting.contains_key(&id) && state.lost.is_none() {
            self.give_back(&mut state);
            let put = state.put(|out| {
                Header::encode_credit(id, bytes, out);
                Ok(())
            });
            if put.is_ok() {
                self.flush(&mut state);
            }
        }
    }

    /// Queues a frame that returns the read slots of shared memory to the peer. It is sent together with the next frame.
    fn give_back(&self, state: &mut State) {
        let spent = self.shared.as_ref().map(|shared| shared.take_spent()).unwrap_or_default();
        if !spent.is_empty() {
            let put =
                state.put(|out| Header::request(0, Op::GiveBack).encode_bytes(&encode_slots(&spent), out));
            put.expect("a list of all slots is shorter than the longest message");
        }
    }

    /// Writes as much as the socket accepts now, and leaves the rest to the reading task.
    fn flush(&self, state: &mut State) {
        while !state.unsent.is_empty() {
            match self.socket.try_write(&state.unsent) {
                Ok(written) => state.unsent.advance(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // This includes failed writes: the reading task meets the same error and ends all waiting requests.
                Err(_) => break,
            }
        }
        if state.unsent.is_empty() {
            if SPARE_BYTES < state.unsent.capacity() {
                state.unsent = BytesMut::new();
            }
        } else if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }

    /// Registers the reading task to be woken when bytes are left unsent.
    pub(super) fn wake_at_need(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        // A waker that wakes the same task is kept, because this runs for every reply.
        if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
    }

    fn give_up(&self, id: u64) {
        let given_up = self.cancel(&mut self.lock(), id);
        drop(given_up);
    }

    /// Removes a request that nobody waits for any more, and tells the peer to cancel it.
    fn cancel(&self, state: &mut State, id: u64) -> Option<PendingReply> {
        let waiting = state.waiting.remove(&id)?;
        let header = Header::request(id, Op::Cancel);
        if state.lost.is_none() && state.put(|out| header.encode_bytes(&[], out)).is_ok() {
            self.flush(state);
        }
        Some(waiting)
    }

    /// Cancels a request and ends its reply with an error, because the budget has no memory for it.
    fn refuse(&self, mut state: MutexGuard<'_, State>, id: u64) {
        let waiting = self.cancel(&mut state, id);
        drop(state);
        if let Some(waiting) = waiting {
            waiting.end(Err(no_memory()));
        }
    }

    /// Decrypts received bytes if the connection uses TLS.
    pub(super) fn open(&self, sealed: &mut BytesMut, plain: &mut BytesMut) -> Result<(), ConnectionLoss> {
        let state = &mut *self.lock();
        match &mut state.cipher {
            Some(cipher) => cipher.open(sealed, plain, &mut state.unsent),
            None => Ok(()),
        }
    }

    /// Passes a frame of a reply to the request that waits for it.
    pub(super) fn hand_out(&self, frame: Frame) -> Result<(), ConnectionLoss> {
        let header = frame.header;
        // The body is read first, so that its slot is given back even if nobody waits for the reply.
        let shared = match (&self.shared, header.flags.has(Flags::SHARED), SlotPlace::decode(&frame.body)) {
            (_, false, _) => None,
            (Some(shared), true, Some(slot)) => Some(shared.body(slot)?),
            _ => {
                return Err(ConnectionLoss::new(
                    "the peer sent a body without a valid place in shared memory",
                ));
            }
        };
        let mut state = self.lock();
        // The peer may still answer a request that was cancelled.
        let Some(waiting) = state.waiting.get_mut(&header.id) else { return Ok(()) };
        let error = header.flags.has(Flags::ERROR).then(|| frame.status());
        if error.is_none() {
            let taken = match shared {
                Some(body) => waiting.take_shared(body, header.flags).map_err(ReplyFault::Lost),
                None => waiting.take(frame),
            };
            match taken {
                Ok(()) => {}
                Err(ReplyFault::Lost(lost)) => return Err(lost),
                Err(ReplyFault::NoMemory) => {
                    self.refuse(state, header.id);
                    return Ok(());
                }
            }
        }
        end_if_last(state, &header, error.map_or(Ok(()), Err));
        Ok(())
    }

    /// Returns the message that a frame continues, with room for the frame's body. The reader fills it and gives it back by
    /// [`Connection::take_back`] before another frame is handed out. Returns `None` if the frame is an error, if no request
    /// waits for it, or if the budget has no memory for it.
    pub(super) fn lend(&self, begun: &FrameStart) -> Result<Option<BytesMut>, ConnectionLoss> {
        let mut state = self.lock();
        let flags = begun.header.flags;
        let waiting = state.waiting.get_mut(&begun.header.id).filter(|_| !flags.has(Flags::ERROR));
        let Some(waiting) = waiting else { return Ok(None) };
        match waiting.lend(begun.body_bytes, flags) {
            Ok(message) => Ok(Some(message)),
            Err(ReplyFault::Lost(lost)) => Err(lost),
            Err(ReplyFault::NoMemory) => {
                self.refuse(state, begun.header.id);
                Ok(None)
            }
        }
    }

    /// Takes back a message that was lent, with the frame's body at its end.
    pub(super) fn take_back(&self, header: &Header, message: BytesMut) {
        let mut state = self.lock();
        // The caller may have given up in the meantime.
        let Some(waiting) = state.waiting.get_mut(&header.id) else { return };
        waiting.take_back(message, header.flags);
        end_if_last(state, header, Ok(()));
    }

    /// Asks a silent peer whether it is alive, or gives the connection up, as `silence` decides.
    ///
    /// # Errors
    /// [`ConnectionLoss`] if the peer has been silent for too long.
    pub(super) fn look_after(&self, silence: &mut Silence) -> Result<(), ConnectionLoss> {
        let mut state = self.lock();
        match silence.look(!state.waiting.is_empty()) {
            Look::Wait => {}
            Look::Ask => {
                let id = state.last_id + 1;
                state.last_id = id;
                let header = Header::request(id, Op::Alive);
                let put = state.put(|out| header.encode_bytes(&[], out));
                put.map_err(|error| ConnectionLoss::new(error.to_string()))?;
                self.flush(&mut state);
            }
            Look::GiveUp => {
                return Err(ConnectionLoss::new("the peer owes an answer and has been silent for too long"));
            }
        }
        Ok(())
    }

    /// Writes unsent bytes as the socket accepts them. Ready only when the connection is lost.
    pub(super) fn poll_unsent(&self, cx: &mut Context<'_>) -> Poll<ConnectionLoss> {
        let mut state = self.lock();
        loop {
            if state.unsent.is_empty() {
                return Poll::Pending;
            }
            match self.socket.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(ConnectionLoss::new(error.to_string())),
                Poll::Pending => return Poll::Pending,
            }
            match self.socket.try_write(&state.unsent) {
                Ok(written) => state.unsent.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(ConnectionLoss::new(error.to_string())),
            }
        }
    }

    /// Marks the connection as lost and ends all waiting requests with that reason.
    pub(super) fn end(&self, lost: &ConnectionLoss) {
        let mut state = self.lock();
        state.lost = Some(lost.clone());
        state.unsent = BytesMut::new();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for waiting in waiting.into_values() {
            waiting.end(Err(lost.to_status()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Ends a request after the last frame of its reply.
fn end_if_last(mut state: MutexGuard<'_, State>, header: &Header, ended: Result<(), Status>) {
    if header.flags.has(Flags::LAST)
        && let Some(waiting) = state.waiting.remove(&header.id)
    {
        drop(state);
        waiting.end(ended);
    }
}

impl State {
    /// Appends what `encode` writes to the unsent bytes, encrypted if the connection uses TLS.
    fn put(
        &mut self,
        encode: impl FnOnce(&mut BytesMut) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        let Some(cipher) = &mut self.cipher else { return encode(&mut self.unsent) };
        let mut plain = BytesMut::new();
        encode(&mut plain)?;
        cipher.seal(&plain, &mut self.unsent);
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
    }
}

/// A request that was sent. Dropping it before its reply has ended cancels the request.
#[derive(Debug)]
pub(super) struct SentRequest {
    connection: Arc<Connection>,
    id: u64,
    is_over: bool,
}

impl SentRequest {
    /// Grants the peer `bytes` more bytes of credit for the reply.
    pub fn credit(&self, bytes: u32) {
        self.connection.credit(self.id, bytes);
    }

    /// Marks the reply as ended, so that dropping this does not cancel the request.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Whether the reply has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.give_up(self.id);
        }
    }
}
