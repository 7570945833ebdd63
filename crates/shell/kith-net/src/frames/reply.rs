//! A reply while it arrives. Its messages are assembled from frames, charged to a memory budget and passed to the caller.

use super::ConnectionLoss;
use crate::{Budget, Charge};
use bytes::{Bytes, BytesMut};
use kith_types::ErrorCode;
use kith_wire::{
    MESSAGE_BYTES_MAX, Rope,
    frame::{Flags, Frame},
};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// The room that is reserved when the first part of a long message arrives: the size of one node's share of a large read.
/// It is not reserved for streams, because their messages are shorter and many of them may wait here unread.
const WHOLE_BYTES_EXPECTED: usize = 2 << 20;
/// Replies up to this size are not charged.
const UNCHARGED_BYTES: usize = 16 << 10;

/// The pieces of a reply, first to last.
pub(super) type Pieces = Vec<Rope>;

/// A message of a reply and whether it is the last one; or the error that ends the reply.
pub(super) type PartMessage = Result<(Rope, bool), Status>;

/// A request that waits for its reply.
#[derive(Debug)]
pub(super) struct PendingReply {
    /// The earlier part of a message that is not complete; `part` follows it.
    before: Rope,
    /// The last part of that message, as far as it came through the socket.
    part: BytesMut,
    /// The charge for `part`, and for the parts in `before` that came through the socket.
    charge: Option<Charge>,
    reply: ReplyReceiver,
}

/// Why a frame of a reply was not accepted.
pub(super) enum ReplyFault {
    /// The frame violates the protocol, so the connection is lost.
    Lost(ConnectionLoss),
    /// The budget has no memory for the reply.
    NoMemory,
}

impl From<ConnectionLoss> for ReplyFault {
    fn from(lost: ConnectionLoss) -> Self {
        ReplyFault::Lost(lost)
    }
}

/// The receiver of a reply.
#[derive(Debug)]
pub(super) enum ReplyReceiver {
    /// The receiver waits for the whole reply.
    Whole { pieces: Pieces, sender: oneshot::Sender<Result<Pieces, Status>> },
    /// The receiver takes one message after the other. The length of the channel is bounded by the granted credit.
    Parts(mpsc::UnboundedSender<PartMessage>),
}

impl PendingReply {
    /// Returns a request of whose reply nothing has arrived. Its reply is charged to `replies`, if there is such a budget.
    pub fn new(reply: ReplyReceiver, replies: Option<&Arc<Budget>>) -> Self {
        Self { before: Rope::default(), part: BytesMut::new(), charge: replies.map(Budget::charge), reply }
    }

    /// Accepts a frame of the reply, which is a message or a part of one.
    pub fn take(&mut self, frame: Frame) -> Result<(), ReplyFault> {
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

    /// Accepts a body of the reply that lies in shared memory.
    pub fn take_shared(&mut self, body: Bytes, flags: Flags) -> Result<(), ConnectionLoss> {
        self.check_length(body.len())?;
        let part = self.end_part();
        self.before.push(part);
        self.before.push(body);
        self.grown(flags);
        Ok(())
    }

    /// Lends the message that an arriving frame continues, with room for the frame's body. It comes back by
    /// [`PendingReply::take_back`].
    pub fn lend(&mut self, body_bytes: usize, flags: Flags) -> Result<BytesMut, ReplyFault> {
        self.make_room(body_bytes, flags)?;
        Ok(std::mem::take(&mut self.part))
    }

    /// Takes back the message that was lent, with the frame's body at its end.
    pub fn take_back(&mut self, message: BytesMut, flags: Flags) {
        self.part = message;
        self.grown(flags);
    }

    /// Ends the reply.
    pub fn end(self, ended: Result<(), Status>) {
        self.reply.end(ended);
    }

    fn check_length(&self, more: usize) -> Result<(), ConnectionLoss> {
        match self.before.len() + self.part.len() + more {
            0..=MESSAGE_BYTES_MAX => Ok(()),
            _ => Err(ConnectionLoss::new("the peer sent a message longer than the limit")),
        }
    }

    /// Checks the length of, charges and reserves room for `bytes` more bytes of a message.
    fn make_room(&mut self, bytes: usize, flags: Flags) -> Result<(), ReplyFault> {
        self.check_length(bytes)?;
        self.pay(bytes)?;
        let is_first = self.before.is_empty() && self.part.is_empty() && flags.has(Flags::PART);
        let is_of_whole = matches!(self.reply, ReplyReceiver::Whole { .. });
        self.part.reserve(if is_first && is_of_whole { bytes.max(WHOLE_BYTES_EXPECTED) } else { bytes });
        Ok(())
    }

    /// Charges `more` bytes in addition to the bytes in `part`.
    fn pay(&mut self, more: usize) -> Result<(), ReplyFault> {
        let bytes = self.part.len() + more;
        let is_paid = |charge: &mut Charge| bytes <= UNCHARGED_BYTES || charge.grow_to(bytes);
        if self.charge.as_mut().is_none_or(is_paid) { Ok(()) } else { Err(ReplyFault::NoMemory) }
    }

    /// Moves the charge to the bytes, which then give it back when they are dropped.
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

    /// Passes the message on if the last frame completed it.
    fn grown(&mut self, flags: Flags) {
        if !flags.has(Flags::PART) {
            let part = self.end_part();
            self.before.push(part);
            self.reply.message(std::mem::take(&mut self.before), flags.has(Flags::LAST));
        }
    }
}

impl ReplyReceiver {
    fn message(&mut self, body: Rope, is_last: bool) {
        match self {
            ReplyReceiver::Whole { pieces, .. } => pieces.push(body),
            // The receiver may be gone, which is not an error; likewise below.
            ReplyReceiver::Parts(sender) => drop(sender.send(Ok((body, is_last)))),
        }
    }

    /// Ends the reply.
    fn end(self, ended: Result<(), Status>) {
        match (self, ended) {
            (ReplyReceiver::Whole { pieces, sender }, ended) => drop(sender.send(ended.map(|()| pieces))),
            (ReplyReceiver::Parts(sender), Err(status)) => drop(sender.send(Err(status))),
            // The last message was marked as the last one.
            (ReplyReceiver::Parts(_), Ok(())) => {}
        }
    }
}

/// The error for a caller whose reply does not fit into the memory budget for replies.
pub(super) fn no_memory() -> Status {
    let message = "the replies being received use all memory that this process has for replies";
    let help = "try again in a moment, ask for less at once, or raise `reply-memory`";
    kith_wire::status(ErrorCode::Overloaded, message, help)
}
