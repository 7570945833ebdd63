//! Errors of queries of graphs. Codes are a contract: see `docs/errors.md`.

use kith_schema::{ColumnKind, ColumnNumber};
use kith_types::StoreVersion;
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
