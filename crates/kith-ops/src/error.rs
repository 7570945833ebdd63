//! Why a question cannot be answered. Codes are a contract: see `docs/errors.md`.

use crate::SourceError;
use kith_schema::{ColumnKind, ColumnNumber, Incompatible, compute::ComputeError};
use kith_types::{PartitionId, StoreVersion};
use thiserror::Error;

/// The question does not fit the graph.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum OperationError {
    /// A member that the query names is not in the graph (it may exist elsewhere with no connections; this one does not).
    #[error("member {id} is not in the graph")]
    MemberNotFound { id: u64 },
    /// No member has such an entity of the kind.
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
        /// The edge types there are.
        known: Vec<String>,
    },
    /// The graph has no such edge type or entity kind.
    #[error("unknown kind {name:?}")]
    UnknownKind {
        name: String,
        /// The kinds there are.
        known: Vec<String>,
    },
    /// The graph holds no edge type at all yet.
    #[error("the graph has no edge type")]
    NoEdgeType,
    /// The direction makes no sense for the edge type.
    #[error("edge type {name:?} is undirected: only direction \"both\" applies")]
    DirectionNotKept {
        /// The edge type.
        name: String,
    },
    /// The query needs the lists of the other direction, which the edge type does not have.
    #[error(
        "{what} needs to know who has an association to a given id, but the association type {name:?} is one-sided: its \
         associations are only stored at the id that they leave"
    )]
    OneSided {
        /// The edge type.
        name: String,
        /// What cannot be asked.
        what: &'static str,
    },
    /// The edges of both directions are two lists, which may hold the same edge with other values.
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
        /// The columns there are.
        known: Vec<String>,
    },
    /// A column is asked for twice.
    #[error("column {column:?} is asked for twice")]
    RepeatedColumn { column: String },
    /// The bound of a filter is not a number that the column can hold.
    #[error("column {column:?} holds numbers of kind {}: {got} is none", kind.name())]
    NotOfKind { column: String, kind: ColumnKind, got: ColumnNumber },
    /// A cursor was handed to another question than the one that it came from.
    #[error("the cursor belongs to a query of another member, edge type, direction, order or filter")]
    OtherCursor,
    /// The version that a cursor belongs to is served no more.
    #[error(
        "the cursor belongs to version {} of edge type {name:?}, which is no longer kept: version {} is served",
        version.0, current.0
    )]
    CursorExpired {
        /// The edge type.
        name: String,
        version: StoreVersion,
        /// The version that is served.
        current: StoreVersion,
    },
    /// A number is out of its range.
    #[error("{what} is {got}, but must be {range}")]
    OutOfRange {
        what: &'static str,
        got: u64,
        /// The range, for people.
        range: &'static str,
    },
    /// The answer is more than one answer may be.
    #[error("the answer is more than {max} bytes")]
    TooLarge {
        /// The bound, in bytes.
        max: usize,
    },
    /// A caller answered a step with something other than what was asked: a defect.
    #[error("a fan-out was answered with the wrong kind of value")]
    WrongValue,
}

/// An operator tree cannot be evaluated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum EvaluateError {
    /// An operator got an input of another type than it works on.
    #[error("operator {operator} cannot work on {got}")]
    Mistyped {
        /// Name of the operator.
        operator: &'static str,
        /// Name of the value's type.
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
        /// Keys or partitions.
        what: &'static str,
        /// How many it has.
        got: usize,
        max: usize,
    },
    /// A request names a key or partition twice.
    #[error("the request names {what} {which} twice")]
    Repeated {
        /// What: key or partition.
        what: &'static str,
        /// Which of them.
        which: u64,
    },
    /// A request names a partition that the graph does not have.
    #[error("the request names partition {partition}, but the graph has partitions 0 to {last}")]
    UnknownPartition {
        partition: PartitionId,
        /// The last that there is.
        last: u32,
    },
    /// A fixed list of ids is not sorted and distinct.
    #[error("the ids of operator {operator} are not strictly ascending")]
    NotAscending {
        /// Name of the operator.
        operator: &'static str,
    },
    /// The answer, or something that it is made from, is more than one evaluation may hold.
    #[error("the answer, or what it is made from, is more than {max} bytes: ask for less at once")]
    TooLarge {
        /// The bound, in bytes.
        max: usize,
    },
    /// The plan of a computation or aggregation does not fit the records.
    #[error("the plan does not fit the records: {0}")]
    Plan(#[from] ComputeError),
    /// The store's values are no records.
    #[error("the values of the store are not records, so they have no fields to compute from")]
    NotRecords,
    /// A field of the records cannot be read as the plan's schema has it.
    #[error("the plan's schema does not fit the records: {0}")]
    Schema(#[from] Incompatible),
    /// Loaded graphs have no objects or associations.
    #[error("operator {operator} reads a live graph, but this graph was loaded")]
    LoadedGraph {
        /// Name of the operator.
        operator: &'static str,
    },
    /// The caller's deadline passed, or it went away.
    #[error("evaluation was cancelled")]
    Cancelled,
    /// The lists cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// The nodes' parts do not make up one value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum MergeError {
    /// A key or partition was answered by no part.
    #[error("{missing} of {expected} keys have no answer")]
    Missing {
        missing: usize,
        /// Of how many.
        expected: usize,
    },
    /// A part answers for a key that was not asked, or that another part answered too.
    #[error("position {position} of {expected} is answered twice or was never asked")]
    Position {
        position: u32,
        /// How many keys there are.
        expected: usize,
    },
    /// A node sent another type of value than the plan gives, or not one list per key.
    #[error("a node sent {got}, but the plan gives {expected}")]
    WrongValue {
        /// What the plan gives.
        expected: &'static str,
        /// What came.
        got: &'static str,
    },
    /// The nodes' counts may hold the same id twice, so their sum is no count.
    #[error("counts of overlapping sets cannot be added up")]
    Overlapping,
    /// The plan itself is not well-typed.
    #[error(transparent)]
    Plan(#[from] EvaluateError),
}
