//! Read compute over a node's share of the keys, and over records that were fetched: what a plan makes of each, cut to the best.

use super::lookup::{LookupKeys, Read, Room, read};
use crate::records::RecordsBuilder;
use crate::{EvaluateError, Record, RecordError, Records, ValueSource};
use kith_schema::compute::{Computation, Compute, Score, Stopped};
use kith_types::KeyRef;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

/// What `plan` makes of the records of `keys`: of the best alone, where it asks for the best. A list of the wrong length is an
/// error of its key, a damaged record too, as for [`super::lookup()`]. `O(keys)` time; memory for what is sent alone.
///
/// # Errors
/// As [`super::lookup()`]; the `room` is for what comes out, or for the best of the keys so far. The best are known when all keys are
/// read, whatever is enough.
pub fn compute(
    keys: LookupKeys<'_>,
    source: &dyn ValueSource,
    plan: &Compute<'_>,
    room: Room,
    cancelled: &dyn Fn() -> bool,
) -> Result<Records, EvaluateError> {
    let mut results = Results::new(keys, plan, room);
    read(keys, source, false, cancelled, &mut |index, value| {
        match value {
            Read::Found(value) => results.found(index, value.bytes)?,
            Read::Absent => results.without(Without::Absent),
            Read::Damaged => results.without(Without::Error(RecordError::Damaged)),
        }
        Ok(results.after())
    })?;
    results.finish()
}

/// As [`compute`], over the records of `keys` that were looked up: what a caller does whose nodes cannot, to the same bytes.
///
/// # Errors
/// [`EvaluateError::TooLarge`].
///
/// # Panics
/// If there is not one record per key.
pub fn compute_fetched(
    keys: LookupKeys<'_>,
    fetched: &Records,
    plan: &Compute<'_>,
    bytes_max: usize,
) -> Result<Records, EvaluateError> {
    assert_eq!(keys.len(), fetched.len(), "a record per key");
    let mut results = Results::new(keys, plan, Room::for_all(bytes_max));
    for (index, record) in fetched.iter().enumerate() {
        match record {
            Record::Found(value) => results.found(index, value)?,
            Record::Absent => results.without(Without::Absent),
            Record::Error(error) => results.without(Without::Error(error)),
            Record::Unanswered => results.without(Without::Unanswered),
            Record::Unsent => results.without(Without::Unsent),
        }
    }
    results.finish()
}

/// The places of the best of `records`, what `computation` made of `keys`, best first: the greatest scores, of equal ones the
/// least keys. Values of the others are forgotten; a record without a score is not among the best.
///
/// # Errors
/// What is wrong with a record that is none of the computation's.
///
/// # Panics
/// If there is not one record per key.
pub fn best(
    keys: LookupKeys<'_>,
    records: &mut Records,
    computation: &Computation,
) -> Result<Vec<u32>, kith_schema::RecordError> {
    assert_eq!(keys.len(), records.len(), "a record per key");
    let mut ranked = Vec::new();
    for (place, record) in records.iter().enumerate() {
        if let Record::Found(value) = record
            && let Some(score) = computation.score(value)?
        {
            ranked.push(Ranked {
                score,
                key: Reverse(keys.key(place)),
                place: Reverse(place as u32),
                slot: 0,
            });
        }
    }
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    ranked.truncate(computation.k().unwrap_or(usize::MAX));
    let places: Vec<u32> = ranked.iter().map(|ranked| ranked.place.0).collect();
    records.keep(&places);
    Ok(places)
}

/// A record that has a score; the greatest is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked<'k> {
    score: Score,
    key: Reverse<KeyRef<'k>>,
    place: Reverse<u32>,
    /// Where its result is put by.
    slot: usize,
}

/// What became of a key that has no result.
#[derive(Clone, Copy, Debug)]
enum Without {
    Absent,
    Error(RecordError),
    Unanswered,
    /// Found, and not among the best.
    Unsent,
}

/// Results under way, key by key.
struct Results<'k, 'p> {
    keys: LookupKeys<'k>,
    plan: &'p Compute<'p>,
    room: Room,
    /// The result being made.
    result: Vec<u8>,
    kept: Kept<'k>,
}

enum Kept<'k> {
    /// Every record's result.
    All(RecordsBuilder),
    /// Those of the best records.
    Best(Best<'k>),
}

/// The best records so far.
struct Best<'k> {
    k: usize,
    /// One per key so far; those of the best are passed over at the end.
    states: Vec<Without>,
    /// The worst of the best on top.
    heap: BinaryHeap<Reverse<Ranked<'k>>>,
    /// Their results: who is better takes over the buffer of whom it replaces.
    slots: Vec<Vec<u8>>,
    /// What these take.
    bytes: usize,
}

