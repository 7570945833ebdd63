//! Ids of new objects, derived from the id of the write that creates them; and the numbers that stand for ids that are texts.

use crate::{TextId, WriteId};
use kith_types::{PartitionCount, PartitionId, fmix64_inverse, partition_of_hash, partition_of_id};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The seeds of two independent hashes of a write id: the first hash chooses the partition, the second one the id in that
/// partition.
const PARTITION_SEED: u64 = 0x6b69_7468_0001;
const ID_SEED: u64 = 0x6b69_7468_0002;

/// The seeds of the hashes of ids that are texts.
const FIRST_TEXT_SEED: u64 = 0x6b69_7468_0003;
const SECOND_TEXT_SEED: u64 = 0x6b69_7468_0100;
/// The bit that is set in the numbers of texts, and not in those of objects that get their ids from Kith.
const TEXT_ID_BIT: u64 = 1 << 63;

/// The maximum number of ids that are tried. Each is in the wanted range with a probability of one half.
const ATTEMPTS_MAX: u64 = 128;

/// Returns the id of the object that the write with this write id creates. The object lies in the partition `near`, or, if
/// that is `None`, in a partition that a hash of the write id's text chooses: clients must know the partition, and do not know
/// under which subject the cluster knows them. The same text of two subjects gives two ids. A repeat of the write gets the same object id. The id
/// is below 2⁶³: many languages and drivers have no unsigned numbers.
pub fn new_object_id(write_id: &WriteId, near: Option<PartitionId>, count: PartitionCount) -> u64 {
    let recorded = write_id.recorded();
    let (text, bytes) = (write_id.as_str().as_bytes(), recorded.as_str().as_bytes());
    let partition = near.unwrap_or_else(|| partition_of_hash(xxh3_64_with_seed(text, PARTITION_SEED), count));
    let id = |attempt| id_in(partition, xxh3_64_with_seed(bytes, ID_SEED + attempt), count);
    (0..ATTEMPTS_MAX).map(id).find(|id| *id < TEXT_ID_BIT).unwrap_or_else(|| id(0))
}

/// Returns the numbers that may stand for an id that is a text, in the order in which they are tried, if the partition has not
/// given the first one to another text with the same hash. Both lie in one partition, so its leader can decide. Digits stand for
/// themselves only. Numbers of other texts are at least 2⁶³, where few other ids are.
pub fn text_id_numbers(id: &TextId, count: PartitionCount) -> (u64, Option<u64>) {
    if let Some(number) = id.digits() {
        return (number, None);
    }
    let text = id.as_str().as_bytes();
    let first = xxh3_64_with_seed(text, FIRST_TEXT_SEED) | TEXT_ID_BIT;
    let partition = partition_of_id(first, count);
    let second = |attempt| id_in(partition, xxh3_64_with_seed(text, SECOND_TEXT_SEED + attempt), count);
    let is_high = |id: &u64| TEXT_ID_BIT <= *id;
    let second = (0..ATTEMPTS_MAX).map(second).find(is_high).unwrap_or_else(|| second(0));
    (first, Some(second).filter(|second| *second != first))
}

/// Returns the id in a partition that a hash chooses.
fn id_in(partition: PartitionId, hash: u64, count: PartitionCount) -> u64 {
    let (first, after) = (hashes_from(partition.0, count), hashes_from(partition.0 + 1, count));
    let inside = (u128::from(hash) * (after - first)) >> 64;
    // The sum is below 2⁶⁴, because `inside` is less than the width of the partition.
    fmix64_inverse((first + inside) as u64)
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
