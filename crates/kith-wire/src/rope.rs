//! The bytes of a message that came in several places.

use bytes::{Buf, Bytes};
use std::collections::VecDeque;

/// Bytes that follow each other and need not lie end to end. What a message borrows of them is not copied where it lies in one segment.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    /// None is empty.
    segments: VecDeque<Bytes>,
    bytes: usize,
}

impl Rope {
    /// How many bytes are left.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether none are left.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds what follows.
    pub fn push(&mut self, segment: Bytes) {
        if !segment.is_empty() {
            self.bytes += segment.len();
            self.segments.push_back(segment);
        }
    }

    /// All of it in one place: copied, unless it is there already.
    pub fn into_bytes(mut self) -> Bytes {
        self.copy_to_bytes(self.bytes)
    }
}

impl From<Bytes> for Rope {
    fn from(bytes: Bytes) -> Self {
        let mut rope = Self::default();
        rope.push(bytes);
        rope
    }
}

impl Buf for Rope {
    fn remaining(&self) -> usize {
        self.bytes
    }

    fn chunk(&self) -> &[u8] {
        self.segments.front().map_or(&[], |segment| segment)
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.bytes, "{count} bytes of {}", self.bytes);
        self.bytes -= count;
        let mut left = count;
        while let Some(front) = self.segments.front_mut() {
            let passed = left.min(front.len());
            front.advance(passed);
            left -= passed;
            if !front.is_empty() {
                break;
            }
            self.segments.pop_front();
        }
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        assert!(count <= self.bytes, "{count} bytes of {}", self.bytes);
        match self.segments.front_mut() {
            Some(front) if count <= front.len() => {
                let taken = front.split_to(count);
                self.bytes -= count;
                if front.is_empty() {
                    self.segments.pop_front();
                }
                taken
            }
            _ => {
                let mut taken = Vec::with_capacity(count);
                while taken.len() < count {
                    let part = self.chunk().len().min(count - taken.len());
                    taken.extend_from_slice(&self.chunk()[..part]);
                    self.advance(part);
                }
                taken.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A way to take bytes off the front.
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
