//! Why a record cannot be written, and why bytes cannot be read as one.

use crate::language::did_you_mean;
use thiserror::Error;

/// A type for people, with the unit of its values where the name does not tell it.
fn spelled(kind: &str) -> &str {
    match kind {
        "timestamp" => "timestamp (a whole number of milliseconds since 1970)",
        kind => kind,
    }
}

/// What is wrong with one value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ValueFault {
    /// A value of another type.
    #[error("expected {}, got {got}", spelled(expected))]
    WrongType {
        /// The type of the field or item.
        expected: String,
        /// What was given.
        got: String,
    },
    /// A number that the type cannot hold, or not exactly.
    #[error("{got} does not fit {}", spelled(expected))]
    OutOfRange {
        /// The type of the field or item.
        expected: String,
        got: String,
    },
    /// NaN or an infinity.
    #[error("it is not a finite number")]
    NotFinite,
    /// A vector of another length.
    #[error("expected a vector of {expected} dimensions, got {got}")]
    Dimensions {
        /// What the schema says.
        expected: u32,
        /// What was given; of a vector that is too long, at least this.
        got: u64,
    },
    /// A null in a list, vector or map.
    #[error("a list, vector or map holds no nulls")]
    NullItem,
    /// A key that a map has already.
    #[error("its key {key:?} is there twice")]
    RepeatedKey { key: String },
    /// Text that should be base64 (standard alphabet, padded).
    #[error("it is not base64 text")]
    NotBase64,
    /// The record would be larger than a value may be.
    #[error("the record is larger than 64 MiB")]
    TooLarge,
}

/// Why a record is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum EncodeError {
    /// A field that the schema does not have.
    #[error("field {field:?} is not in the schema{}", did_you_mean(near))]
    UnknownField {
        field: String,
        /// The field that was probably meant.
        near: Option<String>,
    },
    /// A field that may not be null and has no default.
    #[error("field {field:?} is missing")]
    Missing { field: String },
    /// A null where none may be.
    #[error("field {field:?} is null, the schema says it never is")]
    Null { field: String },
    /// A field given twice.
    #[error("field {field:?} is there twice")]
    Repeated { field: String },
    /// A value that does not fit its field.
    #[error("field {field:?}{}: {fault}", item.map(|item| format!(", item {item}")).unwrap_or_default())]
    Value {
        field: String,
        /// Which item of a list, vector or map, from 1.
        item: Option<u64>,
        /// What is wrong with it.
        fault: ValueFault,
    },
    /// Text that is no JSON object.
    #[error("{detail} (byte {column})")]
    Json {
        /// What is wrong there.
        detail: String,
        /// Where, from 1.
        column: usize,
    },
    /// The record as a whole is too large.
    #[error(transparent)]
    Record(#[from] ValueFault),
    /// The record whose fields are to be kept cannot be read.
    #[error(transparent)]
    Base(#[from] RecordError),
}

/// Why bytes cannot be read as a record of the schema. Never the reader's fault: the bytes were damaged, or belong
/// to another schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum RecordError {
    /// The bytes are no record of the schema.
    #[error("record of {bytes} bytes is damaged or of another schema: {why}")]
    Damaged {
        bytes: usize,
        /// What does not hold.
        why: &'static str,
    },
    /// A field's bytes are no value of its type.
    #[error("field {field:?} of the record is damaged: {why}")]
    DamagedField {
        field: String,
        /// What does not hold.
        why: &'static str,
    },
    /// A field that the schema does not have.
    #[error("field {field:?} is not in the schema{}", did_you_mean(near))]
    UnknownField {
        field: String,
        /// The field that was probably meant.
        near: Option<String>,
    },
    /// The record, projected, would be larger than a value may be.
    #[error(transparent)]
    Projected(#[from] ValueFault),
}
