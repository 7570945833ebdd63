//! Ids of new objects, derived from the id of the write that creates them.

use crate::WriteId;
use kith_types::{PartitionCount, PartitionId, fmix64_inverse, partition_of_hash};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seeds of two independent hashes of a write id: the first hash chooses the partition, the second one the id in that
/// partition.
const PARTITION_SEED: u64 = 0x6b69_7468_0001;
const ID_SEED: u64 = 0x6b69_7468_0002;

/// The maximum number of ids that are tried. Each is small enough with a probability of one half.
const ATTEMPTS_MAX: u64 = 128;

/// Returns the id of the object that the write with this write id creates. The object lies in the partition `near`, or, if
/// that is `None`, in a partition that a hash of the write id's text chooses: clients must know the partition, and do not know
/// under which subject the cluster knows them. The same text of two subjects gives two ids. A repeat of the write gets the same object id. The id
/// is below 2⁶³: many languages and drivers have no unsigned numbers.
pub fn new_object_id(write_id: &WriteId, near: Option<PartitionId>, count: PartitionCount) -> u64 {
    let recorded = write_id.recorded();
    let (text, bytes) = (write_id.as_str().as_bytes(), recorded.as_str().as_bytes());
    let partition = near.unwrap_or_else(|| partition_of_hash(xxh3_64_with_seed(text, PARTITION_SEED), count));
    let (first, after) = (hashes_from(partition.0, count), hashes_from(partition.0 + 1, count));
    let id = |attempt| {
        let inside = (u128::from(xxh3_64_with_seed(bytes, ID_SEED + attempt)) * (after - first)) >> 64;
        // The sum is below 2⁶⁴, because `inside` is less than the width of the partition.
        fmix64_inverse((first + inside) as u64)
    };
    (0..ATTEMPTS_MAX).map(id).find(|id| i64::try_from(*id).is_ok()).unwrap_or_else(|| id(0))
}

/// Returns the smallest hash of a partition: the smallest `h` for which `h × count >> 64` equals the partition's number.
fn hashes_from(partition: u32, count: PartitionCount) -> u128 {
    (u128::from(partition) << 64).div_ceil(u128::from(count.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::partition_of_id;
    use std::collections::BTreeSet;

    #[test]
    fn ids_lie_in_their_partition_and_differ() {
        for count in [1, 3, 64, 1_536, 65_536].map(|count| PartitionCount::new(count).unwrap()) {
            let mut ids = BTreeSet::new();
            let mut partitions = BTreeSet::new();
            for number in 0..500 {
                let write_id: WriteId = format!("write-{number}").parse().unwrap();
                let id = new_object_id(&write_id, None, count);
                assert_eq!(id, new_object_id(&write_id, None, count), "a repeat gets the same id");
                partitions.insert(partition_of_id(id, count));
                ids.insert(id);
                let near = PartitionId(number % count.get());
                let id = new_object_id(&write_id, Some(near), count);
                assert_eq!(partition_of_id(id, count), near);
                ids.insert(id);
            }
            assert!(ids.iter().all(|id| i64::try_from(*id).is_ok()), "{ids:?}");
            assert!(500 <= ids.len(), "{} ids of 500 writes", ids.len());
            assert!(count.get().min(60) as usize <= partitions.len());
        }
    }

    #[test]
    fn the_same_name_of_two_subjects_gives_two_ids_in_one_partition() {
        let count = PartitionCount::new(24).unwrap();
        let id = |subject: &str, text: &str| {
            let name: WriteId = text.parse().unwrap();
            new_object_id(&name.of_subject(subject.to_owned()), None, count)
        };
        let ids: BTreeSet<u64> = ["", "ada", "bob"].map(|subject| id(subject, "w-1")).into();
        assert_eq!(ids.len(), 3);
        let partitions: BTreeSet<_> = ids.iter().map(|id| partition_of_id(*id, count)).collect();
        assert_eq!(partitions.len(), 1);
        assert_eq!(id("ada", "w-1"), id("ada", "w-1"));
        let recorded = |subject: &str, text: &str| {
            let name: WriteId = text.parse().unwrap();
            name.of_subject(subject.to_owned()).recorded()
        };
        assert_eq!(recorded("", "w-1").as_str(), "w-1");
        assert_ne!(recorded("ada", "w-1"), recorded("adaw", "-1"));
        assert!(recorded("ada", "w-1").as_str().parse::<WriteId>().is_ok(), "it can be stored as any name");
    }
}
