//! Keeps the best records of a computation so far, with their results.

use crate::records::RecordsBuilder;
use crate::{EvaluateError, RecordError, Records};
use kith_schema::compute::Score;
use kith_types::KeyRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A record with a score. The greatest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RankedRecord<'k> {
    pub(super) score: Score,
    pub(super) key: Reverse<KeyRef<'k>>,
    pub(super) index: Reverse<u32>,
    /// The index of the slot with its result.
    pub(super) slot: usize,
}

/// The outcome of a key without a result.
#[derive(Clone, Copy, Debug)]
pub(super) enum EmptyOutcome {
    Absent,
    Error(RecordError),
    Unanswered,
    /// The key was found, but is not among the best.
    Unsent,
}

/// The best records so far.
pub(super) struct Best<'k> {
    k: usize,
    /// The outcome of each key so far. At the end, those of the best keys are ignored.
    states: Vec<EmptyOutcome>,
    /// A heap with the worst of the best on top.
    heap: BinaryHeap<Reverse<RankedRecord<'k>>>,
    /// The results of the best. A better record takes over the buffer of the record that it replaces.
    slots: Vec<Vec<u8>>,
    /// The size of these results in bytes.
    bytes: usize,
}

impl<'k> Best<'k> {
    /// Prepares for the `k` best of this many keys.
    pub(super) fn new(k: usize, keys: usize) -> Self {
        let states = Vec::with_capacity(keys);
        Self { k, states, heap: BinaryHeap::new(), slots: Vec::new(), bytes: 0 }
    }

    /// Notes the outcome of the next key if it is not among the best.
    pub(super) fn pass(&mut self, state: EmptyOutcome) {
        self.states.push(state);
    }

    /// The size of the kept results in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a record is among the best so far.
    pub(super) fn takes(&self, ranked: &RankedRecord<'k>) -> bool {
        self.slots.len() < self.k || self.heap.peek().is_some_and(|worst| worst.0 < *ranked)
    }

    /// Keeps a result for which [`Self::takes`] is true. `result` becomes a buffer for reuse.
    pub(super) fn keep(&mut self, mut ranked: RankedRecord<'k>, result: &mut Vec<u8>) {
        ranked.slot = match self.slots.len() < self.k {
            true => {
                self.slots.push(Vec::new());
                self.slots.len() - 1
            }
            false => self.heap.pop().map_or(0, |worst| worst.0.slot),
        };
        std::mem::swap(&mut self.slots[ranked.slot], result);
        self.bytes = self.bytes - result.len() + self.slots[ranked.slot].len();
        self.heap.push(Reverse(ranked));
    }

    pub(super) fn finish(self, bytes_max: usize) -> Result<Records, EvaluateError> {
        let too_large = EvaluateError::TooLarge { max: bytes_max };
        let mut indexes: Vec<(u32, usize)> =
            self.heap.iter().map(|kept| (kept.0.index.0, kept.0.slot)).collect();
        indexes.sort_unstable();
        let mut kept = indexes.into_iter().peekable();
        let mut records = RecordsBuilder::with_capacity(self.states.len());
        for (index, state) in (0..).zip(self.states) {
            match kept.next_if(|(kept, _)| *kept == index) {
                Some((_, slot)) if records.found(&self.slots[slot]) => {}
                Some(_) => return Err(too_large),
                None => state.put(&mut records),
            }
        }
        Ok(records.finish())
    }
}

impl EmptyOutcome {
    pub(super) fn put(self, records: &mut RecordsBuilder) {
        match self {
            EmptyOutcome::Absent => records.absent(),
            EmptyOutcome::Error(error) => records.error(error),
            EmptyOutcome::Unanswered => records.unanswered(),
            EmptyOutcome::Unsent => records.unsent(),
        }
    }
}
