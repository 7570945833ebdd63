//! A record of one end of an edge.

use crate::sort::{SortRecord, take_word};
use kith_types::{PartitionCount, partition_of_id, position_of_key};
use std::cmp::Ordering;

/// A list entry with `N` column values: `neighbour` belongs to the list of `key`.
///
/// The order is that of the files: partition, list, position of the key, key, neighbour; then columns, so that of equal
/// edges the one with the greatest columns comes last; then the order of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeRecord<const N: usize> {
    /// Partition, 16 bits | list, 1 | upper bits of the position, 46 | reversed, 1.
    prefix: u64,
    pub(super) key: u64,
    pub(super) neighbour: u64,
    pub(super) columns: [u64; N],
}

const POSITION_BITS: u32 = 46;

/// The list of a partition: its index in `lists_of(role)`, below the bits of the partition.
pub(super) type ListTag = u64;

/// The tag of a partition's list.
pub(super) fn list_tag(partition: u32, list_index: usize) -> ListTag {
    u64::from(partition) << 1 | list_index as u64
}

/// The sort prefix of a key's records. It is computed once per end of an edge.
pub(super) fn prefix_of(key: u64, list_index: usize, partitions: PartitionCount) -> u64 {
    let tag = list_tag(partition_of_id(key, partitions).0, list_index);
    let position = position_of(key) >> (u64::BITS - POSITION_BITS);
    (tag << POSITION_BITS | position) << 1
}

fn position_of(key: u64) -> u64 {
    position_of_key(&key.to_le_bytes())
}

impl<const N: usize> EdgeRecord<N> {
    /// `prefix` is the [`prefix_of`] the key; `reversed` means that the input had the ends in the opposite order.
    pub(super) fn new(prefix: u64, key: u64, neighbour: u64, columns: [u64; N], reversed: bool) -> Self {
        EdgeRecord { prefix: prefix | u64::from(reversed), key, neighbour, columns }
    }

    pub(super) fn tag(&self) -> ListTag {
        self.prefix >> (POSITION_BITS + 1)
    }

    pub(super) fn is_reversed(&self) -> bool {
        self.prefix & 1 == 1
    }

    /// Compares keys whose positions agree in the upper bits. Such keys are nearly always equal.
    #[cold]
    fn cmp_keys(&self, other: &Self) -> Ordering {
        (position_of(self.key), self.key).cmp(&(position_of(other.key), other.key))
    }
}

impl<const N: usize> Ord for EdgeRecord<N> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let prefixes = (self.prefix >> 1).cmp(&(other.prefix >> 1));
        if prefixes != Ordering::Equal {
            return prefixes;
        }
        if self.key != other.key {
            return self.cmp_keys(other);
        }
        let edges = self.neighbour.cmp(&other.neighbour);
        edges.then_with(|| self.columns.cmp(&other.columns)).then_with(|| self.prefix.cmp(&other.prefix))
    }
}

impl<const N: usize> PartialOrd for EdgeRecord<N> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const N: usize> SortRecord for EdgeRecord<N> {
    const BYTES: usize = (3 + N) * 8;

    fn put(&self, out: &mut Vec<u8>) {
        [self.prefix, self.key, self.neighbour].put(out);
        self.columns.put(out);
    }

    fn take(bytes: &[u8]) -> Self {
        EdgeRecord {
            prefix: take_word(bytes, 0),
            key: take_word(bytes, 1),
            neighbour: take_word(bytes, 2),
            columns: std::array::from_fn(|column| take_word(bytes, 3 + column)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The order by its definition, computed slowly and plainly.
    fn slow_key<const N: usize>(
        record: &EdgeRecord<N>,
        partitions: PartitionCount,
    ) -> (u32, u64, u64, u64, u64, [u64; N], bool) {
        let partition = partition_of_id(record.key, partitions).0;
        let list = record.tag() & 1;
        let reversed = record.is_reversed();
        (partition, list, position_of(record.key), record.key, record.neighbour, record.columns, reversed)
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_files(
            ends in prop::collection::vec((0u64..6, 0u64..4, 0usize..2, 0u64..2, any::<bool>()), 2..40),
            count in 1u32..=65_536,
        ) {
            let partitions = PartitionCount::new(count).unwrap();
            let records: Vec<EdgeRecord<1>> = ends.iter().map(|&(key, neighbour, list, column, reversed)| {
                EdgeRecord::new(prefix_of(key, list, partitions), key, neighbour, [column], reversed)
            }).collect();
            for pair in records.windows(2) {
                let expected = slow_key(&pair[0], partitions).cmp(&slow_key(&pair[1], partitions));
                prop_assert_eq!(pair[0].cmp(&pair[1]), expected);
                let mut bytes = Vec::new();
                pair[0].put(&mut bytes);
                prop_assert_eq!(EdgeRecord::<1>::take(&bytes), pair[0]);
                prop_assert_eq!(pair[0].tag() >> 1, u64::from(partition_of_id(pair[0].key, partitions).0));
            }
        }
    }

    #[test]
    fn keys_with_one_prefix_are_ordered_by_their_whole_position() {
        let (a, b) = (EdgeRecord::new(2, 10, 0, [], false), EdgeRecord::new(2, 11, 0, [], false));
        assert_eq!(a.cmp(&b), position_of(10).cmp(&position_of(11)));
        assert_eq!(b.cmp(&a), position_of(11).cmp(&position_of(10)));
    }
}
