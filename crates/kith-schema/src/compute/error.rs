//! Why a plan is refused, and why it cannot be carried out on one record. Codes are a contract: `docs/errors.md`.

use crate::language::did_you_mean;
use crate::{FieldType, SchemaError};
use kith_types::ErrorCode;
use thiserror::Error;

/// Why a plan is refused, before any record is read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ComputeError {
    /// A field that the records do not have.
    #[error("the records have no field {field:?}{}", did_you_mean(near))]
    UnknownField {
        field: String,
        /// The field that was probably meant.
        near: Option<String>,
    },
    /// An operator does not work on a field of this type.
    #[error("{operator} cannot work on field {field:?}, which is {got}: it needs {needs}")]
    WrongType {
        operator: &'static str,
        field: String,
        got: FieldType,
        /// What it should be, in words.
        needs: &'static str,
    },
    /// A condition compares with what no number is ordered against.
    #[error("a condition on field {field:?} compares with {got}, but must compare with a finite number")]
    NotFinite {
        field: String,
        /// With what: NaN, or an infinity.
        got: &'static str,
    },
    /// A query vector is not as long as the vectors of its field.
    #[error("{operator} over field {field:?} needs a query of {want} numbers, got {got}")]
    Dimensions {
        operator: &'static str,
        field: String,
        /// What the schema says.
        want: u32,
        /// What was given.
        got: u64,
    },
    /// The best are wanted by something that is neither worked out nor a field.
    #[error(
        "top_k is by {by:?}, which is neither worked out nor a field of the records{}",
        did_you_mean(near)
    )]
    UnknownScore {
        by: String,
        /// What was probably meant.
        near: Option<String>,
    },
    /// The best are wanted by something that has no order of numbers.
    #[error("top_k is by {by:?}, which is {got}: it needs a number")]
    NoScore { by: String, got: FieldType },
    /// A number is out of its range.
    #[error("{what} is {got}, but must be {range}")]
    OutOfRange {
        what: &'static str,
        got: u64,
        /// The range, for people.
        range: &'static str,
    },
    /// A predicate is nested too deeply.
    #[error("a condition is nested deeper than {max}")]
    TooDeep {
        /// The deepest that is taken.
        max: usize,
    },
    /// Two buckets of one name.
    #[error("bucket {name:?} is there twice")]
    RepeatedBucket { name: String },
    /// Nothing is asked for.
    #[error("nothing is asked for: project a field, or work one out")]
    Nothing,
    /// The result would be no record: a name twice, or one that no field can have.
    #[error("the result has no valid fields: {0}")]
    Result(SchemaError),
}

impl From<SchemaError> for ComputeError {
    fn from(error: SchemaError) -> Self {
        Self::Result(error)
    }
}

/// Why an operator cannot be carried out on one record: what every replica would say.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[error("the list has {got} numbers, the query {want}")]
pub struct ComputeFault {
    /// The operator's place in the plan.
    pub operator: u32,
    /// Numbers of the query.
    pub want: u32,
    /// Numbers of the record's list.
    pub got: u32,
}

impl ComputeError {
    /// The code that users see.
    pub fn code(&self) -> ErrorCode {
        match self {
            ComputeError::UnknownField { .. } | ComputeError::UnknownScore { .. } => ErrorCode::UnknownField,
            ComputeError::WrongType { .. } | ComputeError::NoScore { .. } => ErrorCode::WrongFieldType,
            ComputeError::Dimensions { .. } => ErrorCode::DimensionMismatch,
            ComputeError::OutOfRange { .. } => ErrorCode::OutOfRange,
            ComputeError::TooDeep { .. }
            | ComputeError::NotFinite { .. }
            | ComputeError::RepeatedBucket { .. }
            | ComputeError::Nothing
            | ComputeError::Result(_) => ErrorCode::BadRequest,
        }
    }
}