impl<'k, 'p> Results<'k, 'p> {
    fn new(keys: LookupKeys<'k>, plan: &'p Compute<'p>, room: Room) -> Self {
        let kept = match plan.computation().k() {
            None => Kept::All(RecordsBuilder::with_room(keys.len(), room.enough)),
            Some(k) => Kept::Best(Best {
                k,
                states: Vec::with_capacity(keys.len()),
                heap: BinaryHeap::new(),
                slots: Vec::new(),
                bytes: 0,
            }),
        };
        Self { keys, plan, room, result: Vec::new(), kept }
    }

    /// Whether there is room for another result.
    fn after(&self) -> ControlFlow<()> {
        match &self.kept {
            Kept::All(records) => self.room.after(records.value_bytes()),
            Kept::Best(_) => ControlFlow::Continue(()),
        }
    }

    /// The next key has no result.
    fn without(&mut self, why: Without) {
        match &mut self.kept {
            Kept::All(records) => why.put(records),
            Kept::Best(best) => best.states.push(why),
        }
    }

    /// The next key, at `index`, has this record.
    fn found(&mut self, index: usize, record: &[u8]) -> Result<(), EvaluateError> {
        match self.take(index, record) {
            Ok(true) => Ok(()),
            Ok(false) => Err(EvaluateError::TooLarge { max: self.room.bytes_max }),
            Err(stopped) => {
                self.without(Without::Error(error_of(&stopped)));
                Ok(())
            }
        }
    }

    /// `false` if the results do not fit any more.
    fn take(&mut self, index: usize, record: &[u8]) -> Result<bool, Stopped> {
        self.result.clear();
        match &mut self.kept {
            Kept::All(records) => {
                self.plan.write(record, &mut self.result)?;
                let fits = self.result.len() <= self.room.bytes_max - records.value_bytes();
                Ok(fits && records.found(&self.result))
            }
            Kept::Best(best) => {
                let score = self.plan.score(record)?;
                let key = Reverse(self.keys.key(index));
                let ranked = score.map(|score| Ranked { score, key, place: Reverse(index as u32), slot: 0 });
                if let Some(ranked) = ranked.filter(|ranked| best.takes(ranked)) {
                    self.plan.write(record, &mut self.result)?;
                    best.keep(ranked, &mut self.result);
                }
                best.states.push(Without::Unsent);
                Ok(best.bytes <= self.room.bytes_max)
            }
        }
    }

    fn finish(self) -> Result<Records, EvaluateError> {
        match self.kept {
            Kept::All(records) => Ok(records.finish()),
            Kept::Best(best) => best.finish(self.room.bytes_max),
        }
    }
}

impl<'k> Best<'k> {
    /// Whether a record is among the best so far.
    fn takes(&self, ranked: &Ranked<'k>) -> bool {
        self.slots.len() < self.k || self.heap.peek().is_some_and(|worst| worst.0 < *ranked)
    }

    /// Keeps a result that it takes; `result` is then a buffer to use again.
    fn keep(&mut self, mut ranked: Ranked<'k>, result: &mut Vec<u8>) {
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

    fn finish(self, bytes_max: usize) -> Result<Records, EvaluateError> {
        let too_large = EvaluateError::TooLarge { max: bytes_max };
        let mut places: Vec<(u32, usize)> =
            self.heap.iter().map(|kept| (kept.0.place.0, kept.0.slot)).collect();
        places.sort_unstable();
        let mut kept = places.into_iter().peekable();
        let mut records = RecordsBuilder::with_capacity(self.states.len());
        for (place, state) in (0..).zip(self.states) {
            match kept.next_if(|(kept, _)| *kept == place) {
                Some((_, slot)) if records.found(&self.slots[slot]) => {}
                Some(_) => return Err(too_large),
                None => state.put(&mut records),
            }
        }
        Ok(records.finish())
    }
}

impl Without {
    fn put(self, records: &mut RecordsBuilder) {
        match self {
            Without::Absent => records.absent(),
            Without::Error(error) => records.error(error),
            Without::Unanswered => records.unanswered(),
            Without::Unsent => records.unsent(),
        }
    }
}

/// A record that does not decode has its checksum all the same: it is damaged, and no answer.
fn error_of(stopped: &Stopped) -> RecordError {
    match stopped {
        Stopped::Fault(fault) => RecordError::Dimensions(*fault),
        Stopped::Damaged(_) => RecordError::Damaged,
    }
}
