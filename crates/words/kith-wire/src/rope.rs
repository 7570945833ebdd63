//! A message whose bytes lie in several segments.

use bytes::{Buf, Bytes};
use prost::{DecodeError, Message};
use std::collections::VecDeque;

/// A sequence of bytes in one or more segments of memory. A slice that a message borrows is not copied if it lies
/// within one segment. A rope of one segment allocates no memory of its own.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    /// The first segment. Empty only if the whole rope is empty.
    first: Bytes,
    /// The other segments, none of which is empty.
    rest: VecDeque<Bytes>,
    bytes: usize,
}

impl Rope {
    /// Returns the number of bytes that are left.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends a segment.
    pub fn push(&mut self, segment: Bytes) {
        self.bytes += segment.len();
        if self.first.is_empty() {
            self.first = segment;
        } else if !segment.is_empty() {
            self.rest.push_back(segment);
        }
    }

    /// Returns all bytes in one segment. Copies them unless they lie in one segment already.
    pub fn into_bytes(mut self) -> Bytes {
        self.copy_to_bytes(self.bytes)
    }

    /// Decodes a message without first copying its bytes into one segment.
    ///
    /// # Errors
    /// If the bytes are not a valid message.
    pub fn decode<M: Message + Default>(self) -> Result<M, DecodeError> {
        match self.rest.is_empty() {
            true => M::decode(self.first),
            false => M::decode(self),
        }
    }

    /// Updates the state after `count` bytes of the first segment were taken.
    fn taken(&mut self, count: usize) {
        self.bytes -= count;
        if self.first.is_empty() {
            self.first = self.rest.pop_front().unwrap_or_default();
        }
    }
}

impl From<Bytes> for Rope {
    fn from(bytes: Bytes) -> Self {
        Self { bytes: bytes.len(), first: bytes, rest: VecDeque::new() }
    }
}

impl Buf for Rope {
    fn remaining(&self) -> usize {
        self.bytes
    }

    fn chunk(&self) -> &[u8] {
        &self.first
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.bytes, "{count} bytes of {}", self.bytes);
        let mut left = count;
        while 0 < left {
            let passed = left.min(self.first.len());
            self.first.advance(passed);
            self.taken(passed);
            left -= passed;
        }
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        assert!(count <= self.bytes, "{count} bytes of {}", self.bytes);
        if count <= self.first.len() {
            let segment = self.first.split_to(count);
            self.taken(count);
            return segment;
        }
        let mut copied = Vec::with_capacity(count);
        while copied.len() < count {
            let part = self.first.len().min(count - copied.len());
            copied.extend_from_slice(&self.first[..part]);
            self.advance(part);
        }
        copied.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1;
    use proptest::prelude::*;

    /// One way to take bytes off the front.
    #[derive(Clone, Debug)]
    enum Step {
        Advance(usize),
        Take(usize),
    }

    proptest! {
        #[test]
        fn it_reads_as_if_it_lay_in_one_place(
            segments in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9),
            steps in prop::collection::vec(
                prop_oneof![(0_usize..12).prop_map(Step::Advance), (0_usize..12).prop_map(Step::Take)],
                0..20,
            ),
        ) {
            let mut rope = Rope::default();
            segments.iter().for_each(|segment| rope.push(segment.clone().into()));
            let mut flat = Bytes::from(segments.concat());
            prop_assert!(rope.clone().into_bytes() == flat);
            for step in steps {
                match step {
                    Step::Advance(count) => {
                        let count = count.min(flat.len());
                        rope.advance(count);
                        flat.advance(count);
                    }
                    Step::Take(count) => {
                        let count = count.min(flat.len());
                        prop_assert_eq!(rope.copy_to_bytes(count), flat.copy_to_bytes(count));
                    }
                }
                prop_assert_eq!((rope.len(), rope.is_empty()), (flat.len(), flat.is_empty()));
                prop_assert!(rope.is_empty() || !rope.chunk().is_empty());
            }
            prop_assert!(rope.into_bytes() == flat);
        }
    }

    proptest! {
        #[test]
        fn a_message_is_the_same_however_its_bytes_lie(
            slices in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..5),
            name in "[a-z]{0,9}",
            mut cuts in prop::collection::vec(0_usize..250, 0..6),
        ) {
            let served = vec![v1::Served::of_version(name, u64::MAX)];
            let slices = slices.into_iter().map(Bytes::from).collect();
            let message = v1::EvaluateReply { slices, served, service_us: 300, ..Default::default() };
            let bytes = Bytes::from(message.encode_to_vec());
            cuts.sort_unstable();
            let (mut rope, mut start) = (Rope::default(), 0);
            for cut in cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([bytes.len()]) {
                rope.push(bytes.slice(start..cut));
                start = cut;
            }
            prop_assert_eq!(rope.clone().decode(), Ok(message));
            let torn = rope.copy_to_bytes(bytes.len() - 1);
            prop_assert!(Rope::from(torn).decode::<v1::EvaluateReply>().is_err());
        }
    }

    #[test]
    fn what_lies_in_one_segment_is_not_copied() {
        let segment = Bytes::from(vec![7; 100]);
        let mut rope = Rope::from(segment.clone());
        rope.push(Bytes::from_static(b"more"));
        rope.advance(10);
        assert_eq!(rope.copy_to_bytes(90).as_ptr(), segment[10..].as_ptr());
        let mut short = Rope::from(segment.clone());
        assert_eq!(short.copy_to_bytes(100).as_ptr(), segment.as_ptr());
        assert!(short.is_empty() && rope.into_bytes() == b"more"[..]);
    }
}
