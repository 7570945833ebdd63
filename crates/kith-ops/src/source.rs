//! Where a node's operators read neighbour lists and values from.

use crate::{EdgeList, EdgeSelector, LookupKeys};
use kith_types::{LogPoint, PartitionCount, PartitionId, ValueProof};
use std::ops::ControlFlow;
use thiserror::Error;

/// Takes a list: `each(index of its key, ids)`, `None` for a key that is not in the graph. `Break` ends the reading.
pub type EachList<'a> = &'a mut dyn FnMut(usize, Option<&[u64]>) -> ControlFlow<()>;
/// Takes the length of a list, as [`EachList`] takes its ids.
pub type EachLength<'a> = &'a mut dyn FnMut(usize, Option<u64>) -> ControlFlow<()>;
/// Takes a list with the values of columns, as [`EachList`] takes its ids.
pub type EachEdges<'a> = &'a mut dyn FnMut(usize, Option<EdgeList<'_>>) -> ControlFlow<()>;
/// Whether a [`NeighbourSource`] could read what it was asked for.
pub type SourceResult = Result<(), SourceError>;

/// A graph version as one node holds it: mapped lists now, live lists later.
///
/// Contract: answers never change during the life of one source; a partition
/// that this source does not hold is [`SourceError::NotOwner`], never an empty list.
pub trait NeighbourSource {
    /// How many partitions the graph is divided into, held here or not.
    fn partition_count(&self) -> PartitionCount;

    /// Reads the lists of `keys`, in order, and calls `each(index, list)` once per key, with
    /// `None` for a key that is not in the graph. Ids are sorted and distinct.
    /// `Break` ends the reading early, without error. One batch: `O(keys + ids)`.
    ///
    /// # Errors
    /// See [`SourceError`]. `each` may have been called for earlier keys.
    fn lists(&self, edge: &EdgeSelector, keys: &[u64], each: EachList<'_>) -> SourceResult;

    /// As [`NeighbourSource::lists`], for the number of ids of each list: `O(keys)` where lists need not be decoded for it.
    ///
    /// # Errors
    /// As [`NeighbourSource::lists`].
    fn lengths(&self, edge: &EdgeSelector, keys: &[u64], each: EachLength<'_>) -> SourceResult {
        self.lists(edge, keys, &mut |index, list| each(index, list.map(|ids| ids.len() as u64)))
    }

    /// Reads the lists of `keys` with the values of `columns`, in order, and calls `each(index, list)` once per key, with `None` for
    /// a key that is not in the graph. `Break` ends the reading early, without error. `O(keys + ids × columns)`.
    ///
    /// # Errors
    /// As [`NeighbourSource::lists`]; [`SourceError::UnknownColumn`]; [`SourceError::TwoLists`] for both directions of a directed
    /// edge type.
    fn edges(&self, edge: &EdgeSelector, columns: &[&str], keys: &[u64], each: EachEdges<'_>)
    -> SourceResult;

    /// Appends to `out` the members of `partition`, ascending and distinct, whose list under `edge`
    /// contains `id`. Under `Direction::Both` of a directed edge type that is the union of both lists;
    /// over the `in` lists of an entity kind the "members" of the partition are entities.
    ///
    /// # Errors
    /// See [`SourceError`].
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
    /// See [`SourceError`].
    fn members(&self, partition: PartitionId, out: &mut Vec<u64>) -> SourceResult;
}

/// A store version as one node holds it.
///
/// Contract: as [`NeighbourSource`]. A damaged value is an error of its key alone: others are still read.
pub trait ValueSource {
    /// Looks up the keys, and calls `each(index, value)` once per key, in order: `None` for a key that is not in the
    /// store. Batch first: all are hashed, then probed, then read. `Break` ends the reading early, without error.
    ///
    /// # Errors
    /// [`SourceError::NotOwner`] before anything is read. Damage is passed to `each`.
    #[expect(clippy::type_complexity, reason = "spelled out for implementors")]
    fn values(
        &self,
        keys: LookupKeys<'_>,
        each: &mut dyn FnMut(usize, Result<Option<&[u8]>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError>;

    /// As [`ValueSource::values`], for a caller who proves values itself: a value that comes with its proof was not proven here, one without
    /// was. Absence is proven here.
    ///
    /// # Errors
    /// As [`ValueSource::values`].
    #[expect(clippy::type_complexity, reason = "spelled out for implementors")]
    fn values_with_proofs(
        &self,
        keys: LookupKeys<'_>,
        each: &mut dyn FnMut(usize, Result<Option<SourceValue<'_>>, SourceError>) -> ControlFlow<()>,
    ) -> Result<(), SourceError> {
        self.values(keys, &mut |index, value| each(index, value.map(SourceValue::proven)))
    }
}

/// A value as a source hands it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceValue<'a> {
    /// The value.
    pub bytes: &'a [u8],
    /// What proves it; `None` if it was proven where it was read.
    pub proof: Option<ValueProof>,
}

impl<'a> SourceValue<'a> {
    /// A value, if there is one, that was proven where it was read.
    pub fn proven(value: Option<&'a [u8]>) -> Option<Self> {
        value.map(|bytes| Self { bytes, proof: None })
    }
}

/// Why a list cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SourceError {
    /// The node does not hold the partition: the caller's routing table is old.
    #[error("partition {partition} is not held here")]
    NotOwner {
        /// The partition asked for.
        partition: PartitionId,
    },
    /// The node holds the partition of a live graph, but has not read all lists from the database yet. Another replica may
    /// answer.
    #[error("the lists of partition {partition} are still being read from the database")]
    NotBuilt {
        /// The partition asked for.
        partition: PartitionId,
    },
    /// The lists of a live graph cannot be read as of this place in the log: it is older than what the node can undo, newer
    /// than what it has applied, or in no history that it knows. The query can be started again.
    #[error("partition {partition} cannot be read at {at}, only from {from} to {to}")]
    PositionUnavailable {
        /// The partition asked for.
        partition: PartitionId,
        /// The place asked for.
        at: LogPoint,
        /// The oldest place that can be read.
        from: LogPoint,
        /// The newest place that can be read.
        to: LogPoint,
    },
    /// The associations of a type without an inverse are only known where they begin, so nothing tells who leads to an id.
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
        /// The name asked for.
        kind: String,
    },
    /// The loader did not keep the column that a filter names.
    #[error("edge type {kind:?} has no column {column:?}")]
    UnknownColumn {
        /// The edge type.
        kind: String,
        /// The column asked for.
        column: String,
    },
    /// The edges of both directions are two lists, each with values of its own.
    #[error("the edges of both directions of {kind:?} are two lists")]
    TwoLists {
        /// The edge type.
        kind: String,
    },
    /// A key cannot be one of a store whose keys are ids.
    #[error("a key of {got} bytes cannot be an id, which has 8")]
    KeyLength { got: usize },
    /// Bytes are missing or fail their checksum. Another replica may answer.
    #[error("damaged data in {file}: {detail}")]
    Damaged {
        /// File name, without its folder.
        file: String,
        /// What does not hold.
        detail: String,
    },
}
