//! The traits through which a node's operators read neighbour lists and values.

use crate::EdgeSelector;
use kith_types::{ByteKeys, KeyRef, LogPoint, PartitionCount, PartitionId, ValueProof};
use std::ops::ControlFlow;
use thiserror::Error;

/// Receives a list: `each(index of its key, ids)`, with `None` for a key that is not in the graph. `Break` ends the
/// reading.
pub type EachList<'a> = &'a mut dyn FnMut(usize, Option<&[u64]>) -> ControlFlow<()>;
/// Receives the length of a list, as [`EachList`] receives its ids.
pub type EachLength<'a> = &'a mut dyn FnMut(usize, Option<u64>) -> ControlFlow<()>;
/// Receives a list with the values of columns, as [`EachList`] receives its ids.
pub type EachEdges<'a> = &'a mut dyn FnMut(usize, Option<EdgeList<'_>>) -> ControlFlow<()>;
/// The result of reading from a [`NeighbourSource`].
pub type SourceResult = Result<(), SourceError>;

/// A state of a graph on one node: the mapped lists of a version, or the lists of a live graph.
///
/// Contract: answers never change during the life of one source; a partition
/// that this source does not hold is [`SourceError::NotOwner`], never an empty list.
pub trait NeighbourSource {
    /// The number of partitions of the graph, held here or not.
    fn partition_count(&self) -> PartitionCount;

    /// Reads the lists of `keys`, in order, and calls `each(index, list)` once per key, with
    /// `None` for a key that is not in the graph. Ids are sorted and distinct.
    /// `Break` ends the reading early, without error. One batch: `O(keys + ids)`.
    ///
    /// # Errors
    /// [`SourceError`] if a list cannot be read. `each` may have been called for earlier keys.
    fn lists(&self, edge: &EdgeSelector, keys: &[u64], each: EachList<'_>) -> SourceResult;

    /// Reads the number of ids of each list, like [`NeighbourSource::lists`]. `O(keys)` if lists need not be decoded for
    /// that.
    ///
    /// # Errors
    /// Those of [`NeighbourSource::lists`].
    fn lengths(&self, edge: &EdgeSelector, keys: &[u64], each: EachLength<'_>) -> SourceResult {
        self.lists(edge, keys, &mut |index, list| each(index, list.map(|ids| ids.len() as u64)))
    }

    /// The number of members of the graph in `partition`.
    ///
    /// # Errors
    /// Those of [`NeighbourSource::members`].
    fn member_count(&self, partition: PartitionId) -> Result<u64, SourceError> {
        let mut members = Vec::new();
        self.members(partition, &mut members)?;
        Ok(members.len() as u64)
    }

    /// The sum of the lengths of the lists under `edge` of all members of `partition`. `O(1)` if the source has stored it.
    ///
    /// # Errors
    /// Those of [`NeighbourSource::members`] and [`NeighbourSource::lists`].
    fn total(&self, edge: &EdgeSelector, partition: PartitionId) -> Result<u64, SourceError> {
        sum_of_lengths(self, edge, partition)
    }

    /// Appends to `out` those of `keys` that have an edge to themselves, in any order. No list has such an edge. Graphs without
    /// such edges need not implement this.
    ///
    /// # Errors
    /// Those of [`NeighbourSource::lists`].
    fn selves(&self, edge: &EdgeSelector, keys: &[u64], out: &mut Vec<u64>) -> SourceResult {
        let _ = (edge, keys, out);
        Ok(())
    }

    /// Reads the lists of `keys` with the values of `columns`, in order, and calls `each(index, list)` once per key, with
    /// `None` for a key that is not in the graph. `Break` ends the reading early, without error. `O(keys + ids × columns)`.
    ///
    /// # Errors
    /// Those of [`NeighbourSource::lists`]; [`SourceError::UnknownColumn`]; [`SourceError::TwoLists`] for both directions
    /// of a directed edge type.
    fn edges(&self, edge: &EdgeSelector, columns: &[&str], keys: &[u64], each: EachEdges<'_>)
    -> SourceResult;

    /// Appends to `out` the members of `partition`, ascending and distinct, whose list under `edge`
    /// contains `id`. Under `Direction::Both` of a directed edge type that is the union of both lists;
    /// over the `in` lists of an entity kind the "members" of the partition are entities.
    ///
    /// # Errors
    /// [`SourceError`] if the postings cannot be read.
    fn postings(
        &self,
        edge: &EdgeSelector,
        partition: PartitionId,
        id: u64,
        out: &mut Vec<u64>,
    ) -> SourceResult;

    /// Appends to `out` every member of the graph in `partition`, with or without edges: ascending and distinct.
    ///
    /// # Errors
    /// [`SourceError`] if the members cannot be read.
    fn members(&self, partition: PartitionId, out: &mut Vec<u64>) -> SourceResult;
}

/// The sum of the lengths of the lists under `edge` of all members of `partition`, read list by list.
///
/// # Errors
/// Those of [`NeighbourSource::members`] and [`NeighbourSource::lists`].
pub fn sum_of_lengths(
    source: &(impl NeighbourSource + ?Sized),
    edge: &EdgeSelector,
    partition: PartitionId,
) -> Result<u64, SourceError> {
    let (mut members, mut sum) = (Vec::new(), 0_u64);
    source.members(partition, &mut members)?;
    source.lengths(edge, &members, &mut |_, length| {
        sum = sum.saturating_add(length.unwrap_or_default());
        ControlFlow::Continue(())
    })?;
    Ok(sum)
}

/// A version of a store on one node.
///
/// Contract: the same as of [`NeighbourSource`]. A damaged value is an error of its key alone: others are still read.
pub trait ValueSource {
    /// Looks up the keys, and calls `each(index, value)` once per key, in order, with `None` for a key that is not in the
    /// store. Works in batches: all keys are hashed, then probed, then read. `Break` ends the reading early, without error.
    ///
    /// # Errors
    /// [`SourceError::NotOwner`] before anything is read. Damage is passed to `each`.
    #[expect(clippy::type_complexity, reason = "spelled out for implementors")]
    fn values(
        &self,
        keys: LookupKeys<'_>,
        each: &mut dyn FnMut(usize, Result<Option<&[u8]>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError>;

    /// Reads values like [`ValueSource::values`], for a caller that checks proofs itself. A value that comes with its proof
    /// was not checked here; one without a proof was. Absence is proven here.
    ///
    /// # Errors
    /// Those of [`ValueSource::values`].
    #[expect(clippy::type_complexity, reason = "spelled out for implementors")]
    fn values_with_proofs(
        &self,
        keys: LookupKeys<'_>,
        each: &mut dyn FnMut(usize, Result<Option<SourceValue<'_>>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        self.values(keys, &mut |index, value| each(index, value.map(SourceValue::proven)))
    }
}

/// A whole list with columns, as a source returns it.
#[derive(Clone, Copy, Debug)]
pub struct EdgeList<'a> {
    /// The ids, sorted and distinct.
    pub ids: &'a [u64],
    /// The stored values of the columns that the source was asked for, in that order, each as long as `ids`.
    pub columns: &'a [Vec<u64>],
}

/// The keys of a batch read, as the request carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupKeys<'a> {
    /// Keys of a store whose keys are ids.
    Ids(&'a [u64]),
    /// Keys of a store whose keys are strings or bytes.
    Bytes(&'a ByteKeys),
}

impl<'a> LookupKeys<'a> {
    /// The key at an index.
    ///
    /// # Panics
    /// If the index is beyond the last key.
    pub fn key(&self, index: usize) -> KeyRef<'a> {
        match self {
            LookupKeys::Ids(ids) => KeyRef::Id(ids[index]),
            LookupKeys::Bytes(keys) => KeyRef::Bytes(keys.get(index)),
        }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        match self {
            LookupKeys::Ids(ids) => ids.len(),
            LookupKeys::Bytes(keys) => keys.len(),
        }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A value from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceValue<'a> {
    /// The value.
    pub bytes: &'a [u8],
    /// The proof of the value; `None` if the value was checked when it was read.
    pub proof: Option<ValueProof>,
}

impl<'a> SourceValue<'a> {
    /// A value, if there is one, that was checked when it was read.
    pub fn proven(value: Option<&'a [u8]>) -> Option<Self> {
        value.map(|bytes| Self { bytes, proof: None })
    }
}

/// The reason why a list or value cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SourceError {
    /// The node does not hold the partition, so the caller's routing table is out of date.
    #[error("partition {partition} is not held here")]
    NotOwner {
        /// The requested partition.
        partition: PartitionId,
    },
    /// The node holds the partition of a live graph, but has not read all of its lists from the database yet. Another
    /// replica may answer.
    #[error("the lists of partition {partition} are still being read from the database")]
    NotBuilt {
        /// The requested partition.
        partition: PartitionId,
    },
    /// The lists of a live graph cannot be read at this place in the log: it is older than the changes that the node can
    /// undo, newer than those that it has applied, or belongs to no history that it knows. The query can begin again.
    #[error("partition {partition} cannot be read at {at}, only from {from} to {to}")]
    PositionUnavailable {
        /// The requested partition.
        partition: PartitionId,
        /// The requested place.
        at: LogPoint,
        /// The oldest place that can be read.
        from: LogPoint,
        /// The newest place that can be read.
        to: LogPoint,
    },
    /// Associations of a type without an inverse are stored only at the object that they leave, so the associations to an
    /// id cannot be looked up.
    #[error(
        "edge type {kind:?} can only be followed along its direction \"out\": it has no inverse type, which would hold the lists \
         of the other direction"
    )]
    OneSided {
        /// The edge type.
        kind: String,
    },
    /// The graph has no such edge type or entity kind.
    #[error("unknown edge type or entity kind {kind:?}")]
    UnknownKind {
        /// The requested name.
        kind: String,
    },
    /// There is no column with the requested name.
    #[error("edge type {kind:?} has no column {column:?}")]
    UnknownColumn {
        /// The edge type.
        kind: String,
        /// The requested column.
        column: String,
    },
    /// The two directions of the edge type are two lists, each with its own values.
    #[error("the edges of both directions of {kind:?} are two lists")]
    TwoLists {
        /// The edge type.
        kind: String,
    },
    /// The key cannot be a key of a store whose keys are ids.
    #[error("a key of {got} bytes cannot be an id, which has 8")]
    KeyLength { got: usize },
    /// Bytes are missing or do not match their checksum. Another replica may answer.
    #[error("damaged data in {file}: {detail}")]
    Damaged {
        /// The file name, without its folder.
        file: String,
        /// A description of the fault in the file.
        detail: String,
    },
}
