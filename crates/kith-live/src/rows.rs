//! The rows of a live graph, as databases store them and caches keep them.

use crate::TypeId;
use kith_types::{LogPoint, PartitionCount, PartitionId, partition_of_id};
use std::sync::Arc;

/// The fields of an object or association: a record (`docs/formats/record.md`), and which schema of its type it was written
/// under. No bytes stand for a record without fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Data {
    /// The schema, as an index into [`crate::ObjectType::schemas`] or [`crate::AssociationType::schemas`].
    pub schema: u16,
    /// The record. Clones share it.
    pub bytes: Arc<[u8]>,
}

/// An object (TAO §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its id, unique over all types.
    pub id: u64,
    /// Its type.
    pub kind: TypeId,
    /// The change that wrote it last.
    pub stamp: LogPoint,
    /// Its fields.
    pub data: Data,
}

/// An association, in the list that it belongs to (TAO §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// The object that it leads to.
    pub id2: u64,
    /// What the list is ordered by: milliseconds since 1970 by convention.
    pub time: u64,
    /// The change that wrote it last. Both directions of a two-sided association have the same one, which is a place in the
    /// log of the partition that orders the pair.
    pub stamp: LogPoint,
    /// Its fields.
    pub data: Data,
}

impl Association {
    /// Its place in its list.
    pub fn place(&self) -> ListPlace {
        ListPlace { time: self.time, id2: self.id2 }
    }
}

/// An association list: all associations of one type that leave one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListKey {
    /// The object.
    pub id1: u64,
    /// The type.
    pub kind: TypeId,
}

impl ListKey {
    /// The association of this list that leads to `id2`.
    pub fn to(self, id2: u64) -> AssociationKey {
        AssociationKey { list: self, id2 }
    }
}

/// Names one association: there is at most one between two objects per type and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationKey {
    /// The list that it belongs to.
    pub list: ListKey,
    /// The object that it leads to.
    pub id2: u64,
}

/// A place in an association list. Lists are sorted by descending time; of equal times the smaller id comes first. A place
/// comes before another if it is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListPlace {
    /// The time of the association there.
    pub time: u64,
    /// The object that it leads to.
    pub id2: u64,
}

impl Ord for ListPlace {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.time.cmp(&self.time).then(self.id2.cmp(&other.id2))
    }
}

impl PartialOrd for ListPlace {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Two different objects, in whichever order. All two-sided associations between them are ordered by the leader of the
/// smaller id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    low: u64,
    high: u64,
}

impl Pair {
    /// The pair of two objects; `None` if they are the same.
    pub fn of(one: u64, other: u64) -> Option<Self> {
        (one != other).then(|| Self { low: one.min(other), high: one.max(other) })
    }

    /// The smaller id.
    pub fn low(self) -> u64 {
        self.low
    }

    /// The greater id.
    pub fn high(self) -> u64 {
        self.high
    }

    /// The partition whose leader orders writes to the pair, and the other end's partition. They may be the same.
    pub fn partitions(self, count: PartitionCount) -> (PartitionId, PartitionId) {
        (partition_of_id(self.low, count), partition_of_id(self.high, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_newest_first_and_ties_are_by_ascending_id() {
        let mut places = [(5, 9), (7, 3), (7, 1), (0, 0)].map(|(time, id2)| ListPlace { time, id2 });
        places.sort();
        assert_eq!(places.map(|place| (place.time, place.id2)), [(7, 1), (7, 3), (5, 9), (0, 0)]);
    }

    #[test]
    fn a_pair_is_the_same_from_both_ends() {
        assert_eq!(Pair::of(9, 4), Pair::of(4, 9));
        assert_eq!(Pair::of(9, 4).map(|pair| (pair.low(), pair.high())), Some((4, 9)));
        assert_eq!(Pair::of(4, 4), None);
    }
}
