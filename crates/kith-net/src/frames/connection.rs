//! One framed connection: senders write for themselves, one task reads for all.

use super::{
    Lost,
    cipher::Cipher,
    parts::{PartMessage, Parts},
    reader::Reader,
    shared::SharedReplies,
    silence::{Look, Silence},
    socket::{self, Sink, Socket},
};
use crate::{Budget, Charge};
use bytes::{Buf, Bytes, BytesMut};
use kith_types::ErrorCode;
use kith_wire::{
    MESSAGE_BYTES_MAX, Message, Rope,
    frame::{Begun, Flags, Frame, FrameError, Header, Op, SlotPlace, encode_slots},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::HashMap,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Unsent bytes above which more requests are refused: the peer does not read.
const UNSENT_BYTES_MAX: usize = 64 << 20;
/// So much room is made when the first part of a whole reply comes: what a node's share of a large read takes.
/// Not of a stream's: its messages are shorter, and many lie here where nobody reads them.
const WHOLE_BYTES_EXPECTED: usize = 2 << 20;
/// Replies up to this size are not charged.
const UNCHARGED_BYTES: usize = 16 << 10;
/// An emptied buffer above this size is given back.
const SPARE_BYTES: usize = 1 << 20;

/// The pieces of a reply, first to last.
pub(super) type Pieces = Vec<Rope>;

/// An open connection. Ends when the peer closes it, falls silent while it owes an answer, or sends what is no frame.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Sink,
    /// Where bodies of long replies may lie.
    shared: Option<Arc<SharedReplies>>,
    /// What long replies are charged to while they come, and until nobody has them any more.
    replies: Option<Arc<Budget>>,
    /// Locked to register a request and write it, and to hand out a reply.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    /// By request id.
    waiting: HashMap<u64, Waiting>,
    /// What the socket did not take at once, encrypted where it shall be. Written by senders, emptied by whoever can.
    unsent: BytesMut,
    /// Of a connection over TLS.
    cipher: Option<Box<Cipher>>,
    /// The reading task: to be woken when bytes are left unsent, and when nobody needs the connection any more.
    reader: Option<Waker>,
    /// Why it is over.
    lost: Option<Lost>,
}

#[derive(Debug)]
struct Waiting {
    /// What has come of a message that goes on, before what lies in `part`.
    before: Rope,
    /// What has come of it last, where that follows its header.
    part: BytesMut,
    /// For `part`, and what came before it through the socket.
    charge: Option<Charge>,
    reply: Replying,
}

/// Why a frame of a reply is not taken in.
enum Untaken {
    /// The connection cannot go on.
    Lost(Lost),
    /// There is no memory for the reply.
    NoMemory,
}

impl From<Lost> for Untaken {
    fn from(lost: Lost) -> Self {
        Untaken::Lost(lost)
    }
}

/// Who waits for a reply.
#[derive(Debug)]
enum Replying {
    /// For all of it.
    Whole { pieces: Pieces, told: oneshot::Sender<Result<Pieces, Status>> },
    /// For each message of it. Bounded by the credit that was given.
    Parts(mpsc::UnboundedSender<PartMessage>),
}

impl Connection {
    /// Starts the task that reads; it ends with the connection. With a cipher it is TLS that is spoken on the stream.
    pub fn start(
        stream: Socket,
        cipher: Option<Cipher>,
        shared: Option<Arc<SharedReplies>>,
        replies: Option<Arc<Budget>>,
    ) -> Arc<Self> {
        let (source, socket) = socket::split(stream);
        let mut reader = Reader::new(source, cipher.is_some());
        let state = State { cipher: cipher.map(Box::new), ..State::default() };
        let connection = Arc::new(Self { socket, shared, replies, state: Mutex::new(state) });
        // Not an owner: a connection that nobody can use any more is closed.
        let owner = Arc::downgrade(&connection);
        tokio::spawn(std::future::poll_fn(move |cx| {
            let Some(connection) = owner.upgrade() else { return Poll::Ready(()) };
            connection.wake_at_need(cx);
            let lost = std::task::ready!(reader.poll(&connection, cx));
            connection.end(&lost);
            Poll::Ready(())
        }));
        connection
    }

    /// Why it is over, if it is.
    pub fn lost(&self) -> Option<Lost> {
        self.lock().lost.clone()
    }

