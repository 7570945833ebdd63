//! Counts by value or bucket, and how the counts of several nodes are added.

use crate::Records;
use kith_schema::Scalar;
use kith_schema::compute::{Aggregation, GroupBy, order};
use kith_types::ByteKeys;
use std::collections::HashMap;

/// The result of an aggregation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The outcome of each key. Keys whose records were counted are [`crate::Record::Unsent`].
    pub records: Records,
    /// The distinct values, encoded, ascending by bytes; empty if buckets were counted.
    pub values: ByteKeys,
    /// The count of each value, or else of each bucket of the plan.
    pub counts: Vec<u64>,
    /// Whether there were more distinct values than are kept. Those beyond are not counted; the counts of the kept values
    /// are exact.
    pub truncated: bool,
}

impl Groups {
    /// The most distinct values that are kept, on one node and for all nodes together.
    pub const VALUES_MAX: usize = 100_000;
    /// The most bytes of these values.
    pub const VALUE_BYTES_MAX: usize = 16 << 20;

    /// Whether the result fits the plan: values ascend and have one count each, or there is one count per bucket.
    pub fn fits(&self, by: &GroupBy) -> bool {
        match by {
            GroupBy::Bucket(buckets) => self.values.is_empty() && self.counts.len() == buckets.len(),
            GroupBy::Value { .. } => {
                self.counts.len() == self.values.len()
                    && self.values.iter().zip(self.values.iter().skip(1)).all(|(a, b)| a < b)
            }
        }
    }

    /// The values with the highest counts, as many as the plan wants. Of equal counts, the least values come first.
    ///
    /// # Errors
    /// A description of the fault if the bytes of a value do not decode with the field's type.
    pub fn top(&self, aggregation: &Aggregation) -> Result<Vec<(Scalar<'_>, u64)>, &'static str> {
        let GroupBy::Value { top } = aggregation.plan().by else { return Ok(Vec::new()) };
        let values = self.values.iter().zip(&self.counts);
        let mut all = values
            .map(|(value, count)| Ok((aggregation.value(value)?, *count)))
            .collect::<Result<Vec<_>, &'static str>>()?;
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| order(a.0, b.0)));
        all.truncate(top as usize);
        Ok(all)
    }
}

/// Counts under way.
#[derive(Debug)]
pub(crate) struct Tally {
    kept: Kept,
    truncated: bool,
}

#[derive(Debug)]
enum Kept {
    Values { counts: HashMap<Vec<u8>, u64>, bytes: usize },
    Buckets(Vec<u64>),
}

impl Tally {
    /// Begins counts of this many buckets, or of values.
    pub fn new(buckets: Option<usize>) -> Self {
        let kept = match buckets {
            Some(count) => Kept::Buckets(vec![0; count]),
            None => Kept::Values { counts: HashMap::new(), bytes: 0 },
        };
        Self { kept, truncated: false }
    }

    pub fn add_to_bucket(&mut self, index: usize, count: u64) {
        if let Kept::Buckets(counts) = &mut self.kept {
            counts[index] += count;
        }
    }

    pub fn add_value(&mut self, value: &[u8], count: u64) {
        let Kept::Values { counts, bytes } = &mut self.kept else { return };
        if let Some(known) = counts.get_mut(value) {
            *known += count;
        } else if counts.len() < Groups::VALUES_MAX && value.len() <= Groups::VALUE_BYTES_MAX - *bytes {
            *bytes += value.len();
            counts.insert(value.to_vec(), count);
        } else {
            self.truncated = true;
        }
    }

    /// Adds the counts of a node.
    #[cfg(feature = "nodes")]
    pub fn add(&mut self, part: &Groups) {
        self.truncated |= part.truncated;
        match &self.kept {
            Kept::Buckets(_) => {
                (0..).zip(&part.counts).for_each(|(index, &count)| self.add_to_bucket(index, count))
            }
            Kept::Values { .. } => {
                part.values.iter().zip(&part.counts).for_each(|(value, &count)| self.add_value(value, count))
            }
        }
    }

    pub fn finish(self, records: Records) -> Groups {
        let truncated = self.truncated;
        match self.kept {
            Kept::Buckets(counts) => Groups { records, values: ByteKeys::default(), counts, truncated },
            Kept::Values { counts, bytes } => {
                let mut all: Vec<(Vec<u8>, u64)> = counts.into_iter().collect();
                all.sort_unstable();
                let mut values = ByteKeys::with_capacity(all.len(), bytes);
                all.iter().for_each(|(value, _)| values.push(value));
                let counts = all.into_iter().map(|(_, count)| count).collect();
                Groups { records, values, counts, truncated }
            }
        }
    }
}
