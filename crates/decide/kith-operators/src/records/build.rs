//! Builds records one by one, in the order of their keys.

use super::{Entry, RecordError, Records};
use bytes::{Bytes, BytesMut};
use kith_types::ValueProof;

/// The most bytes that are reserved ahead for values.
const ROOM_BYTES_MAX: usize = 8 << 20;

/// Builds records whose values are copied once, into one buffer.
pub type RecordsBuilder = GenericRecordsBuilder<CopiedValues>;

/// Builds records over bytes that hold all values end to end, as they were received.
pub type RecordsOver = GenericRecordsBuilder<ReceivedValues>;

/// Builds records whose values lie in `V`.
#[derive(Debug)]
pub struct GenericRecordsBuilder<V> {
    entries: Vec<Entry>,
    values: V,
}

/// Values that are copied into a buffer.
#[derive(Debug)]
pub struct CopiedValues {
    bytes: BytesMut,
    /// The expected size of all values: at most this many bytes plus the last value.
    enough: usize,
}

/// Values that stay where they were received.
#[derive(Debug)]
pub struct ReceivedValues {
    bytes: Bytes,
    /// The offset of the next value.
    next: usize,
}

impl<V> GenericRecordsBuilder<V> {
    /// Adds a key that the store does not have.
    pub fn absent(&mut self) {
        self.entries.push(Entry::Absent);
    }

    /// Adds a key that failed.
    pub fn error(&mut self, error: RecordError) {
        self.entries.push(Entry::Error(error));
    }

    /// Adds a key without an answer.
    pub fn unanswered(&mut self) {
        self.entries.push(Entry::Unanswered);
    }

    /// Adds a key whose value was not requested.
    pub fn unsent(&mut self) {
        self.entries.push(Entry::Unsent);
    }
}

impl GenericRecordsBuilder<CopiedValues> {
    /// Creates a builder with room for `count` keys.
    pub fn with_capacity(count: usize) -> Self {
        Self::with_room(count, usize::MAX)
    }

    /// Creates a builder with room for `count` keys, whose values end with the one that reaches `enough` bytes.
    pub fn with_room(count: usize, enough: usize) -> Self {
        Self { entries: Vec::with_capacity(count), values: CopiedValues { bytes: BytesMut::new(), enough } }
    }

    /// Adds a value. Returns `false` and adds nothing if it does not fit ([`Records::SEGMENT_BYTES_MAX`] in all).
    #[must_use]
    pub fn found(&mut self, value: &[u8]) -> bool {
        self.found_with(value, None)
    }

    /// Adds a value with its proof, like [`RecordsBuilder::found`].
    #[must_use]
    pub fn found_with(&mut self, value: &[u8], proof: Option<ValueProof>) -> bool {
        let CopiedValues { bytes, enough } = &mut self.values;
        let start = bytes.len();
        if Records::SEGMENT_BYTES_MAX - start < value.len() {
            return false;
        }
        if start == 0 {
            // Values of a store have similar lengths, so room for all of them is reserved at once, instead of growing the
            // buffer repeatedly.
            let keys_left = self.entries.capacity() - self.entries.len();
            let room = enough.saturating_add(value.len()).min(ROOM_BYTES_MAX);
            bytes.reserve(keys_left.saturating_mul(value.len()).min(room));
        }
        bytes.extend_from_slice(value);
        let (start, length) = (start as u32, value.len() as u32);
        self.entries.push(Entry::Found { segment: 0, start, length, proof });
        true
    }

    /// The size of the values so far in bytes.
    pub fn value_bytes(&self) -> usize {
        self.values.bytes.len()
    }

    /// Returns the records.
    pub fn finish(self) -> Records {
        Records { entries: self.entries, segments: vec![self.values.bytes.freeze()] }
    }
}

impl GenericRecordsBuilder<ReceivedValues> {
    /// Begins records whose values lie in `bytes`.
    pub fn new(count: usize, bytes: Bytes) -> Self {
        Self { entries: Vec::with_capacity(count), values: ReceivedValues { bytes, next: 0 } }
    }

    /// Adds the value of the next `length` bytes. Returns `false` and adds nothing if fewer are left.
    #[must_use]
    pub fn found(&mut self, length: usize) -> bool {
        self.found_with(length, None)
    }

    /// Adds a value with its proof, like [`RecordsOver::found`].
    #[must_use]
    pub fn found_with(&mut self, length: usize, proof: Option<ValueProof>) -> bool {
        let ReceivedValues { bytes, next } = &mut self.values;
        let end = next.checked_add(length).filter(|end| *end <= bytes.len());
        match end.map(|end| (u32::try_from(*next), u32::try_from(length), end)) {
            Some((Ok(start), Ok(length), end)) => {
                self.entries.push(Entry::Found { segment: 0, start, length, proof });
                *next = end;
                true
            }
            _ => false,
        }
    }

    /// Returns the records; `None` if bytes are left over.
    pub fn finish(self) -> Option<Records> {
        let ReceivedValues { bytes, next } = self.values;
        (next == bytes.len()).then(|| Records { entries: self.entries, segments: vec![bytes] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;

    #[test]
    fn room_is_made_once_for_values_of_one_length() {
        let mut builder = RecordsBuilder::with_capacity(1_000);
        assert!(builder.found(&[7; 100]));
        let room = builder.values.bytes.capacity();
        (1..1_000).for_each(|_| assert!(builder.found(&[7; 100])));
        assert_eq!(builder.values.bytes.capacity(), room);
        let mut long = RecordsBuilder::with_capacity(1_000_000);
        assert!(long.found(&[7; 100_000]));
        assert!(
            long.values.bytes.capacity() < 2 * ROOM_BYTES_MAX,
            "one long value promises nothing of the others"
        );
    }

    #[test]
    fn records_over_foreign_bytes_stay_within_them() {
        let mut over = RecordsOver::new(3, Bytes::from_static(b"abc"));
        assert!(over.found(2));
        assert!(!over.found(2) && !over.found(usize::MAX));
        over.absent();
        assert!(over.found(1));
        let records = over.finish().unwrap();
        assert_eq!(
            records.iter().collect::<Vec<_>>(),
            [Record::Found(b"ab"), Record::Absent, Record::Found(b"c")]
        );
        assert!(RecordsOver::new(0, Bytes::from_static(b"x")).finish().is_none(), "a byte is left over");
    }
}
