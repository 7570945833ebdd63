//! The values of a batch read: one entry per key, and bytes that are never copied once a node has sent them.

use bytes::{Bytes, BytesMut};
use kith_schema::compute::ComputeFault;
use kith_types::{ErrorCode, KeyRef, ValueProof};
use std::fmt;

/// The value of one key, or why there is none (architecture D8: every key is accounted for).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The value; it may be empty.
    Found(&'a [u8]),
    /// The store has no such key; proven.
    Absent,
    /// Every replica that was asked failed for this key.
    Error(RecordError),
    /// No replica answered for the key.
    Unanswered,
    /// The store has the key; its value was worked on, and is not wanted: it is not among the best, or was counted.
    Unsent,
}

/// Why a key's value cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordError {
    /// Its bytes fail their checksum.
    Damaged,
    /// It cannot be worked on as asked: of another type, of other dimensions.
    Unsuitable,
    /// Replicas gave different answers, where several must agree.
    Disagreeing,
    /// A list that is not as long as the query of an operator.
    Dimensions(ComputeFault),
}

impl RecordError {
    /// The code that users see.
    pub fn code(self) -> ErrorCode {
        match self {
            RecordError::Damaged => ErrorCode::Damaged,
            RecordError::Unsuitable => ErrorCode::Unsuitable,
            RecordError::Disagreeing => ErrorCode::ReplicasDisagree,
            RecordError::Dimensions(_) => ErrorCode::DimensionMismatch,
        }
    }
}

/// How many keys ended how; the four sum to the number of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Keys with a value, sent or not.
    pub found: u64,
    /// Keys that the store does not have.
    pub absent: u64,
    /// Keys that failed.
    pub error: u64,
    /// Keys that nobody answered for.
    pub unanswered: u64,
}

/// One entry per key. Values lie in one buffer per node that answered.
#[derive(Clone, Default)]
pub struct Records {
    entries: Vec<Entry>,
    segments: Vec<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Found { segment: u32, start: u32, length: u32, proof: Option<ValueProof> },
    Absent,
    Error(RecordError),
    Unanswered,
    Unsent,
}

impl Entry {
    /// The same where its records' segments stand behind so many others.
    fn behind(self, segments: u32) -> Self {
        match self {
            Entry::Found { segment, start, length, proof } => {
                Entry::Found { segment: segments + segment, start, length, proof }
            }
            other => other,
        }
    }
}

impl Records {
    /// The most bytes of one segment: places in it are 32 bits wide.
    pub const SEGMENT_BYTES_MAX: usize = u32::MAX as usize;

