//! A reply that goes in several frames, which take turns with those of other replies.

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

/// A longer message goes in parts of this size, which take turns with those of other replies. What a link of 10 Gbit/s
/// carries in 0.1 ms; the cost of a frame's header and of a turn is nothing beside it.
pub(super) const PART_BYTES: usize = REPLY_SLOT_BYTES;

/// A reply that goes in several frames, or in one that is not copied.
#[derive(Debug)]
pub(super) struct Long {
    pub request: Header,
    /// Messages of a reply in pieces that are not encoded yet.
    pieces: vec::IntoIter<v1::QueryReply>,
    /// Pieces that came while one before them was on its way.
    behind: VecDeque<Piece>,
    /// What is left of the message that is on its way, in slices that follow each other.
    message: VecDeque<Bytes>,
    /// What ends with it.
    end: End,
    /// Bytes that are left, encoded or not.
    pub bytes: usize,
    /// What is charged for the whole reply.
    charge: Charge,
}

impl Long {
    /// A message that is in the way of no other.
    pub fn of(request: &Header, message: impl Into<VecDeque<Bytes>>, end: End, charge: Charge) -> Self {
        let mut message = message.into();
        message.retain(|slice| !slice.is_empty());
        let bytes = message.iter().map(Bytes::len).sum();
        let (pieces, behind) = (Vec::new().into_iter(), VecDeque::new());
        Self { request: *request, pieces, behind, message, end, bytes, charge }
    }

    /// A reply in several messages, each encoded when its turn comes.
    pub fn of_pieces(request: &Header, pieces: vec::IntoIter<v1::QueryReply>, charge: Charge) -> Self {
        let bytes = pieces.as_slice().iter().map(Message::encoded_len).sum();
        let (message, behind) = (VecDeque::new(), VecDeque::new());
        Self { request: *request, pieces, behind, message, end: End::Message, bytes, charge }
    }

    /// Takes a further piece of the reply.
    pub fn push(&mut self, piece: Piece, charge: Charge) {
        self.bytes += piece.bytes();
        self.charge.absorb(charge);
        self.behind.push_back(piece);
    }

    /// The next frame's flags and body; the last one is flagged so.
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

    /// The next bytes of the message, a part's at the most.
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
        // An empty slice would be taken for bytes that are left.
        while self.message.front().is_some_and(Bytes::is_empty) {
            self.message.pop_front();
        }
        body
    }

    /// Whether all of it that is here is on its way.
    pub fn is_spent(&self) -> bool {
        self.message.is_empty() && self.pieces.as_slice().is_empty() && self.behind.is_empty()
    }
}
