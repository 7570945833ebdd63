//! The reasons why a plan is refused, or cannot be applied to one record. Codes are a contract: `docs/errors.md`.

use crate::language::did_you_mean;
use crate::{FieldType, SchemaError};
use kith_types::ErrorCode;
use thiserror::Error;

/// The reason why a plan is refused, before any record is read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ComputeError {
    /// The records have no such field.
    #[error("the records have no field {field:?}{}", did_you_mean(near))]
    UnknownField {
        field: String,
        /// The field that was probably meant.
        near: Option<String>,
    },
    /// An operator does not accept a field of this type.
    #[error("{operator} cannot work on field {field:?}, which is {got}: it needs {needs}")]
    WrongType {
        operator: &'static str,
        field: String,
        got: FieldType,
        /// The required type, in words.
        needs: &'static str,
    },
    /// A condition compares with a value that numbers cannot be ordered against.
    #[error("a condition on field {field:?} compares with {got}, but must compare with a finite number")]
    NotFinite {
        field: String,
        /// The value: NaN or an infinity.
        got: &'static str,
    },
    /// A query vector has another length than the vectors of its field.
    #[error("{operator} over field {field:?} needs a query of {want} numbers, got {got}")]
    Dimensions {
        operator: &'static str,
        field: String,
        /// The length in the schema.
        want: u32,
        /// The length that was given.
        got: u64,
    },
    /// `top_k` names neither a computed value nor a field.
    #[error(
        "top_k is by {by:?}, which is neither worked out nor a field of the records{}",
        did_you_mean(near)
    )]
    UnknownScore {
        by: String,
        /// The name that was probably meant.
        near: Option<String>,
    },
    /// `top_k` names a value that is not a number.
    #[error("top_k is by {by:?}, which is {got}: it needs a number")]
    NoScore { by: String, got: FieldType },
    /// A number is out of its range.
    #[error("{what} is {got}, but must be {range}")]
    OutOfRange {
        what: &'static str,
        got: u64,
        /// The range as text.
        range: &'static str,
    },
    /// A predicate is nested too deeply.
    #[error("a condition is nested deeper than {max}")]
    TooDeep {
        /// The greatest depth.
        max: usize,
    },
    /// Two buckets have the same name.
    #[error("bucket {name:?} is there twice")]
    RepeatedBucket { name: String },
    /// The plan is empty.
    #[error("nothing is asked for: project a field, or work one out")]
    Nothing,
    /// The result would not be a valid record, because a name is repeated or invalid.
    #[error("the result has no valid fields: {0}")]
    Result(SchemaError),
}

impl From<SchemaError> for ComputeError {
    fn from(error: SchemaError) -> Self {
        Self::Result(error)
    }
}

/// The reason why an operator cannot be applied to one record. Every replica gives the same answer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[error("the list has {got} numbers, the query {want}")]
pub struct ComputeFault {
    /// The index of the operator in the plan.
    pub operator: u32,
    /// The length of the query.
    pub want: u32,
    /// The length of the record's list.
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