    /// Sends a request: encoded and written here, without another task. Dropping the call cancels it.
    ///
    /// # Errors
    /// If the connection is over, too much is unsent or the message is too long.
    pub fn send(self: &Arc<Self>, op: Op, deadline_us: u32, body: &impl Message) -> Result<Call, Status> {
        let (told, receiver) = oneshot::channel();
        let header = Header { deadline_us, ..Header::request(0, op) };
        let id = self.request(header, body, Replying::Whole { pieces: Pieces::new(), told })?;
        Ok(Call { connection: Arc::clone(self), id, receiver, is_over: false })
    }

    /// The same for a reply that may come in parts, as they are taken.
    ///
    /// # Errors
    /// As [`Connection::send`].
    pub fn send_credited(
        self: &Arc<Self>,
        op: Op,
        deadline_us: u32,
        body: &impl Message,
    ) -> Result<Parts, Status> {
        let (told, receiver) = mpsc::unbounded_channel();
        let header = Header { deadline_us, ..Header::request(0, op) }.credited();
        let id = self.request(header, body, Replying::Parts(told))?;
        Ok(Parts::new(Arc::clone(self), id, receiver))
    }

    /// Registers and writes a request; its id.
    fn request(&self, header: Header, body: &impl Message, reply: Replying) -> Result<u64, Status> {
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
        let charge = self.replies.as_ref().map(Budget::charge);
        state.waiting.insert(id, Waiting { before: Rope::default(), part: BytesMut::new(), charge, reply });
        self.flush(&mut state);
        Ok(id)
    }

