//! The unsent replies of a connection: encoded bytes, and long replies that wait for room.

mod long;
#[cfg(test)]
mod tests;

use super::{EncodedMessage, End, FrameReply, Piece, running::RequestResult};
use crate::{Charge, frames::ReplyMemory};
use bytes::{Buf, Bytes, BytesMut};
use kith_types::ErrorCode;
use kith_wire::{
    InSlices, MESSAGE_BYTES_MAX, Message,
    frame::{Flags, FrameError, Header, SlotPlace, decode_slots},
    v1,
};
use long::{Long, PART_BYTES};
use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    vec,
};
use tokio::io::AsyncWrite;
use tonic::Status;

/// With more unsent bytes than this, nothing more is read or answered: a peer that does not read its replies only delays
/// itself.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// The same limit for bytes of long replies. The longest of them does not count, so that small replies need not wait for
/// it.
const LONG_BYTES_MAX: usize = 8 << 20;
/// A shorter message in slices is copied into one buffer, which costs less than sending each slice separately. A shorter
/// part is sent through the socket even if there is shared memory.
const COPIED_BYTES_MAX: usize = 32 << 10;
/// The most slices of one write: usually a header and the slices of a part.
const SLICES_MAX: usize = 4;
/// An emptied buffer with a capacity above this size is freed.
const SPARE_BYTES: usize = 1 << 20;

/// The unsent replies of one connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Bytes that go first. Parts of long replies are sent from where they were made, without a copy.
    first: VecDeque<Bytes>,
    /// Encoded frames that follow `first`.
    bytes: BytesMut,
    /// Long replies, whose frames are sent in turns.
    long: VecDeque<Long>,
    /// Shared memory for the bodies of long replies, if the peer has mapped it.
    memory: Option<ReplyMemory>,
    /// Frames of incomplete messages whose bodies lie in shared memory. They are sent together with the next frame, because
    /// nobody waits for them alone.
    held: BytesMut,
    /// The number of bytes sent so far.
    sent: u64,
    /// The number of bytes put into shared memory so far.
    shared: u64,
}

impl Outbox {
    /// Whether the peer must read before anything more is done for it.
    pub fn is_full(&self) -> bool {
        let long = || self.long.iter().map(|long| long.bytes);
        let longest = long().max().unwrap_or(0);
        UNSENT_BYTES_MAX < self.encoded() || LONG_BYTES_MAX < long().sum::<usize>() - longest
    }

    /// Whether everything was sent.
    pub fn is_empty(&self) -> bool {
        self.encoded() == 0 && self.long.is_empty()
    }

    /// The number of bytes sent so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The number of bytes passed to the peer so far, through the socket and through shared memory.
    pub fn given(&self) -> u64 {
        self.sent + self.shared
    }

    /// The number of bytes of frames that are encoded and not sent.
    pub fn encoded(&self) -> usize {
        self.first.iter().map(Bytes::len).sum::<usize>() + self.bytes.len()
    }

    /// Adds the answer to a request.
    pub fn answer(&mut self, request: &Header, answer: RequestResult) {
        let (reply, charge) = match answer {
            Ok(charged) => charged,
            Err(status) => return self.error(request, &status),
        };
        match reply {
            FrameReply::Evaluate(reply) => self.message(request, &reply, charge),
            FrameReply::Encoded(body) => self.slices(request, body, End::Reply, charge),
            FrameReply::Ping(reply) => self.put(&request.reply(Flags::LAST), &reply),
            FrameReply::Query(pieces) => self.pieces(request, pieces, charge),
            FrameReply::MultiGet(reply) => self.records(request, reply, charge),
            FrameReply::Compute(reply) => self.records(request, reply, charge),
            FrameReply::Aggregate(reply) => self.message(request, &reply, charge),
            FrameReply::Write(reply) => self.message(request, &reply, charge),
            FrameReply::Deliver(reply) => self.message(request, &reply, charge),
            FrameReply::Database(reply) => self.message(request, &reply, charge),
            FrameReply::Pieces(_) => unreachable!("replies by credit come piece by piece"),
        }
    }

    /// Adds the next piece of a reply, or the error that ends it.
    pub fn piece(&mut self, request: &Header, piece: Result<(Piece, Charge), Status>) {
        let (piece, charge) = match piece {
            Ok(charged) => charged,
            Err(status) => {
                self.cancel(request.id);
                return self.error(request, &status);
            }
        };
        if let Some(before) = self.long.iter_mut().find(|long| long.request.id == request.id) {
            return before.push(piece, charge);
        }
        self.slices(request, piece.body, piece.end, charge);
    }

    /// Drops the unsent rest of a long reply.
    pub fn cancel(&mut self, id: u64) {
        self.long.retain(|long| long.request.id != id);
    }

    /// Adds an empty reply.
    pub fn acknowledge(&mut self, request: &Header) {
        self.put(&request.reply(Flags::LAST), &());
    }

    /// Offers shared memory to the peer, or answers why there is none.
    pub fn share(&mut self, request: &Header) {
        if self.memory.is_some() {
            let (message, help) =
                ("shared memory was already offered to this connection", "use a client of this release");
            let status = kith_wire::status(ErrorCode::BadRequest, message, help);
            return self.error(request, &status);
        }
        self.memory = ReplyMemory::new();
        let Some(memory) = &self.memory else {
            let message = "no shared memory is available: enough connections have it, or the system does not support it";
            let help = "long replies are sent through the socket";
            let status = kith_wire::status(ErrorCode::Overloaded, message, help);
            return self.error(request, &status);
        };
        let offer = memory.offer().encode();
        request.reply(Flags::LAST).encode_bytes(&offer, self.out()).expect("an offer is short");
    }

