//! The share of a fan-out that one node works on, and its limits.

use crate::EvaluateError;
use kith_types::{PartitionCount, PartitionId};

/// The share of a fan-out that one node works on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share<'a> {
    /// The keys that the request carries, distinct, in its order: [`crate::Operator::Keys`].
    pub keys: &'a [u64],
    /// The partitions that [`crate::Operator::Postings`] and [`crate::Operator::Members`] read, distinct.
    pub partitions: &'a [PartitionId],
}

impl Share<'_> {
    /// The most keys of a share: far more than any member has connections; 32 MiB.
    pub const KEYS_MAX: usize = 1 << 22;

    /// Refuses shares that no client sends, before anything is read, so that the cost of an answer is bounded by its
    /// request. `O(keys log keys + partitions)`; `O(keys)` if the keys ascend.
    ///
    /// # Errors
    /// [`EvaluateError::TooMany`], [`EvaluateError::Repeated`], [`EvaluateError::UnknownPartition`].
    pub fn check(&self, partition_count: PartitionCount) -> Result<(), EvaluateError> {
        self.check_partitions(partition_count)?;
        self.check_keys()
    }

    fn check_partitions(&self, count: PartitionCount) -> Result<(), EvaluateError> {
        let max = count.get() as usize;
        if max < self.partitions.len() {
            return Err(EvaluateError::TooMany { what: "partitions", got: self.partitions.len(), max });
        }
        let mut named = vec![false; if self.partitions.is_empty() { 0 } else { max }];
        for &partition in self.partitions {
            match named.get_mut(partition.index()) {
                None => return Err(EvaluateError::UnknownPartition { partition, last: count.get() - 1 }),
                Some(true) => {
                    return Err(EvaluateError::Repeated { what: "partition", which: partition.0.into() });
                }
                Some(named) => *named = true,
            }
        }
        Ok(())
    }

    fn check_keys(&self) -> Result<(), EvaluateError> {
        if Self::KEYS_MAX < self.keys.len() {
            return Err(EvaluateError::TooMany { what: "keys", got: self.keys.len(), max: Self::KEYS_MAX });
        }
        if self.keys.is_sorted_by(|a, b| a < b) {
            return Ok(());
        }
        let mut sorted = self.keys.to_vec();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(()),
            Some(pair) => Err(EvaluateError::Repeated { what: "key", which: pair[0] }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(keys: &[u64], partitions: &[u32], count: u32) -> Result<(), EvaluateError> {
        let partitions: Vec<PartitionId> = partitions.iter().copied().map(PartitionId).collect();
        Share { keys, partitions: &partitions }.check(PartitionCount::new(count).expect("a valid count"))
    }

    proptest! {
        #[test]
        fn shares_are_of_distinct_keys_and_partitions_that_exist(
            keys in prop::collection::vec(0u64..30, 0..8),
            partitions in prop::collection::vec(0u32..9, 0..8),
        ) {
            let is_right = keys.iter().collect::<BTreeSet<_>>().len() == keys.len()
                && partitions.iter().collect::<BTreeSet<_>>().len() == partitions.len()
                && partitions.iter().all(|partition| *partition < 6);
            prop_assert_eq!(check(&keys, &partitions, 6).is_ok(), is_right);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let repeated = |what, which| Err(EvaluateError::Repeated { what, which });
        assert_eq!(check(&[3, 1, 3], &[], 4), repeated("key", 3));
        assert_eq!(check(&[], &[2, 0, 2], 4), repeated("partition", 2));
        let unknown = EvaluateError::UnknownPartition { partition: PartitionId(u32::MAX), last: 3 };
        assert_eq!(check(&[], &[u32::MAX], 4), Err(unknown));
        let many = EvaluateError::TooMany { what: "partitions", got: 5, max: 4 };
        assert_eq!(check(&[], &[0; 5], 4), Err(many));
        let max = Share::KEYS_MAX;
        let keys: Vec<u64> = (0..=max as u64).collect();
        assert_eq!(check(&keys[1..], &[], 4), Ok(()));
        assert_eq!(check(&keys, &[], 4), Err(EvaluateError::TooMany { what: "keys", got: max + 1, max }));
    }
}
