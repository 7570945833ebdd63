//! Errors of queries, evaluation and merging. Codes are a contract: see `docs/errors.md`.

use kith_schema::{ColumnKind, ColumnNumber, Incompatible, SourceError, compute::ComputeError};
use kith_types::{PartitionId, StoreVersion};
use thiserror::Error;

/// The query does not fit the graph.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum OperationError {
    /// A member that the query names is not in the graph. A member without connections is in the graph.
    #[error("member {id} is not in the graph")]
    MemberNotFound { id: u64 },
    /// No member has an edge to this entity of the kind.
    #[error("{kind} {entity} is not in the graph")]
    EntityNotFound {
        /// The entity kind.
        kind: String,
        entity: u64,
    },
    /// The graph has no such edge type.
    #[error("unknown edge type {name:?}")]
    UnknownEdgeType {
        name: String,
        /// The names of all edge types.
        known: Vec<String>,
    },
    /// The graph has no such edge type or entity kind.
    #[error("unknown kind {name:?}")]
    UnknownKind {
        name: String,
        /// The names of all kinds.
        known: Vec<String>,
    },
    /// The graph has no edge type yet.
    #[error("the graph has no edge type")]
    NoEdgeType,
    /// The direction does not apply to the edge type.
    #[error("edge type {name:?} is undirected: only direction \"both\" applies")]
    DirectionNotKept {
        /// The edge type.
        name: String,
    },
    /// The query needs the lists of the opposite direction, which the edge type does not have.
    #[error(
        "{what} needs to know who has an association to a given id, but the association type {name:?} is one-sided: its \
         associations are only stored at the id that they leave"
    )]
    OneSided {
        /// The edge type.
        name: String,
        /// The part of the query that needs them.
        what: &'static str,
    },
    /// The two directions of a directed edge type are two lists, which may hold the same edge with different values.
    #[error("edges of the directed edge type {name:?} are listed one way: \"out\" or \"in\"")]
    BothDirections {
        /// The edge type.
        name: String,
    },
    /// The edge type has no such column.
    #[error("edge type {kind:?} has no column {column:?}")]
    UnknownColumn {
        /// The edge type.
        kind: String,
        column: String,
        /// The names of all columns.
        known: Vec<String>,
    },
    /// A column is requested twice.
    #[error("column {column:?} is asked for twice")]
    RepeatedColumn { column: String },
    /// The bound of a filter is not a number that the column can hold.
    #[error("column {column:?} holds numbers of kind {}: {got} is none", kind.name())]
    NotOfKind { column: String, kind: ColumnKind, got: ColumnNumber },
    /// A cursor was used with another query than the one that returned it.
    #[error("the cursor belongs to a query of another member, edge type, direction, order or filter")]
    OtherCursor,
    /// The version of a cursor is no longer kept.
    #[error(
        "the cursor belongs to version {} of edge type {name:?}, which is no longer kept: version {} is served",
        version.0, current.0
    )]
    CursorExpired {
        /// The edge type.
        name: String,
        version: StoreVersion,
        /// The current version.
        current: StoreVersion,
    },
    /// A number is out of its range.
    #[error("{what} is {got}, but must be {range}")]
    OutOfRange {
        what: &'static str,
        got: u64,
        /// The range as text.
        range: &'static str,
    },
    /// The answer is larger than an answer may be.
    #[error("the answer is more than {max} bytes")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// A step was resumed with another kind of value than it had asked for, which is a bug.
    #[error("a fan-out was answered with the wrong kind of value")]
    WrongValue,
}

/// An operator tree cannot be evaluated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum EvaluateError {
    /// An operator got an input of a type that it does not accept.
    #[error("operator {operator} cannot work on {got}")]
    Mistyped {
        /// The name of the operator.
        operator: &'static str,
        /// The name of the input's type.
        got: &'static str,
    },
    /// The tree is deeper than allowed.
    #[error("the operator plan is deeper than {max}")]
    TooDeep { max: usize },
    /// The tree has more operators than allowed.
    #[error("the operator plan has more than {max} operators")]
    TooManyOperators { max: usize },
    /// The tree carries more fixed ids than allowed.
    #[error("the operator plan carries more than {max} ids")]
    TooManyIds { max: usize },
    /// A request has more keys or partitions than a share can have.
    #[error("the request has {got} {what}, but must have at most {max}")]
    TooMany {
        /// Whether there are too many keys or too many partitions.
        what: &'static str,
        /// Their number.
        got: usize,
        max: usize,
    },
    /// A request names a key or partition twice.
    #[error("the request names {what} {which} twice")]
    Repeated {
        /// Whether it is a key or a partition.
        what: &'static str,
        /// The key or partition.
        which: u64,
    },
    /// A request names a partition that the graph does not have.
    #[error("the request names partition {partition}, but the graph has partitions 0 to {last}")]
    UnknownPartition {
        partition: PartitionId,
        /// The number of the last partition.
        last: u32,
    },
    /// A fixed list of ids is not sorted and distinct.
    #[error("the ids of operator {operator} are not strictly ascending")]
    NotAscending {
        /// The name of the operator.
        operator: &'static str,
    },
    /// The answer, or an intermediate result, is larger than one evaluation may hold.
    #[error("the answer, or what it is made from, is more than {max} bytes: ask for less at once")]
    TooLarge {
        /// The limit in bytes.
        max: usize,
    },
    /// The plan of a computation or aggregation does not fit the records.
    #[error("the plan does not fit the records: {0}")]
    Plan(#[from] ComputeError),
    /// The values of the store are not records.
    #[error("the values of the store are not records, so they have no fields to compute from")]
    NotRecords,
    /// A field of the records cannot be read with the type that the plan's schema gives it.
    #[error("the plan's schema does not fit the records: {0}")]
    Schema(#[from] Incompatible),
    /// The operator reads a live graph, but the graph was loaded.
    #[error("operator {operator} reads a live graph, but this graph was loaded")]
    LoadedGraph {
        /// The name of the operator.
        operator: &'static str,
    },
    /// The caller's deadline passed, or the caller went away.
    #[error("evaluation was cancelled")]
    Cancelled,
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// The parts of the nodes cannot be merged into one value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum MergeError {
    /// No part answers for some keys or partitions.
    #[error("{missing} of {expected} keys have no answer")]
    Missing {
        missing: usize,
        /// The number of keys or partitions.
        expected: usize,
    },
    /// A part answers for a key that was not asked for, or that another part has already answered.
    #[error("position {position} of {expected} is answered twice or was never asked")]
    Position {
        position: u32,
        /// The number of keys.
        expected: usize,
    },
    /// A part has another type of value than the plan yields, or does not have one entry per key.
    #[error("a node sent {got}, but the plan gives {expected}")]
    WrongValue {
        /// The type that the plan yields.
        expected: &'static str,
        /// The type of the part.
        got: &'static str,
    },
    /// The sets of the nodes may overlap, so their counts cannot be added.
    #[error("counts of overlapping sets cannot be added up")]
    Overlapping,
    /// The plan is not well-typed.
    #[error(transparent)]
    Plan(#[from] EvaluateError),
}
