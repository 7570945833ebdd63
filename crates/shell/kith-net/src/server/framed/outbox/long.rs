//! A reply in several frames, which take turns with those of other replies.

use crate::{
    Charge,
    frames::REPLY_SLOT_BYTES,
    server::framed::{End, Piece},
};
use bytes::Bytes;
use kith_wire::{
    Message,
    frame::{Flags, Header},
    v1,
};
use std::{collections::VecDeque, vec};

/// The size of the parts in which a longer message is sent. They take turns with the parts of other replies. A link of 10
/// Gbit/s carries a part in 0.1 ms; a frame's header and a turn cost nothing in comparison.
pub(super) const PART_BYTES: usize = REPLY_SLOT_BYTES;

/// A reply that is sent in several frames, or in one frame without a copy.
#[derive(Debug)]
pub(super) struct Long {
    pub request: Header,
    /// Messages of a reply in pieces that are not encoded yet.
    pieces: vec::IntoIter<v1::QueryReply>,
    /// Pieces that were added while an earlier one was being sent.
    behind: VecDeque<Piece>,
    /// The unsent rest of the message that is being sent, as consecutive slices.
    message: VecDeque<Bytes>,
    /// The reply or message that ends with that message.
    end: End,
    /// Unsent bytes, encoded or not.
    pub bytes: usize,
    /// The charge for the whole reply.
    charge: Charge,
}

impl Long {
    /// Returns a reply of one message, or the first piece of a reply.
    pub fn of(request: &Header, message: impl Into<VecDeque<Bytes>>, end: End, charge: Charge) -> Self {
        let mut message = message.into();
        message.retain(|slice| !slice.is_empty());
        let bytes = message.iter().map(Bytes::len).sum();
        let (pieces, behind) = (Vec::new().into_iter(), VecDeque::new());
        Self { request: *request, pieces, behind, message, end, bytes, charge }
    }

    /// Returns a reply in several messages. Each is encoded when its turn comes.
    pub fn of_pieces(request: &Header, pieces: vec::IntoIter<v1::QueryReply>, charge: Charge) -> Self {
        let bytes = pieces.as_slice().iter().map(Message::encoded_len).sum();
        let (message, behind) = (VecDeque::new(), VecDeque::new());
        Self { request: *request, pieces, behind, message, end: End::Message, bytes, charge }
    }

    /// Adds another piece to the reply.
    pub fn push(&mut self, piece: Piece, charge: Charge) {
        self.bytes += piece.bytes();
        self.charge.absorb(charge);
        self.behind.push_back(piece);
    }

    /// Returns the flags and the body of the next frame.
    pub fn next(&mut self) -> (Flags, Vec<Bytes>) {
        if self.message.is_empty() {
            if let Some(piece) = self.pieces.next() {
                self.message = [piece.encode_to_vec().into()].into();
                self.end = End::of_message(self.pieces.as_slice().is_empty());
            } else if let Some(piece) = self.behind.pop_front() {
                self.message = piece.body.into_iter().filter(|slice| !slice.is_empty()).collect();
                self.end = piece.end;
            }
        }
        let body = self.part();
        self.bytes -= body.iter().map(Bytes::len).sum::<usize>();
        let flags = if self.message.is_empty() { self.end.flags() } else { Flags::PART };
        (flags, body)
    }

    /// Takes the next bytes of the message, at most [`PART_BYTES`].
    fn part(&mut self) -> Vec<Bytes> {
        let (mut body, mut room) = (Vec::new(), PART_BYTES);
        while 0 < room
            && let Some(slice) = self.message.front_mut()
        {
            let taken = slice.split_to(slice.len().min(room));
            room -= taken.len();
            body.push(taken);
            if slice.is_empty() {
                self.message.pop_front();
            }
        }
        // An empty slice would count as an unsent rest.
        while self.message.front().is_some_and(Bytes::is_empty) {
            self.message.pop_front();
        }
        body
    }

    /// Whether everything that was added has been taken.
    pub fn is_spent(&self) -> bool {
        self.message.is_empty() && self.pieces.as_slice().is_empty() && self.behind.is_empty()
    }
}
