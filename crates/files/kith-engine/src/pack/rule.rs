//! The rule for which logical files share a pack. It depends on their sizes alone, so that every builder makes the same
//! packs.

use kith_types::PartitionId;

/// Logical files begin at multiples of this: one cache line, so that the lines of an index stay aligned.
const ALIGN: u64 = 64;

/// A partition of at least this size has a pack of its own, which can be linked, moved and freed separately.
const ALONE_BYTES: u64 = 1 << 20;

/// The most bytes of a shared pack. It is small so that moving a few small partitions copies little else.
const JOINED_BYTES_MAX: u64 = 64 << 20;

/// The largest logical file that a manifest may list. The sum of as many as fit into memory does not overflow.
pub const FILE_BYTES_MAX: u64 = 1 << 42;

/// The place of a logical file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackPlace {
    /// The number of the pack.
    pub pack: u32,
    /// The offset of the first byte.
    pub offset: u64,
}

/// Places files, given as partition (or none) and size in the order of their names. Also returns the sizes of the packs.
///
/// A partition of 1 MiB or more has a pack of its own; smaller neighbours share a pack of at most 64 MiB.
pub fn place(files: &[(Option<PartitionId>, u64)]) -> (Vec<PackPlace>, Vec<u64>) {
    let mut places = Vec::with_capacity(files.len());
    let mut packs: Vec<u64> = Vec::new();
    let mut open_to_others = false;
    for partition in files.chunk_by(|a, b| a.0 == b.0) {
        let bytes = partition.iter().fold(0u64, |sum, &(_, bytes)| aligned(sum).saturating_add(bytes));
        let alone = bytes >= ALONE_BYTES;
        let joins = open_to_others
            && !alone
            && packs.last().is_some_and(|&end| aligned(end).saturating_add(bytes) <= JOINED_BYTES_MAX);
        if !joins {
            packs.push(0);
        }
        open_to_others = !alone;
        let pack = (packs.len() - 1) as u32;
        let end = packs.last_mut().expect("one was just opened, or there was one to join");
        for &(_, bytes) in partition {
            let offset = aligned(*end);
            places.push(PackPlace { pack, offset });
            *end = offset.saturating_add(bytes);
        }
    }
    (places, packs)
}

fn aligned(offset: u64) -> u64 {
    offset.checked_next_multiple_of(ALIGN).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn files_neither_overlap_nor_leave_gaps_and_packs_keep_to_the_rule(
            sizes in prop::collection::vec((0u32..40, prop_oneof![0u64..300_000, 0u64..3_000_000]), 0..200),
        ) {
            let mut files: Vec<_> = sizes.into_iter().map(|(at, bytes)| (Some(PartitionId(at)), bytes)).collect();
            files.sort_by_key(|file| file.0);
            let (places, packs) = place(&files);
            prop_assert_eq!(places.len(), files.len());
            let mut ends = vec![0u64; packs.len()];
            for (position, &(_, bytes)) in places.iter().zip(&files) {
                let end = &mut ends[position.pack as usize];
                prop_assert_eq!(position.offset % 64, 0);
                prop_assert!(*end <= position.offset && position.offset < *end + 64);
                *end = position.offset + bytes;
            }
            prop_assert_eq!(&ends, &packs);
            prop_assert!(places.is_sorted_by_key(|position| (position.pack, position.offset)));
            // No two adjacent packs could have been one.
            let holders = |pack: u32| {
                let held = places.iter().zip(&files).filter(move |(position, _)| position.pack == pack);
                held.map(|(_, file)| file.0).collect::<std::collections::BTreeSet<_>>()
            };
            for (number, pair) in (0u32..).zip(packs.windows(2)) {
                prop_assert!(holders(number).is_disjoint(&holders(number + 1)), "a partition is never torn");
                prop_assert!(pair[0].max(pair[1]) >= ALONE_BYTES || pair[0] + pair[1] + 64 > JOINED_BYTES_MAX);
                prop_assert!(pair[0] < ALONE_BYTES || pair[0] <= JOINED_BYTES_MAX || holders(number).len() == 1);
            }
        }
    }

    #[test]
    fn a_small_store_over_many_partitions_is_one_pack() {
        let files: Vec<_> =
            (0..1_024).flat_map(|at| [(Some(PartitionId(at)), 500), (Some(PartitionId(at)), 184)]).collect();
        assert_eq!(place(&files).1.len(), 1);
    }

    #[test]
    fn sizes_that_cannot_be_do_not_overflow() {
        let files: Vec<_> = (0..4).map(|at| (Some(PartitionId(at)), u64::MAX - 3)).collect();
        assert_eq!(place(&files).1.len(), 4);
    }
}
