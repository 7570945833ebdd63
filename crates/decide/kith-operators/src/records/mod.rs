//! The values of a batch read: one entry per key, and bytes that are never copied after a node has sent them.

mod build;
mod record;
#[cfg(test)]
mod tests;

pub use build::{RecordsBuilder, RecordsOver};
pub use record::{Record, RecordCounts, RecordError};

use bytes::Bytes;
use kith_types::{KeyRef, ValueProof};
use std::fmt;

/// One entry per key. The values lie in one buffer per answering node.
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
    /// This entry, with its segment index shifted by `segments`.
    fn shifted(self, segments: u32) -> Self {
        match self {
            Entry::Found { segment, start, length, proof } => {
                Entry::Found { segment: segments + segment, start, length, proof }
            }
            other => other,
        }
    }
}

impl Records {
    /// The most bytes of one segment, because offsets in it have 32 bits.
    pub const SEGMENT_BYTES_MAX: usize = u32::MAX as usize;

    /// Creates `count` keys without answers.
    pub fn unanswered(count: usize) -> Self {
        Self { entries: vec![Entry::Unanswered; count], segments: Vec::new() }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The record of the key at `index`; `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<Record<'_>> {
        Some(self.record(*self.entries.get(index)?))
    }

    /// The value at `index`, without copying it. It keeps the whole answer of its node in memory.
    pub fn value(&self, index: usize) -> Option<Bytes> {
        match *self.entries.get(index)? {
            Entry::Found { segment, start, length, .. } => {
                Some(self.segments[segment as usize].slice(start as usize..(start + length) as usize))
            }
            _ => None,
        }
    }

    /// The proof of the value at `index`, if it came with one.
    pub fn proof(&self, index: usize) -> Option<ValueProof> {
        match *self.entries.get(index)? {
            Entry::Found { proof, .. } => proof,
            _ => None,
        }
    }

    /// Checks all values. A value that does not match its proof, or has none, is marked as damaged. `key` returns the key
    /// at an index. Returns the indexes of the damaged values, ascending. `O(bytes of values)`.
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

    /// Removes the proofs, for a caller that did not ask for them.
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

    /// The number of keys with each outcome.
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

    /// The size of all values in bytes.
    pub fn value_bytes(&self) -> u64 {
        let length = |entry: &Entry| match entry {
            Entry::Found { length, .. } => u64::from(*length),
            _ => 0,
        };
        self.entries.iter().map(length).sum()
    }

    /// About how many bytes they take in memory.
    pub fn bytes(&self) -> u64 {
        (size_of_val(&self.entries[..]) as u64).saturating_add(self.value_bytes())
    }

    /// Marks the key at `index` as failed. Its value is dropped.
    pub fn fail(&mut self, index: usize, error: RecordError) {
        self.entries[index] = Entry::Error(error);
    }

    /// Drops the values of all keys except those at `kept`. The dropped keys still count as found.
    pub fn keep(&mut self, kept: &[u32]) {
        let mut keeps = vec![false; self.entries.len()];
        kept.iter().for_each(|&index| keeps[index as usize] = true);
        for (entry, keep) in self.entries.iter_mut().zip(keeps) {
            if !keep && matches!(entry, Entry::Found { .. }) {
                *entry = Entry::Unsent;
            }
        }
    }

    /// The bytes of all values, if they lie end to end in the order of the keys with nothing else between, as a
    /// [`RecordsBuilder`] leaves them. `O(keys)`; copies nothing.
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

    /// The number of keys with damaged records.
    pub fn damaged(&self) -> u64 {
        let is_one = |entry: &&Entry| **entry == Entry::Error(RecordError::Damaged);
        self.entries.iter().filter(is_one).count() as u64
    }

    /// The number of keys on which replicas disagree.
    pub fn disagreements(&self) -> u64 {
        let is_one = |entry: &&Entry| **entry == Entry::Error(RecordError::Disagreeing);
        self.entries.iter().filter(is_one).count() as u64
    }

    /// Combines several answers to the same keys. A key that lacks an answer in one of them is unanswered; else it fails if
    /// it failed in one of them; else, if two answers differ, it has the error for that. Values are not copied.
    ///
    /// # Panics
    /// If there are no answers, or their numbers of keys differ. The caller has checked both.
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
    /// If a position is beyond the last key, although there is one position per record. The caller has checked both.
    pub fn place(&mut self, positions: &[u32], part: Records) {
        let base = self.segments.len() as u32;
        self.segments.extend(part.segments);
        for (&position, entry) in positions.iter().zip(part.entries) {
            self.entries[position as usize] = entry.shifted(base);
        }
    }

    /// Adds the records of the next keys.
    pub fn append(&mut self, next: Records) {
        let base = self.segments.len() as u32;
        self.segments.extend(next.segments);
        self.entries.extend(next.entries.into_iter().map(|entry| entry.shifted(base)));
    }

    /// Removes the damaged records of a part and their positions, and returns these positions, so that another replica can
    /// be asked.
    ///
    /// # Panics
    /// If there is not one position per record. The caller has checked this.
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

    /// Keeps only the records at the indexes that `keep` accepts.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        let mut index = 0..;
        self.entries.retain(|_| index.next().is_some_and(&mut keep));
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

/// Records are equal if every key has the same outcome, wherever the values lie.
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
