//! Read compute over a node's share of the keys, or over fetched records: computes the results of a plan, and keeps the
//! best.

use super::lookup::{ReadOutcome, Room, read};
use super::ranking::{Best, EmptyOutcome, RankedRecord};
use crate::records::RecordsBuilder;
use crate::{EvaluateError, Record, RecordError, Records};
use kith_schema::compute::{Computation, NoResult, RecordPlan};
use kith_schema::{LookupKeys, ValueSource};
use std::cmp::Reverse;
use std::ops::ControlFlow;

/// Computes the results of `plan` for the records of `keys`; only those of the best records, if the plan asks for the best.
/// A list of the wrong length is an error of its key. So is a damaged record, as for [`super::lookup()`]. `O(keys)` time;
/// memory only for the results that are sent.
///
/// # Errors
/// Those of [`super::lookup()`]. The `room` applies to the results, or to the results of the best keys so far. With `top_k`
/// all keys are read, even if `enough` is reached before.
pub fn compute(
    keys: LookupKeys<'_>,
    source: &dyn ValueSource,
    plan: &RecordPlan<'_>,
    room: Room,
    cancelled: &dyn Fn() -> bool,
) -> Result<Records, EvaluateError> {
    let mut results = Results::new(keys, plan, room);
    read(keys, source, false, cancelled, &mut |index, value| {
        match value {
            ReadOutcome::Found(value) => results.found(index, value.bytes)?,
            ReadOutcome::Absent => results.without(EmptyOutcome::Absent),
            ReadOutcome::Damaged => results.without(EmptyOutcome::Error(RecordError::Damaged)),
        }
        Ok(results.after())
    })?;
    results.finish()
}

/// Computes in the same way as [`compute`], over records of `keys` that were looked up. A caller whose nodes cannot compute
/// uses this, and gets the same bytes.
///
/// # Errors
/// [`EvaluateError::TooLarge`] if the results are larger than `bytes_max`.
///
/// # Panics
/// If there is not one record per key.
pub fn compute_fetched(
    keys: LookupKeys<'_>,
    fetched: &Records,
    plan: &RecordPlan<'_>,
    bytes_max: usize,
) -> Result<Records, EvaluateError> {
    assert_eq!(keys.len(), fetched.len(), "a record per key");
    let mut results = Results::new(keys, plan, Room::for_all(bytes_max));
    for (index, record) in fetched.iter().enumerate() {
        match record {
            Record::Found(value) => results.found(index, value)?,
            Record::Absent => results.without(EmptyOutcome::Absent),
            Record::Error(error) => results.without(EmptyOutcome::Error(error)),
            Record::Unanswered => results.without(EmptyOutcome::Unanswered),
            Record::Unsent => results.without(EmptyOutcome::Unsent),
        }
    }
    results.finish()
}

/// Returns the indexes of the best of `records`, which hold the results of `computation` for `keys`, best first: the
/// greatest scores, and of equal scores the least keys. The values of the others are dropped. A record without a score is
/// not among the best.
///
/// # Errors
/// If a record is not a valid result of the computation.
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
    for (index, record) in records.iter().enumerate() {
        if let Record::Found(value) = record
            && let Some(score) = computation.score(value)?
        {
            ranked.push(RankedRecord {
                score,
                key: Reverse(keys.key(index)),
                index: Reverse(index as u32),
                slot: 0,
            });
        }
    }
    ranked.sort_unstable_by(|a, b| b.cmp(a));
    ranked.truncate(computation.k().unwrap_or(usize::MAX));
    let indexes: Vec<u32> = ranked.iter().map(|ranked| ranked.index.0).collect();
    records.keep(&indexes);
    Ok(indexes)
}

/// The results so far, key by key.
struct Results<'k, 'p> {
    keys: LookupKeys<'k>,
    plan: &'p RecordPlan<'p>,
    room: Room,
    /// The buffer of the current result.
    result: Vec<u8>,
    kept: Kept<'k>,
}

enum Kept<'k> {
    /// The results of all records.
    All(RecordsBuilder),
    /// The results of the best records.
    Best(Best<'k>),
}

impl<'k, 'p> Results<'k, 'p> {
    fn new(keys: LookupKeys<'k>, plan: &'p RecordPlan<'p>, room: Room) -> Self {
        let kept = match plan.computation().k() {
            None => Kept::All(RecordsBuilder::with_room(keys.len(), room.enough)),
            Some(k) => Kept::Best(Best::new(k, keys.len())),
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

    /// Notes that the next key has no result.
    fn without(&mut self, why: EmptyOutcome) {
        match &mut self.kept {
            Kept::All(records) => why.put(records),
            Kept::Best(best) => best.pass(why),
        }
    }

    /// Takes the record of the next key, which is at `index`.
    fn found(&mut self, index: usize, record: &[u8]) -> Result<(), EvaluateError> {
        match self.take(index, record) {
            Ok(true) => Ok(()),
            Ok(false) => Err(EvaluateError::TooLarge { max: self.room.bytes_max }),
            Err(stopped) => {
                self.without(EmptyOutcome::Error(error_of(&stopped)));
                Ok(())
            }
        }
    }

    /// Takes a record. Returns `false` if the results exceed the room.
    fn take(&mut self, index: usize, record: &[u8]) -> Result<bool, NoResult> {
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
                let ranked =
                    score.map(|score| RankedRecord { score, key, index: Reverse(index as u32), slot: 0 });
                if let Some(ranked) = ranked.filter(|ranked| best.takes(ranked)) {
                    self.plan.write(record, &mut self.result)?;
                    best.keep(ranked, &mut self.result);
                }
                best.pass(EmptyOutcome::Unsent);
                Ok(best.bytes() <= self.room.bytes_max)
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

/// Translates a failure into the error of the key. A record that does not decode has passed its checksum, but counts as
/// damaged.
fn error_of(stopped: &NoResult) -> RecordError {
    match stopped {
        NoResult::Fault(fault) => RecordError::Dimensions(*fault),
        NoResult::Damaged(_) => RecordError::Damaged,
    }
}
