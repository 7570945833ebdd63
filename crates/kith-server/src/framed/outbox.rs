//! What a connection has still to send: encoded bytes, and replies in pieces that wait for room.

use super::{Piece, Reply};
use bytes::{Buf, Bytes, BytesMut};
use kith_wire::{
    MESSAGE_BYTES_MAX, Message,
    frame::{Flags, Header},
    v1,
};
use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll},
    vec,
};
use tokio::io::AsyncWrite;
use tonic::{Code, Status};

/// Above so many unsent bytes nothing more is read or answered: a peer that does not read its replies waits for itself.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of long replies that may wait besides the longest of them, for which small ones must not wait: as above.
const LONG_BYTES_MAX: usize = 8 << 20;
/// A longer message goes in parts of this size, which take turns with those of other replies. What a link of 10 Gbit/s
/// carries in 0.1 ms; the cost of a frame's header and of a turn is nothing beside it.
const PART_BYTES: usize = 128 << 10;
/// An emptied buffer above this size is given back.
const SPARE_BYTES: usize = 1 << 20;

/// Unsent replies of one connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: BytesMut,
    /// Replies in several frames; they take turns.
    long: VecDeque<Long>,
}

/// A reply that goes in several frames.
#[derive(Debug)]
struct Long {
    request: Header,
    /// Messages of a reply in pieces that are not encoded yet.
    pieces: vec::IntoIter<v1::QueryReply>,
    /// Pieces that came while one before them was on its way.
    behind: VecDeque<Piece>,
    /// What is left of the message that is on its way.
    message: Bytes,
    /// Whether it is the last of its reply.
    is_last: bool,
    /// Bytes that are left, encoded or not.
    bytes: usize,
}

impl Long {
    /// The next frame's flags and body; the last one is flagged so.
    fn next(&mut self) -> (Flags, Bytes) {
        if self.message.is_empty() {
            if let Some(piece) = self.pieces.next() {
                self.message = piece.encode_to_vec().into();
                self.is_last = self.pieces.as_slice().is_empty();
            } else if let Some(piece) = self.behind.pop_front() {
                self.message = piece.body;
                self.is_last = piece.is_last;
            }
        }
        let body = self.message.split_to(self.message.len().min(PART_BYTES));
        self.bytes -= body.len();
        let flags = match (self.message.is_empty(), self.is_last) {
            (false, _) => Flags::PART,
            (true, false) => Flags::default(),
            (true, true) => Flags::LAST,
        };
        (flags, body)
    }

    /// Whether all of it that is here is on its way.
    fn is_spent(&self) -> bool {
        self.message.is_empty() && self.pieces.as_slice().is_empty() && self.behind.is_empty()
    }
}

impl Outbox {
    /// Whether the peer has to read before anything more is done for it.
    pub fn is_full(&self) -> bool {
        let long = || self.long.iter().map(|long| long.bytes);
        let longest = long().max().unwrap_or(0);
        UNSENT_BYTES_MAX < self.bytes.len() || LONG_BYTES_MAX < long().sum::<usize>() - longest
    }

