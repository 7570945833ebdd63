//! The rows of a live graph, as databases store them and caches keep them.

use crate::{ListPlace, TypeId};
use kith_types::{LogPoint, PartitionCount, PartitionId, partition_of_id};
use std::sync::Arc;

/// The fields of an object or association: a record (`docs/formats/record.md`), and the schema of its type that it was
/// written with. An empty record has no fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Data {
    /// The schema of the record, as an index into [`crate::ObjectType::schemas`] or [`crate::AssociationType::schemas`].
    pub schema: u16,
    /// The bytes of the record. Clones share them.
    pub bytes: Arc<[u8]>,
}

/// An object (TAO §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The id of the object. No two objects of a graph have the same id, whatever their types.
    pub id: u64,
    /// The type of the object.
    pub kind: TypeId,
    /// The log point of the change that wrote the object last.
    pub stamp: LogPoint,
    /// The fields of the object.
    pub data: Data,
}

/// An association, in the list that it belongs to (TAO §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Association {
    /// The object that the association leads to.
    pub id2: u64,
    /// The time by which the list is ordered; by convention, in milliseconds since 1970.
    pub time: u64,
    /// The log point of the change that wrote the association last. Both directions of a two-sided association have the same
    /// stamp, which is a log point of the partition that orders the pair.
    pub stamp: LogPoint,
    /// The fields of the association.
    pub data: Data,
}

impl Association {
    /// Returns the place of the association in its list.
    pub fn place(&self) -> ListPlace {
        ListPlace { time: self.time, id2: self.id2 }
    }
}

/// An association list: all associations of one type that leave one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListKey {
    /// The object that the associations leave.
    pub id1: u64,
    /// The type of the associations.
    pub kind: TypeId,
}

impl ListKey {
    /// Returns the key of the association of this list that leads to `id2`.
    pub fn to(self, id2: u64) -> AssociationKey {
        AssociationKey { list: self, id2 }
    }
}

/// Names one association: there is at most one between two objects per type and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationKey {
    /// The list that the association belongs to.
    pub list: ListKey,
    /// The object that the association leads to.
    pub id2: u64,
}

/// The number of an index. No two indexes of a graph have the same number, and no number is used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexId(pub u32);

/// One object in an index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexEntry {
    /// The index.
    pub index: IndexId,
    /// The key of the object's value in the index ([`crate::GraphTypes::entries`]), at most
    /// [`crate::INDEX_KEY_BYTES_MAX`] bytes.
    pub key: Arc<[u8]>,
    /// The object.
    pub id: u64,
    /// Whether no other object of the graph may have the value.
    pub unique: bool,
}

/// The object that has a unique value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UniqueHolder {
    /// The index.
    pub index: IndexId,
    /// The key of the value.
    pub key: Arc<[u8]>,
    /// The object.
    pub id: u64,
}

/// Two different objects, in no particular order. The leader of the partition of the smaller id orders all writes to
/// two-sided associations between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    low: u64,
    high: u64,
}

impl Pair {
    /// Returns the pair of two objects; `None` if they are the same object.
    pub fn of(one: u64, other: u64) -> Option<Self> {
        (one != other).then(|| Self { low: one.min(other), high: one.max(other) })
    }

    /// Returns the smaller id.
    pub fn low(self) -> u64 {
        self.low
    }

    /// Returns the greater id.
    pub fn high(self) -> u64 {
        self.high
    }

    /// Returns the partition whose leader orders writes to the pair, and the partition of the other end. They may be the
    /// same.
    pub fn partitions(self, count: PartitionCount) -> (PartitionId, PartitionId) {
        (partition_of_id(self.low, count), partition_of_id(self.high, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_the_same_from_both_ends() {
        assert_eq!(Pair::of(9, 4), Pair::of(4, 9));
        assert_eq!(Pair::of(9, 4).map(|pair| (pair.low(), pair.high())), Some((4, 9)));
        assert_eq!(Pair::of(4, 4), None);
    }
}