    /// `count` keys that nobody has answered for.
    pub fn unanswered(count: usize) -> Self {
        Self { entries: vec![Entry::Unanswered; count], segments: Vec::new() }
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The record of the key at `index`; `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<Record<'_>> {
        Some(self.record(*self.entries.get(index)?))
    }

    /// The value at `index` without copying it: it keeps its node's whole answer in memory.
    pub fn value(&self, index: usize) -> Option<Bytes> {
        match *self.entries.get(index)? {
            Entry::Found { segment, start, length, .. } => {
                Some(self.segments[segment as usize].slice(start as usize..(start + length) as usize))
            }
            _ => None,
        }
    }

    /// What proves the value at `index`, if it came with a proof.
    pub fn proof(&self, index: usize) -> Option<ValueProof> {
        match *self.entries.get(index)? {
            Entry::Found { proof, .. } => proof,
            _ => None,
        }
    }

    /// Proves all values: one that its proof does not hold for, or that came without, is damaged from here on. `key` gives the key at an
    /// index. Returns the indexes of those, ascending. `O(bytes of values)`.
    pub fn prove<'k>(&mut self, key: impl Fn(usize) -> KeyRef<'k>) -> Vec<u32> {
        let mut damaged = Vec::new();
        for (index, entry) in self.entries.iter_mut().enumerate() {
            if let Entry::Found { segment, start, length, proof } = *entry {
                let value =
                    &self.segments[segment as usize][start as usize..start as usize + length as usize];
                if !proof.is_some_and(|proof| proof.holds(key(index), value)) {
                    *entry = Entry::Error(RecordError::Damaged);
                    damaged.push(index as u32);
                }
            }
        }
        damaged
    }

    /// Takes the proofs off, for a caller who did not ask for them.
    pub fn drop_proofs(&mut self) {
        for entry in &mut self.entries {
            if let Entry::Found { proof, .. } = entry {
                *proof = None;
            }
        }
    }

    /// The records in the order of the keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Record<'_>> {
        self.entries.iter().map(|&entry| self.record(entry))
    }

    /// How many keys ended how.
    pub fn counts(&self) -> RecordCounts {
        let mut counts = RecordCounts::default();
        for entry in &self.entries {
            match entry {
                Entry::Found { .. } | Entry::Unsent => counts.found += 1,
                Entry::Absent => counts.absent += 1,
                Entry::Error(_) => counts.error += 1,
                Entry::Unanswered => counts.unanswered += 1,
            }
        }
        counts
    }

    /// Bytes of all values.
    pub fn value_bytes(&self) -> u64 {
        let length = |entry: &Entry| match entry {
            Entry::Found { length, .. } => u64::from(*length),
            _ => 0,
        };
        self.entries.iter().map(length).sum()
    }

    /// Marks the key at `index` as failed; what it held before is forgotten.
    pub fn fail(&mut self, index: usize, error: RecordError) {
        self.entries[index] = Entry::Error(error);
    }

    /// Forgets the values of all keys but those at `kept`, which stay as they are; the others go on being found.
    pub fn keep(&mut self, kept: &[u32]) {
        let mut keeps = vec![false; self.entries.len()];
        kept.iter().for_each(|&index| keeps[index as usize] = true);
        for (entry, keep) in self.entries.iter_mut().zip(keeps) {
            if !keep && matches!(entry, Entry::Found { .. }) {
                *entry = Entry::Unsent;
            }
        }
    }

    /// The bytes of all values, where they lie end to end in the order of the keys and nothing else does, as a [`RecordsBuilder`] leaves
    /// them. `O(keys)`; copies nothing.
    pub fn end_to_end(&self) -> Option<Bytes> {
        let [segment] = &self.segments[..] else { return None };
        let mut end = 0;
        for entry in &self.entries {
            if let Entry::Found { start, length, .. } = *entry {
                if start as usize != end {
                    return None;
                }
                end += length as usize;
            }
        }
        (end == segment.len()).then(|| segment.clone())
    }

    /// How many keys have damaged records.
    pub fn damaged(&self) -> u64 {
        let is_one = |entry: &&Entry| **entry == Entry::Error(RecordError::Damaged);
        self.entries.iter().filter(is_one).count() as u64
    }

    /// How many keys replicas disagree about.
    pub fn disagreements(&self) -> u64 {
        let is_one = |entry: &&Entry| **entry == Entry::Error(RecordError::Disagreeing);
        self.entries.iter().filter(is_one).count() as u64
    }

    /// What several answers to the same keys agree on. A key that one of them lacks is unanswered; else one that failed in one
    /// fails; else, if two differ, that is its error. Values are not copied.
    ///
    /// # Panics
    /// If there is no answer, or they are of different numbers of keys; the caller has checked both.
    pub fn agreed(answers: Vec<Records>) -> Self {
        let mut answers = answers.into_iter();
        let mut agreed = answers.next().expect("an answer at least");
        for other in answers {
            assert_eq!(agreed.len(), other.len(), "answers to the same keys");
            for index in 0..agreed.len() {
                let (ours, theirs) =
                    (agreed.record(agreed.entries[index]), other.record(other.entries[index]));
                agreed.entries[index] = match (ours, theirs) {
                    (Record::Unanswered, _) | (_, Record::Unanswered) => Entry::Unanswered,
                    (Record::Error(error), _) | (_, Record::Error(error)) => Entry::Error(error),
                    (ours, theirs) if ours != theirs => Entry::Error(RecordError::Disagreeing),
                    _ => continue,
                };
            }
        }
        agreed
    }

    /// Moves a part's records to the places of their keys: `positions[i]` is the place of the part's record `i`.
    ///
    /// # Panics
    /// If there is a position per record, but one of them is beyond the last key; the caller has checked both.
    pub fn place(&mut self, positions: &[u32], part: Records) {
        let base = self.segments.len() as u32;
        self.segments.extend(part.segments);
        for (&position, entry) in positions.iter().zip(part.entries) {
            self.entries[position as usize] = entry.behind(base);
        }
    }

    /// Adds the records of the next keys.
    pub fn append(&mut self, next: Records) {
        let base = self.segments.len() as u32;
        self.segments.extend(next.segments);
        self.entries.extend(next.entries.into_iter().map(|entry| entry.behind(base)));
    }

    /// Takes out the damaged records of a part, with their positions, so that another replica can be asked for them.
    ///
    /// # Panics
    /// If there is not one position per record; the caller has checked.
    pub fn split_damaged(&mut self, positions: &mut Vec<u32>) -> Vec<u32> {
        assert_eq!(positions.len(), self.entries.len(), "one position per record");
        let is_damaged = |entry: &Entry| *entry == Entry::Error(RecordError::Damaged);
        if !self.entries.iter().any(is_damaged) {
            return Vec::new();
        }
        let (mut damaged, mut sound) = (Vec::new(), Vec::new());
        for (&position, entry) in positions.iter().zip(&self.entries) {
            if is_damaged(entry) { &mut damaged } else { &mut sound }.push(position);
        }
        self.entries.retain(|entry| !is_damaged(entry));
        *positions = sound;
        damaged
    }

    /// Leaves the records at the places that `keep` names.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut place = 0..;
        self.entries.retain(|_| place.next().is_some_and(&mut keep));
    }

    fn record(&self, entry: Entry) -> Record<'_> {
        match entry {
            Entry::Found { segment, start, length, .. } => {
                let bytes = &self.segments[segment as usize];
                Record::Found(&bytes[start as usize..start as usize + length as usize])
            }
            Entry::Absent => Record::Absent,
            Entry::Error(error) => Record::Error(error),
            Entry::Unanswered => Record::Unanswered,
            Entry::Unsent => Record::Unsent,
        }
    }
}

/// Equal are those that say the same of each key, wherever the values lie.
impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The most room that is made for values before they are there.
const ROOM_BYTES_MAX: usize = 8 << 20;

/// Records made one after the other, their values copied once into one buffer.
#[derive(Debug)]
pub struct RecordsBuilder {
    entries: Vec<Entry>,
    bytes: BytesMut,
    /// Values are not expected to have more bytes than this and the last of them.
    enough: usize,
}

impl RecordsBuilder {
    /// Room for `count` keys.
    pub fn with_capacity(count: usize) -> Self {
        Self::with_room(count, usize::MAX)
    }

    /// The same, where values end with the one that makes them `enough` bytes.
    pub fn with_room(count: usize, enough: usize) -> Self {
        Self { entries: Vec::with_capacity(count), bytes: BytesMut::new(), enough }
    }

    /// Adds a value. `false` if it does not fit any more ([`Records::SEGMENT_BYTES_MAX`] in all): nothing was added.
    #[must_use]
    pub fn found(&mut self, value: &[u8]) -> bool {
        self.found_with(value, None)
    }

    /// As [`RecordsBuilder::found`], with what proves the value.
    #[must_use]
    pub fn found_with(&mut self, value: &[u8], proof: Option<ValueProof>) -> bool {
        let start = self.bytes.len();
        if Records::SEGMENT_BYTES_MAX - start < value.len() {
            return false;
        }
        if start == 0 {
            // Values of a store are about as long as each other: room for all of them, rather than a larger one again and again.
            let keys_left = self.entries.capacity() - self.entries.len();
            let room = self.enough.saturating_add(value.len()).min(ROOM_BYTES_MAX);
            self.bytes.reserve(keys_left.saturating_mul(value.len()).min(room));
        }
        self.bytes.extend_from_slice(value);
        let (start, length) = (start as u32, value.len() as u32);
        self.entries.push(Entry::Found { segment: 0, start, length, proof });
        true
    }

    /// Adds a key that the store does not have.
    pub fn absent(&mut self) {
        self.entries.push(Entry::Absent);
    }

    /// Adds a key that failed.
    pub fn error(&mut self, error: RecordError) {
        self.entries.push(Entry::Error(error));
    }

    /// Adds a key that nobody answered for.
    pub fn unanswered(&mut self) {
        self.entries.push(Entry::Unanswered);
    }

    /// Adds a key whose value is not wanted.
    pub fn unsent(&mut self) {
        self.entries.push(Entry::Unsent);
    }

    /// Bytes of the values so far.
    pub fn value_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The records.
    pub fn finish(self) -> Records {
        Records { entries: self.entries, segments: vec![self.bytes.freeze()] }
    }
}

/// Records over bytes that hold all values, one behind the other, as they came over the wire.
#[derive(Debug)]
pub struct RecordsOver {
    entries: Vec<Entry>,
    bytes: Bytes,
    next: usize,
}

impl RecordsOver {
    /// No record yet, of values that lie in `bytes`.
    pub fn new(count: usize, bytes: Bytes) -> Self {
        Self { entries: Vec::with_capacity(count), bytes, next: 0 }
    }

    /// Adds the value of the next `length` bytes. `false` if there are not so many left: nothing was added.
    #[must_use]
    pub fn found(&mut self, length: usize) -> bool {
        self.found_with(length, None)
    }

    /// As [`RecordsOver::found`], with what proves the value.
    #[must_use]
    pub fn found_with(&mut self, length: usize, proof: Option<ValueProof>) -> bool {
        let end = self.next.checked_add(length).filter(|end| *end <= self.bytes.len());
        match end.map(|end| (u32::try_from(self.next), u32::try_from(length), end)) {
            Some((Ok(start), Ok(length), end)) => {
                self.entries.push(Entry::Found { segment: 0, start, length, proof });
                self.next = end;
                true
            }
            _ => false,
        }
    }

    /// Adds a key that the store does not have.
    pub fn absent(&mut self) {
        self.entries.push(Entry::Absent);
    }

    /// Adds a key that failed.
    pub fn error(&mut self, error: RecordError) {
        self.entries.push(Entry::Error(error));
    }

    /// Adds a key that nobody answered for.
    pub fn unanswered(&mut self) {
        self.entries.push(Entry::Unanswered);
    }

    /// Adds a key whose value is not wanted.
    pub fn unsent(&mut self) {
        self.entries.push(Entry::Unsent);
    }

    /// The records; `None` if bytes are left over.
    pub fn finish(self) -> Option<Records> {
        (self.next == self.bytes.len())
            .then_some(Records { entries: self.entries, segments: vec![self.bytes] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(values: &[Option<&str>]) -> Records {
        let mut builder = RecordsBuilder::with_capacity(values.len());
        for value in values {
            match value {
                Some(value) => assert!(builder.found(value.as_bytes())),
                None => builder.absent(),
            }
        }
        builder.finish()
    }

    #[test]
    fn parts_find_their_places_and_every_key_is_counted() {
        let mut records = Records::unanswered(5);
        records.place(&[4, 1], part(&[Some("four"), None]));
        records.place(&[0], part(&[Some("")]));
        records.fail(2, RecordError::Damaged);
        let expected = [
            Record::Found(b""),
            Record::Absent,
            Record::Error(RecordError::Damaged),
            Record::Unanswered,
            Record::Found(b"four"),
        ];
        assert_eq!(records.iter().collect::<Vec<_>>(), expected);
        assert_eq!(records.counts(), RecordCounts { found: 2, absent: 1, error: 1, unanswered: 1 });
        assert_eq!((records.value_bytes(), records.value(4)), (4, Some(Bytes::from_static(b"four"))));
        assert_eq!((records.value(1), records.get(5)), (None, None));
    }

    #[test]
    fn values_lie_end_to_end_as_they_were_built_and_not_once_some_are_gone() {
        let mut records = part(&[Some("a"), None, Some(""), Some("bc")]);
        records.fail(1, RecordError::Damaged);
        assert_eq!(records.end_to_end(), Some(Bytes::from_static(b"abc")));
        assert_eq!(part(&[None]).end_to_end(), Some(Bytes::new()));
        let mut fewer = records.clone();
        fewer.fail(3, RecordError::Damaged);
        assert_eq!(fewer.end_to_end(), None, "there are bytes that are nobody's");
        records.fail(0, RecordError::Damaged);
        assert_eq!(records.end_to_end(), None);
        let mut placed = Records::unanswered(2);
        placed.place(&[1], part(&[Some("b")]));
        assert_eq!(placed.end_to_end(), Some(Bytes::from_static(b"b")));
        placed.place(&[0], part(&[Some("a")]));
        assert_eq!(placed.end_to_end(), None, "they lie in two places");
    }

    #[test]
    fn room_is_made_once_for_values_of_one_length() {
        let mut builder = RecordsBuilder::with_capacity(1_000);
        assert!(builder.found(&[7; 100]));
        let room = builder.bytes.capacity();
        (1..1_000).for_each(|_| assert!(builder.found(&[7; 100])));
        assert_eq!(builder.bytes.capacity(), room);
        let mut long = RecordsBuilder::with_capacity(1_000_000);
        assert!(long.found(&[7; 100_000]));
        assert!(long.bytes.capacity() < 2 * ROOM_BYTES_MAX, "one long value promises nothing of the others");
    }

    #[test]
    fn several_answers_agree_key_by_key_or_it_is_an_error() {
        let one = part(&[Some("a"), Some("b"), None, None, Some("e"), Some("f")]);
        let mut two = part(&[Some("a"), Some("x"), None, Some("d"), Some("e"), Some("f")]);
        two.fail(4, RecordError::Damaged);
        let mut three = Records::unanswered(6);
        three.place(&[0, 1, 2, 3, 4], part(&[Some("a"), Some("b"), None, None, Some("e")]));
        let expected = [
            Record::Found(b"a"),
            Record::Error(RecordError::Disagreeing),
            Record::Absent,
            Record::Error(RecordError::Disagreeing),
            Record::Error(RecordError::Damaged),
            Record::Unanswered,
        ];
        for answers in [vec![one.clone(), two.clone(), three.clone()], vec![three.clone(), one.clone(), two]]
        {
            assert_eq!(Records::agreed(answers).iter().collect::<Vec<_>>(), expected);
        }
        assert_eq!(Records::agreed(vec![one.clone()]), one);
    }

    #[test]
    fn values_whose_proofs_do_not_hold_are_damaged_and_the_others_as_they_were() {
        let key = |index: usize| KeyRef::Id(index as u64);
        let mut unproven = part(&[Some("a"), None, Some(""), Some("bc")]);
        assert_eq!(unproven.prove(key), [0, 2, 3], "values without proofs");
        let mut sound = RecordsBuilder::with_capacity(4);
        for (index, value) in [Some("a"), None, Some(""), Some("bc")].into_iter().enumerate() {
            match value.map(str::as_bytes) {
                Some(value) => assert!(sound.found_with(value, Some(ValueProof::of(key(index), value)))),
                None => sound.absent(),
            }
        }
        let sound = sound.finish();
        let proof = |index| sound.proof(index);
        assert_eq!((sound.clone().prove(key), proof(1)), (vec![], None));
        let sent = |bytes: &'static [u8]| {
            let mut over = RecordsOver::new(4, Bytes::from_static(bytes));
            assert!(over.found_with(1, proof(0)));
            over.absent();
            assert!(over.found_with(0, proof(2)) && over.found_with(2, proof(3)));
            over.finish().unwrap()
        };
        let mut flipped = sent(b"abb");
        assert_eq!(flipped.prove(key), [3]);
        let expected =
            [Record::Found(b"a"), Record::Absent, Record::Found(b""), Record::Error(RecordError::Damaged)];
        assert_eq!(flipped.iter().collect::<Vec<_>>(), expected);
        assert_eq!(
            sent(b"abc").prove(|index| KeyRef::Id(index as u64 + 1)).len(),
            3,
            "answers to other keys"
        );
        let mut placed = Records::unanswered(4);
        placed.place(&[3, 2, 1, 0], sent(b"abc"));
        assert!(placed.prove(|index| KeyRef::Id(3 - index as u64)).is_empty(), "proofs go with their values");
        placed.drop_proofs();
        assert_eq!(placed.proof(0), None);
    }

    #[test]
    fn damaged_records_are_taken_out_with_their_positions() {
        let mut builder = RecordsBuilder::with_capacity(0);
        builder.error(RecordError::Damaged);
        assert!(builder.found(b"v"));
        builder.error(RecordError::Unsuitable);
        let (mut records, mut positions) = (builder.finish(), vec![7, 3, 5]);
        assert_eq!(records.split_damaged(&mut positions), [7]);
        assert_eq!(positions, [3, 5]);
        let expected = [Record::Found(b"v"), Record::Error(RecordError::Unsuitable)];
        assert_eq!(records.iter().collect::<Vec<_>>(), expected);
        assert!(records.split_damaged(&mut positions).is_empty());
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
