//! Counts over a node's share of the keys, or over fetched records.

use super::lookup::{ReadOutcome, read};
use crate::groups::{Groups, Tally};
use crate::records::RecordsBuilder;
use crate::{EvaluateError, Record, RecordError, Records};
use kith_schema::compute::{Aggregate, code};
use kith_schema::{LookupKeys, ValueSource};
use std::ops::ControlFlow;

/// Counts the values of the records of `keys`; a repeated key counts each time. A damaged record is an error of its key and
/// counts nothing. `O(keys + values)` time; memory for the distinct values, which are bounded.
///
/// # Errors
/// Those of [`super::lookup()`].
pub fn aggregate(
    keys: LookupKeys<'_>,
    source: &dyn ValueSource,
    plan: &Aggregate<'_>,
    cancelled: &dyn Fn() -> bool,
) -> Result<Groups, EvaluateError> {
    let mut counting = Counting::new(keys.len(), plan);
    read(keys, source, false, cancelled, &mut |_, value| {
        match value {
            ReadOutcome::Found(value) => counting.found(value.bytes),
            ReadOutcome::Absent => counting.records.absent(),
            ReadOutcome::Damaged => counting.records.error(RecordError::Damaged),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(counting.finish())
}

/// Counts in the same way as [`aggregate`], over records that were looked up.
pub fn aggregate_fetched(fetched: &Records, plan: &Aggregate<'_>) -> Groups {
    let mut counting = Counting::new(fetched.len(), plan);
    for record in fetched.iter() {
        match record {
            Record::Found(value) => counting.found(value),
            Record::Absent => counting.records.absent(),
            Record::Error(error) => counting.records.error(error),
            Record::Unanswered => counting.records.unanswered(),
            Record::Unsent => counting.records.unsent(),
        }
    }
    counting.finish()
}

struct Counting<'p> {
    plan: &'p Aggregate<'p>,
    /// The outcome of each key, without values.
    records: RecordsBuilder,
    tally: Tally,
    value: Vec<u8>,
}

impl<'p> Counting<'p> {
    fn new(keys: usize, plan: &'p Aggregate<'p>) -> Self {
        let tally = Tally::new(plan.aggregation().buckets().map(<[_]>::len));
        Self { plan, records: RecordsBuilder::with_capacity(keys), tally, value: Vec::new() }
    }

    fn found(&mut self, record: &[u8]) {
        let (tally, coded) = (&mut self.tally, &mut self.value);
        let counted = match self.plan.aggregation().buckets() {
            Some(buckets) => self.plan.values(record, |value| {
                for (index, bucket) in buckets.iter().enumerate() {
                    if bucket.predicate.holds(value) {
                        tally.add_to_bucket(index, 1);
                    }
                }
            }),
            None => self.plan.values(record, |value| {
                code(value, coded);
                tally.add_value(coded, 1);
            }),
        };
        match counted {
            Ok(()) => self.records.unsent(),
            Err(_) => self.records.error(RecordError::Damaged),
        }
    }

    fn finish(self) -> Groups {
        self.tally.finish(self.records.finish())
    }
}
