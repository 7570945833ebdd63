//! Errors of writing records and of reading bytes as records.

use crate::language::did_you_mean;
use thiserror::Error;

/// A type for messages, with the unit of its values if the name does not tell it.
fn spelled(kind: &str) -> &str {
    match kind {
        "timestamp" => {
            "timestamp (a whole number of milliseconds since 1970, a date, or RFC 3339 with an offset)"
        }
        kind => kind,
    }
}

/// A description of the fault in one value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ValueFault {
    /// The value has another type.
    #[error("expected {}, got {got}", spelled(expected))]
    WrongType {
        /// The type of the field or item.
        expected: String,
        /// The type of the given value.
        got: String,
    },
    /// The type cannot hold the number, or not exactly.
    #[error("{got} does not fit {}", spelled(expected))]
    OutOfRange {
        /// The type of the field or item.
        expected: String,
        got: String,
    },
    /// The number is NaN or an infinity.
    #[error("it is not a finite number")]
    NotFinite,
    /// The vector has another length.
    #[error("expected a vector of {expected} dimensions, got {got}")]
    Dimensions {
        /// The length in the schema.
        expected: u32,
        /// The length that was given. For a vector that is too long, at least this.
        got: u64,
    },
    /// A list, vector or map contains a null.
    #[error("a list, vector or map holds no nulls")]
    NullItem,
    /// The map already has the key.
    #[error("its key {key:?} is there twice")]
    RepeatedKey { key: String },
    /// The text is not base64 (standard alphabet, padded).
    #[error("it is not base64 text")]
    NotBase64,
    /// The record would be larger than a value may be.
    #[error("the record is larger than 64 MiB")]
    TooLarge,
}

/// The reason why a record is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum EncodeError {
    /// The schema has no such field.
    #[error("field {field:?} is not in the schema{}", did_you_mean(near))]
    UnknownField {
        field: String,
        /// The field that was probably meant.
        near: Option<String>,
    },
    /// The field is neither nullable nor has a default.
    #[error("field {field:?} is missing")]
    Missing { field: String },
    /// The field is null but not nullable.
    #[error("field {field:?} is null, the schema says it never is")]
    Null { field: String },
    /// The field is given twice.
    #[error("field {field:?} is there twice")]
    Repeated { field: String },
    /// The value does not fit the field.
    #[error("field {field:?}{}: {fault}", item.map(|item| format!(", item {item}")).unwrap_or_default())]
    Value {
        field: String,
        /// The number of the item in a list, vector or map, from 1.
        item: Option<u64>,
        /// A description of its fault.
        fault: ValueFault,
    },
    /// The text is not a JSON object.
    #[error("{detail} (byte {column})")]
    Json {
        /// A description of the fault.
        detail: String,
        /// The byte position, from 1.
        column: usize,
    },
    /// The whole record is too large.
    #[error(transparent)]
    Record(#[from] ValueFault),
    /// The record whose fields should be kept cannot be read.
    #[error(transparent)]
    Base(#[from] RecordError),
}

/// The reason why bytes cannot be read as a record of the schema. The reader is not at fault: the bytes are damaged, or
/// belong to another schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum RecordError {
    /// The bytes are not a record of the schema.
    #[error("record of {bytes} bytes is damaged or of another schema: {why}")]
    Damaged {
        bytes: usize,
        /// A description of the fault.
        why: &'static str,
    },
    /// The bytes of a field are not a value of its type.
    #[error("field {field:?} of the record is damaged: {why}")]
    DamagedField {
        field: String,
        /// A description of the fault.
        why: &'static str,
    },
    /// The schema has no such field.
    #[error("field {field:?} is not in the schema{}", did_you_mean(near))]
    UnknownField {
        field: String,
        /// The field that was probably meant.
        near: Option<String>,
    },
    /// The projected record would be larger than a value may be.
    #[error(transparent)]
    Projected(#[from] ValueFault),
}
