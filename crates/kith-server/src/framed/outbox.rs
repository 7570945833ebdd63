//! What a connection has still to send: encoded bytes, and replies in pieces that wait for room.

use super::Reply;
use bytes::{Buf, BytesMut};
use kith_wire::{
    Message,
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
use tokio::{io::AsyncWrite, net::TcpStream};
use tonic::{Code, Status};

/// Above so many unsent bytes nothing more is read or encoded: a peer that does not read its replies waits for itself.
const UNSENT_BYTES_MAX: usize = 1 << 20;
/// An emptied buffer above this size is given back.
const SPARE_BYTES: usize = 1 << 20;

/// Unsent replies of one connection.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: BytesMut,
    /// Replies with pieces left; they take turns.
    pieces: VecDeque<(Header, vec::IntoIter<v1::QueryReply>)>,
}

impl Outbox {
    /// Whether the peer has to read before anything more is done for it.
    pub fn is_full(&self) -> bool {
        UNSENT_BYTES_MAX < self.bytes.len()
    }

    /// Whether all is sent.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.pieces.is_empty()
    }

    /// Takes what a request is answered with.
    pub fn answer(&mut self, request: &Header, answer: Result<Reply, Status>) {
        match answer {
            Ok(Reply::Evaluate(reply)) => self.put(&request.reply(Flags::LAST), &reply),
            Ok(Reply::Ping(reply)) => self.put(&request.reply(Flags::LAST), &reply),
            Ok(Reply::Query(pieces)) => self.pieces.push_back((*request, pieces)),
            Err(status) => self.error(request, &status),
        }
    }

    /// Takes an empty reply.
    pub fn acknowledge(&mut self, request: &Header) {
        self.put(&request.reply(Flags::LAST), &());
    }

    /// Takes an error reply.
    pub fn error(&mut self, request: &Header, status: &Status) {
        request.reply(Flags::LAST).encode_error(status, &mut self.bytes);
    }

    fn put(&mut self, header: &Header, body: &impl Message) {
        if let Err(error) = header.encode(body, &mut self.bytes) {
            let help = "ask for a page of it";
            let status = kith_wire::status(Code::OutOfRange, "out_of_range", error.to_string(), help);
            header.encode_error(&status, &mut self.bytes);
        }
    }

    /// Encodes pieces while there is room.
    fn fill(&mut self) {
        while !self.is_full()
            && let Some((request, mut pieces)) = self.pieces.pop_front()
        {
            let Some(piece) = pieces.next() else { continue };
            let is_last = pieces.as_slice().is_empty();
            self.put(&request.reply(if is_last { Flags::LAST } else { Flags::default() }), &piece);
            if !is_last {
                self.pieces.push_back((request, pieces));
            }
        }
    }

    /// Writes until all is sent or the socket takes no more; ready once all is sent.
    ///
    /// # Errors
    /// The socket's.
    pub fn poll_send(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            self.fill();
            if self.bytes.is_empty() {
                if SPARE_BYTES < self.bytes.capacity() {
                    self.bytes = BytesMut::new();
                }
                return Poll::Ready(Ok(()));
            }
            match std::task::ready!(Pin::new(&mut *stream).poll_write(cx, &self.bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.bytes.advance(written),
            }
        }
    }
}