    /// Lets so many bytes more of a reply come.
    pub(super) fn credit(&self, id: u64, bytes: u32) {
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

    /// Lets slots of shared memory be used again, with what is sent next.
    fn give_back(&self, state: &mut State) {
        let spent = self.shared.as_ref().map(|shared| shared.take_spent()).unwrap_or_default();
        if !spent.is_empty() {
            let put =
                state.put(|out| Header::request(0, Op::GiveBack).encode_bytes(&encode_slots(&spent), out));
            put.expect("as many slots as there are make no long message");
        }
    }

    /// Writes what the socket takes now, and leaves the rest to the reading task.
    fn flush(&self, state: &mut State) {
        while !state.unsent.is_empty() {
            match self.socket.try_write(&state.unsent) {
                Ok(written) => state.unsent.advance(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Also when it failed: the reading task finds out, and tells everybody who waits.
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

    fn wake_at_need(&self, cx: &Context<'_>) {
        let mut state = self.lock();
        // Left in place if it would wake the same task: this runs for every reply.
        if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            state.reader = Some(cx.waker().clone());
        }
    }

    pub(super) fn give_up(&self, id: u64) {
        let given_up = self.cancel(&mut self.lock(), id);
        drop(given_up);
    }

    /// Nobody waits for this reply any more: the peer is told so.
    fn cancel(&self, state: &mut State, id: u64) -> Option<Waiting> {
        let waiting = state.waiting.remove(&id)?;
        let header = Header::request(id, Op::Cancel);
        if state.lost.is_none() && state.put(|out| header.encode_bytes(&[], out)).is_ok() {
            self.flush(state);
        }
        Some(waiting)
    }

    /// Ends a reply for which there is no memory.
    fn refuse(&self, mut state: MutexGuard<'_, State>, id: u64) {
        let waiting = self.cancel(&mut state, id);
        drop(state);
        if let Some(waiting) = waiting {
            waiting.reply.end(Err(no_memory()));
        }
    }

    /// Decrypts what came, if it is encrypted.
    pub(super) fn open(&self, sealed: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Lost> {
        let state = &mut *self.lock();
        match &mut state.cipher {
            Some(cipher) => cipher.open(sealed, plain, &mut state.unsent),
            None => Ok(()),
        }
    }

    /// Gives a reply's frame to who waits for it.
    pub(super) fn hand_out(&self, frame: Frame) -> Result<(), Lost> {
        let header = frame.header;
        // Before anything else: it is given back if nobody waits for it.
        let shared = match (&self.shared, header.flags.has(Flags::SHARED), SlotPlace::decode(&frame.body)) {
            (_, false, _) => None,
            (Some(shared), true, Some(place)) => Some(shared.body(place)?),
            _ => return Err(Lost::new("the peer sent a body that lies nowhere")),
        };
        let mut state = self.lock();
        // A cancelled request may still be answered.
        let Some(waiting) = state.waiting.get_mut(&header.id) else { return Ok(()) };
        let error = header.flags.has(Flags::ERROR).then(|| frame.status());
        if error.is_none() {
            let taken = match shared {
                Some(body) => waiting.take_shared(body, header.flags).map_err(Untaken::Lost),
                None => waiting.take(frame),
            };
            match taken {
                Ok(()) => {}
                Err(Untaken::Lost(lost)) => return Err(lost),
                Err(Untaken::NoMemory) => {
                    self.refuse(state, header.id);
                    return Ok(());
                }
            }
        }
        end_if_last(state, &header, error.map_or(Ok(()), Err));
        Ok(())
    }

    /// What has come of the message that a frame is of, with room for the frame's body: to be filled, and brought back by
    /// [`Connection::take_back`] before another frame is handed out. `None` if it is an error, or nobody waits for it.
    pub(super) fn lend(&self, begun: &Begun) -> Result<Option<BytesMut>, Lost> {
        let mut state = self.lock();
        let flags = begun.header.flags;
        let waiting = state.waiting.get_mut(&begun.header.id).filter(|_| !flags.has(Flags::ERROR));
        let Some(waiting) = waiting else { return Ok(None) };
        match waiting.make_room(begun.body_bytes, flags) {
            Ok(()) => Ok(Some(std::mem::take(&mut waiting.part))),
            Err(Untaken::Lost(lost)) => Err(lost),
            Err(Untaken::NoMemory) => {
                self.refuse(state, begun.header.id);
                Ok(None)
            }
        }
    }

    /// The message that was lent, the frame's body at its end.
    pub(super) fn take_back(&self, header: &Header, message: BytesMut) {
        let mut state = self.lock();
        // Given up meanwhile.
        let Some(waiting) = state.waiting.get_mut(&header.id) else { return };
        waiting.part = message;
        waiting.grown(header.flags);
        end_if_last(state, header, Ok(()));
    }

    /// Asks the peer whether it is there, or says that it is not, as `silence` finds.
    pub(super) fn look_after(&self, silence: &mut Silence) -> Result<(), Lost> {
        let mut state = self.lock();
        match silence.look(!state.waiting.is_empty()) {
            Look::Wait => {}
            Look::Ask => {
                let id = state.last_id + 1;
                state.last_id = id;
                let header = Header::request(id, Op::Alive);
                let put = state.put(|out| header.encode_bytes(&[], out));
                put.map_err(|error| Lost::new(error.to_string()))?;
                self.flush(&mut state);
            }
            Look::GiveUp => return Err(Lost::new("the peer owes an answer and is silent")),
        }
        Ok(())
    }

    /// Writes what was left unsent, as the socket takes it; ready when it is over.
    pub(super) fn poll_unsent(&self, cx: &mut Context<'_>) -> Poll<Lost> {
        let mut state = self.lock();
        loop {
            if state.unsent.is_empty() {
                return Poll::Pending;
            }
            match self.socket.poll_write_ready(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Lost::new(error.to_string())),
                Poll::Pending => return Poll::Pending,
            }
            match self.socket.try_write(&state.unsent) {
                Ok(written) => state.unsent.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Lost::new(error.to_string())),
            }
        }
    }

    fn end(&self, lost: &Lost) {
        let mut state = self.lock();
        state.lost = Some(lost.clone());
        state.unsent = BytesMut::new();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for waiting in waiting.into_values() {
            waiting.reply.end(Err(lost.to_status()));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Tells who waits that it is over, after the last frame.
fn end_if_last(mut state: MutexGuard<'_, State>, header: &Header, ended: Result<(), Status>) {
    if header.flags.has(Flags::LAST)
        && let Some(waiting) = state.waiting.remove(&header.id)
    {
        drop(state);
        waiting.reply.end(ended);
    }
}

impl State {
    /// Takes what `encode` writes among the bytes to send.
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

impl Waiting {
    /// Takes in a frame of the reply: a message, or a part of one.
    fn take(&mut self, frame: Frame) -> Result<(), Untaken> {
        let flags = frame.header.flags;
        if self.before.is_empty() && self.part.is_empty() && !flags.has(Flags::PART) {
            self.pay(frame.body.len())?;
            let body = self.paid(frame.body);
            self.reply.message(body.into(), flags.has(Flags::LAST));
            return Ok(());
        }
        self.make_room(frame.body.len(), flags)?;
        self.part.extend_from_slice(&frame.body);
        self.grown(flags);
        Ok(())
    }

    /// Takes in a body of the reply that lies in shared memory.
    fn take_shared(&mut self, body: Bytes, flags: Flags) -> Result<(), Lost> {
        self.check_length(body.len())?;
        let part = self.end_part();
        self.before.push(part);
        self.before.push(body);
        self.grown(flags);
        Ok(())
    }

    fn check_length(&self, more: usize) -> Result<(), Lost> {
        match self.before.len() + self.part.len() + more {
            0..=MESSAGE_BYTES_MAX => Ok(()),
            _ => Err(Lost::new("the peer sent a message longer than any may be")),
        }
    }

    /// For a message, or a part of one, of so many bytes.
    fn make_room(&mut self, bytes: usize, flags: Flags) -> Result<(), Untaken> {
        self.check_length(bytes)?;
        self.pay(bytes)?;
        let is_first = self.before.is_empty() && self.part.is_empty() && flags.has(Flags::PART);
        let is_of_whole = matches!(self.reply, Replying::Whole { .. });
        self.part.reserve(if is_first && is_of_whole { bytes.max(WHOLE_BYTES_EXPECTED) } else { bytes });
        Ok(())
    }

    /// Charges what came last and so many bytes more.
    fn pay(&mut self, more: usize) -> Result<(), Untaken> {
        let bytes = self.part.len() + more;
        let is_paid = |charge: &mut Charge| bytes <= UNCHARGED_BYTES || charge.grow_to(bytes);
        if self.charge.as_mut().is_none_or(is_paid) { Ok(()) } else { Err(Untaken::NoMemory) }
    }

    /// Bytes that keep what was charged for them.
    fn paid(&mut self, bytes: Bytes) -> Bytes {
        match &mut self.charge {
            Some(charge) if !charge.is_empty() => charge.take().pay_for(bytes),
            _ => bytes,
        }
    }

    fn end_part(&mut self) -> Bytes {
        let part = std::mem::take(&mut self.part).freeze();
        self.paid(part)
    }

    /// After a part has come to the message, which may be whole now.
    fn grown(&mut self, flags: Flags) {
        if !flags.has(Flags::PART) {
            let part = self.end_part();
            self.before.push(part);
            self.reply.message(std::mem::take(&mut self.before), flags.has(Flags::LAST));
        }
    }
}

impl Replying {
    fn message(&mut self, body: Rope, is_last: bool) {
        match self {
            Replying::Whole { pieces, .. } => pieces.push(body),
            // Nobody listening is fine, here as below.
            Replying::Parts(told) => drop(told.send(Ok((body, is_last)))),
        }
    }

    /// No more of it comes.
    fn end(self, ended: Result<(), Status>) {
        match (self, ended) {
            (Replying::Whole { pieces, told }, ended) => drop(told.send(ended.map(|()| pieces))),
            (Replying::Parts(told), Err(status)) => drop(told.send(Err(status))),
            // The last message has told so.
            (Replying::Parts(_), Ok(())) => {}
        }
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

/// What a caller is told whose reply does not fit into the memory for replies.
fn no_memory() -> Status {
    let message = "replies that are being gathered take all the memory that this process has for them";
    let help = "try again in a moment, ask for less at once, or raise `reply-memory`";
    kith_wire::status(ErrorCode::Overloaded, message, help)
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Call {
    connection: Arc<Connection>,
    id: u64,
    receiver: oneshot::Receiver<Result<Pieces, Status>>,
    is_over: bool,
}

impl Future for Call {
    type Output = Result<Pieces, Status>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let told = std::task::ready!(Pin::new(&mut self.receiver).poll(cx));
        self.is_over = true;
        // The sender lives as long as the connection keeps the request.
        Poll::Ready(told.unwrap_or_else(|_| Err(Status::internal("a request was forgotten"))))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.is_over {
            self.connection.give_up(self.id);
        }
    }
}
