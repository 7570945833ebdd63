//! A reply while it arrives: its messages are assembled from frames, charged for their memory, and handed to the caller.

use super::Lost;
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

/// So much room is made when the first part of a whole reply comes: what a node's share of a large read takes.
/// Not of a stream's: its messages are shorter, and many lie here where nobody reads them.
const WHOLE_BYTES_EXPECTED: usize = 2 << 20;
/// Replies up to this size are not charged.
const UNCHARGED_BYTES: usize = 16 << 10;

/// The pieces of a reply, first to last.
pub(super) type Pieces = Vec<Rope>;

/// A message of a reply, and whether it is the last; or the error that ends it.
pub(super) type PartMessage = Result<(Rope, bool), Status>;

/// A request that waits for its reply.
#[derive(Debug)]
pub(super) struct Waiting {
    /// What has come of a message that goes on, before what lies in `part`.
    before: Rope,
    /// What has come of it last, where that follows its header.
    part: BytesMut,
    /// For `part`, and what came before it through the socket.
    charge: Option<Charge>,
    reply: Replying,
}

/// Why a frame of a reply is not taken in.
pub(super) enum Untaken {
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
pub(super) enum Replying {
    /// For all of it.
    Whole { pieces: Pieces, told: oneshot::Sender<Result<Pieces, Status>> },
    /// For each message of it. Bounded by the credit that was given.
    Parts(mpsc::UnboundedSender<PartMessage>),
}

impl Waiting {
    /// Nothing has come yet. Replies are charged to `replies`, if there is such a budget.
    pub fn new(reply: Replying, replies: Option<&Arc<Budget>>) -> Self {
        Self { before: Rope::default(), part: BytesMut::new(), charge: replies.map(Budget::charge), reply }
    }

    /// Takes in a frame of the reply: a message, or a part of one.
    pub fn take(&mut self, frame: Frame) -> Result<(), Untaken> {
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
    pub fn take_shared(&mut self, body: Bytes, flags: Flags) -> Result<(), Lost> {
        self.check_length(body.len())?;
        let part = self.end_part();
        self.before.push(part);
        self.before.push(body);
        self.grown(flags);
        Ok(())
    }

    /// Lends the message of which a frame has begun to come, with room for the frame's body. It is given back by
    /// [`Waiting::take_back`].
    pub fn lend(&mut self, body_bytes: usize, flags: Flags) -> Result<BytesMut, Untaken> {
        self.make_room(body_bytes, flags)?;
        Ok(std::mem::take(&mut self.part))
    }

    /// Takes back the message that was lent, with the frame's body at its end.
    pub fn take_back(&mut self, message: BytesMut, flags: Flags) {
        self.part = message;
        self.grown(flags);
    }

    /// No more of the reply comes.
    pub fn end(self, ended: Result<(), Status>) {
        self.reply.end(ended);
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

/// What a caller is told whose reply does not fit into the memory for replies.
pub(super) fn no_memory() -> Status {
    let message = "replies that are being gathered take all the memory that this process has for them";
    let help = "try again in a moment, ask for less at once, or raise `reply-memory`";
    kith_wire::status(ErrorCode::Overloaded, message, help)
}
