//! Errors of evaluation and merging. Codes are a contract: see `docs/errors.md`.

use kith_schema::{Incompatible, SourceError, compute::ComputeError};
use kith_types::PartitionId;
use thiserror::Error;

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
