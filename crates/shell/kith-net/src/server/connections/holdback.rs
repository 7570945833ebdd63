//! Holds the beginning of a gRPC message back. tonic reserves the announced length of a message once it has read its prefix,
//! so a peer would get megabytes for five bytes.

use super::room;
use bytes::{Bytes, BytesMut};
use kith_wire::REQUEST_BYTES_MAX;

/// The length of the prefix of a gRPC message: a byte that says whether it is compressed, and the length.
const PREFIX_BYTES: usize = 5;

/// The state of a request's messages, and the part of them that is held back.
#[derive(Debug, Default)]
pub(super) struct Holdback {
    prefix: [u8; PREFIX_BYTES],
    /// How many bytes of the prefix of the message under way have arrived.
    prefixed: usize,
    /// How many bytes of the message under way have arrived, without the prefix.
    came: usize,
    held: BytesMut,
}

impl Holdback {
    /// Takes the next bytes of the request, and returns those that its reader may have now. They may be none.
    pub fn receive(&mut self, mut piece: Bytes) -> Bytes {
        self.count(&piece);
        let kept = if self.may_pass() { 0 } else { self.prefixed + self.came };
        if kept == self.held.len() + piece.len() {
            self.held.extend_from_slice(&piece);
            return Bytes::new();
        }
        // What is kept belongs to a message that has begun in this piece.
        let rest = piece.split_off(piece.len() - kept);
        let mut held = std::mem::replace(&mut self.held, BytesMut::from(&rest[..]));
        if held.is_empty() {
            return piece;
        }
        held.extend_from_slice(&piece);
        held.freeze()
    }

    /// The announced length of the message under way; zero if there is none, or if the prefix has not arrived.
    pub fn announced(&self) -> usize {
        let [_, length @ ..] = self.prefix;
        u32::from_be_bytes(length) as usize
    }

    /// How many bytes the reader reserves for the message under way.
    pub fn reserved(&self) -> usize {
        let announced = self.announced();
        if self.may_pass() && announced <= REQUEST_BYTES_MAX { announced } else { 0 }
    }

    /// Whether a message is incomplete.
    pub fn is_within_message(&self) -> bool {
        self.prefixed != 0
    }

    /// Counts bytes that have arrived.
    fn count(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (prefix, rest) = bytes.split_at(bytes.len().min(PREFIX_BYTES - self.prefixed));
            self.prefix[self.prefixed..self.prefixed + prefix.len()].copy_from_slice(prefix);
            self.prefixed += prefix.len();
            if self.prefixed < PREFIX_BYTES {
                return;
            }
            let came = rest.len().min(self.announced() - self.came);
            self.came += came;
            bytes = &rest[came..];
            if self.came == self.announced() {
                (self.prefix, self.prefixed, self.came) = ([0; PREFIX_BYTES], 0, 0);
            }
        }
    }

    /// Whether the reader may have what has arrived of the message under way. A message that is too long passes, because the
    /// reader refuses it at once.
    fn may_pass(&self) -> bool {
        match self.prefixed {
            0 => true,
            PREFIX_BYTES => {
                let total = self.announced();
                REQUEST_BYTES_MAX < total || room(total, self.came) == total
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::connections::UNCHARGED_BYTES;
    use proptest::prelude::*;

    fn message(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; PREFIX_BYTES + length];
        bytes[1..PREFIX_BYTES].copy_from_slice(&(length as u32).to_be_bytes());
        bytes[PREFIX_BYTES..].iter_mut().zip(1..).for_each(|(byte, index): (_, u32)| *byte = index as u8);
        bytes
    }

    #[test]
    fn a_long_message_is_held_back_until_a_quarter_of_it_has_arrived() {
        let whole = message(1 << 20);
        let mut holdback = Holdback::default();
        let quarter = PREFIX_BYTES + (1 << 18);
        assert!(holdback.receive(Bytes::copy_from_slice(&whole[..5])).is_empty());
        assert!(holdback.receive(Bytes::copy_from_slice(&whole[5..quarter - 1])).is_empty());
        assert_eq!((holdback.announced(), holdback.reserved()), (1 << 20, 0));
        assert_eq!(holdback.receive(Bytes::copy_from_slice(&whole[quarter - 1..quarter])), whole[..quarter]);
        assert_eq!(holdback.reserved(), 1 << 20);
        assert_eq!(holdback.receive(Bytes::copy_from_slice(&whole[quarter..])), whole[quarter..]);
        assert!(!holdback.is_within_message());
    }

    #[test]
    fn short_messages_and_those_that_are_refused_pass_at_once() {
        for length in [UNCHARGED_BYTES, REQUEST_BYTES_MAX + 1] {
            let begun = message(length)[..PREFIX_BYTES].to_vec();
            assert_eq!(Holdback::default().receive(begun.clone().into()), begun);
        }
    }

    proptest! {
        #[test]
        fn all_bytes_pass_in_order_and_no_prefix_earlier_than_its_message_has_room(
            lengths in prop::collection::vec(0usize..200_000, 0..6),
            cuts in prop::collection::vec(1usize..70_000, 1..40),
        ) {
            let all: Vec<u8> = lengths.iter().flat_map(|length| message(*length)).collect();
            let (mut holdback, mut passed, mut arrived) = (Holdback::default(), Vec::new(), 0);
            for cut in cuts.iter().cycle() {
                let end = (arrived + cut).min(all.len());
                passed.extend(holdback.receive(Bytes::copy_from_slice(&all[arrived..end])));
                arrived = end;
                prop_assert_eq!(&all[..passed.len()], &passed);
                let mut start = 0;
                for length in &lengths {
                    let came = arrived.saturating_sub(start + PREFIX_BYTES).min(*length);
                    let has_room = came == *length || room(*length, came) == *length;
                    prop_assert_eq!(start + 5 <= passed.len(), start + 5 <= arrived && has_room);
                    start += PREFIX_BYTES + length;
                }
                if arrived == all.len() {
                    break;
                }
            }
            prop_assert_eq!(passed.len(), all.len());
            prop_assert!(!holdback.is_within_message());
        }
    }
}