    /// Whether all is sent.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.long.is_empty()
    }

    /// Takes what a request is answered with.
    pub fn answer(&mut self, request: &Header, answer: Result<Reply, Status>) {
        match answer {
            Ok(Reply::Evaluate(reply)) => self.message(request, &reply),
            Ok(Reply::Ping(reply)) => self.put(&request.reply(Flags::LAST), &reply),
            Ok(Reply::Query(pieces)) => self.pieces(request, pieces),
            Ok(Reply::MultiGet(reply)) => self.message(request, &reply),
            Ok(Reply::Compute(reply)) => self.message(request, &reply),
            Ok(Reply::Aggregate(reply)) => self.message(request, &reply),
            Ok(Reply::Pieces(_)) => unreachable!("replies by credit come piece by piece"),
            Err(status) => self.error(request, &status),
        }
    }

    /// Takes the next piece of a reply, or the error that ends it.
    pub fn piece(&mut self, request: &Header, piece: Result<Piece, Status>) {
        let piece = match piece {
            Ok(piece) => piece,
            Err(status) => {
                self.cancel(request.id);
                return self.error(request, &status);
            }
        };
        if let Some(before) = self.long.iter_mut().find(|long| long.request.id == request.id) {
            before.bytes += piece.body.len();
            return before.behind.push_back(piece);
        }
        let Piece { body, is_last } = piece;
        if PART_BYTES <= body.len() {
            let bytes = body.len();
            return self.long.push_back(Long {
                request: *request,
                pieces: Vec::new().into_iter(),
                behind: VecDeque::new(),
                message: body,
                is_last,
                bytes,
            });
        }
        let flags = if is_last { Flags::LAST } else { Flags::default() };
        let header = request.reply(flags);
        header.encode_bytes(&body, &mut self.bytes).expect("a part is shorter than a message may be");
    }

    /// Drops what is left of a long reply that nobody wants any more.
    pub fn cancel(&mut self, id: u64) {
        self.long.retain(|long| long.request.id != id);
    }

    /// Takes an empty reply.
    pub fn acknowledge(&mut self, request: &Header) {
        self.put(&request.reply(Flags::LAST), &());
    }

    /// Takes an error reply.
    pub fn error(&mut self, request: &Header, status: &Status) {
        request.reply(Flags::LAST).encode_error(status, &mut self.bytes);
    }

    /// A reply of one message.
    fn message(&mut self, request: &Header, message: &impl Message) {
        match message.encoded_len() {
            bytes @ PART_BYTES..=MESSAGE_BYTES_MAX => self.long.push_back(Long {
                request: *request,
                pieces: Vec::new().into_iter(),
                behind: VecDeque::new(),
                message: message.encode_to_vec().into(),
                is_last: true,
                bytes,
            }),
            _ => self.put(&request.reply(Flags::LAST), message),
        }
    }

    fn pieces(&mut self, request: &Header, mut pieces: vec::IntoIter<v1::QueryReply>) {
        if let [_] = pieces.as_slice()
            && let Some(only) = pieces.next()
        {
            return self.message(request, &only);
        }
        let bytes = pieces.as_slice().iter().map(Message::encoded_len).sum();
        let behind = VecDeque::new();
        self.long.push_back(Long {
            request: *request,
            pieces,
            behind,
            message: Bytes::new(),
            is_last: false,
            bytes,
        });
    }

    fn put(&mut self, header: &Header, body: &impl Message) {
        if let Err(error) = header.encode(body, &mut self.bytes) {
            let help = "ask for a page of it";
            let status = kith_wire::status(Code::OutOfRange, "out_of_range", error.to_string(), help);
            header.encode_error(&status, &mut self.bytes);
        }
    }

    /// Takes one frame of the long replies, whose turn it is, if little else waits: what is put behind it later waits for it.
    fn fill(&mut self) {
        if PART_BYTES <= self.bytes.len() {
            return;
        }
        let Some(mut long) = self.long.pop_front() else { return };
        let (flags, body) = long.next();
        let header = long.request.reply(flags);
        header.encode_bytes(&body, &mut self.bytes).expect("a part is shorter than a message may be");
        if !long.is_spent() {
            self.long.push_back(long);
        }
    }

    /// Sends what is encoded and one frame of the long replies. Ready once that is sent, also if more of them is left, so
    /// that requests are read meanwhile; pending while the socket takes no more.
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_send(
        &mut self,
        stream: &mut (impl AsyncWrite + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        self.fill();
        loop {
            if self.bytes.is_empty() {
                if SPARE_BYTES < self.bytes.capacity() {
                    self.bytes = BytesMut::new();
                }
                // Over TLS, what is taken is not yet sent.
                return Pin::new(&mut *stream).poll_flush(cx);
            }
            match std::task::ready!(Pin::new(&mut *stream).poll_write(cx, &self.bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.bytes.advance(written),
            }
        }
    }
}