    /// Takes back slots of shared memory. Returns `false` if they were not in use.
    #[must_use]
    pub fn take_back(&mut self, slots: &[u8]) -> bool {
        let (Some(memory), Some(mut slots)) = (&mut self.memory, decode_slots(slots)) else { return false };
        slots.all(|slot| memory.take_back(slot))
    }

    /// Adds an error reply.
    pub fn error(&mut self, request: &Header, status: &Status) {
        request.reply(Flags::LAST).encode_error(status, self.out());
    }

    /// Adds a reply of one message.
    fn message(&mut self, request: &Header, message: &impl Message, charge: Charge) {
        match message.encoded_len() {
            PART_BYTES..=MESSAGE_BYTES_MAX => {
                let message = [message.encode_to_vec().into()];
                self.long.push_back(Long::of(request, message, End::Reply, charge));
            }
            _ => self.put(&request.reply(Flags::LAST), message),
        }
    }

    /// Adds a reply of one message that consists mostly of records.
    fn records(&mut self, request: &Header, reply: impl InSlices, charge: Charge) {
        if reply.encoded_len() < COPIED_BYTES_MAX {
            self.put(&request.reply(Flags::LAST), &reply);
        } else {
            self.slices(request, reply.into_slices(), End::Reply, charge);
        }
    }

    /// Adds an encoded message that lies in several slices.
    fn slices(&mut self, request: &Header, body: EncodedMessage, end: End, charge: Charge) {
        match body.iter().map(Bytes::len).sum() {
            COPIED_BYTES_MAX..=MESSAGE_BYTES_MAX => {
                self.long.push_back(Long::of(request, body, end, charge));
            }
            _ => {
                let header = request.reply(end.flags());
                if let Err(error) = header.encode_slices(&body, self.out()) {
                    self.too_long(&header, &error);
                }
            }
        }
    }

    fn pieces(&mut self, request: &Header, mut pieces: vec::IntoIter<v1::QueryReply>, charge: Charge) {
        if let [_] = pieces.as_slice()
            && let Some(only) = pieces.next()
        {
            return self.message(request, &only, charge);
        }
        self.long.push_back(Long::of_pieces(request, pieces, charge));
    }

    /// The buffer for the next frame, behind the frames that were held for it.
    fn out(&mut self) -> &mut BytesMut {
        self.bytes.unsplit(self.held.split());
        &mut self.bytes
    }

    fn put(&mut self, header: &Header, body: &impl Message) {
        if let Err(error) = header.encode(body, self.out()) {
            self.too_long(header, &error);
        }
    }

    fn too_long(&mut self, header: &Header, error: &FrameError) {
        let help = "ask for a page of it";
        let status = kith_wire::status(ErrorCode::OutOfRange, error.to_string(), help);
        header.encode_error(&status, self.out());
    }

    /// Encodes the next frame of the long replies if little else waits. Frames that are added later are sent after it.
    fn fill(&mut self) {
        if PART_BYTES <= self.encoded() {
            return;
        }
        let Some(mut long) = self.long.pop_front() else { return };
        let (flags, body) = long.next();
        let bytes = body.iter().map(Bytes::len).sum();
        const SHORT: &str = "a part is shorter than a message may be";
        if let Some(slot) = self.put_shared(&long.request, &body, bytes) {
            let header = long.request.reply(flags.with(Flags::SHARED));
            let out = if flags.has(Flags::PART) { &mut self.held } else { self.out() };
            header.encode_bytes(&slot.encode(), out).expect(SHORT);
        } else {
            long.request.reply(flags).encode_head(bytes, self.out()).expect(SHORT);
            self.first.push_back(self.bytes.split().freeze());
            self.first.extend(body);
        }
        if !long.is_spent() {
            self.long.push_back(long);
        }
    }

    /// Puts a part into shared memory, if the peer reads there and the part is long enough.
    fn put_shared(&mut self, request: &Header, body: &[Bytes], bytes: usize) -> Option<SlotPlace> {
        if bytes < COPIED_BYTES_MAX || !request.flags.has(Flags::SHARED) {
            return None;
        }
        let slot = self.memory.as_mut()?.put(body)?;
        self.shared += bytes as u64;
        metrics::counter!("kith_server_shared_bytes_total").increment(bytes as u64);
        Some(slot)
    }

    /// Sends the encoded bytes and one frame of the long replies. It is ready once these are sent, even if more long frames
    /// are left, so that requests are read in between. It is pending while the socket accepts no more.
    ///
    /// # Errors
    /// Errors of the socket.
    pub fn poll_send(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.fill();
        loop {
            if self.encoded() == 0 {
                if SPARE_BYTES < self.bytes.capacity() {
                    self.bytes = BytesMut::new();
                }
                // Over TLS, bytes that were accepted are not sent yet.
                return Pin::new(&mut *stream).poll_flush(cx);
            }
            let written = match self.first.is_empty() {
                true => Pin::new(&mut *stream).poll_write(cx, &self.bytes),
                false => {
                    let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                    slices
                        .iter_mut()
                        .zip(&self.first)
                        .for_each(|(slice, bytes)| *slice = IoSlice::new(bytes));
                    let count = self.first.len().min(SLICES_MAX);
                    Pin::new(&mut *stream).poll_write_vectored(cx, &slices[..count])
                }
            };
            match std::task::ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.advance(written),
            }
        }
    }

    /// Removes `written` sent bytes.
    fn advance(&mut self, mut written: usize) {
        self.sent += written as u64;
        while let Some(bytes) = self.first.front_mut() {
            let sent = written.min(bytes.len());
            bytes.advance(sent);
            written -= sent;
            if !bytes.is_empty() {
                return;
            }
            self.first.pop_front();
        }
        self.bytes.advance(written);
    }
}
