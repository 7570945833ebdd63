//! Errors of schema inference.

use kith_schema::SchemaError;
use std::fmt::{Debug, Display};
use thiserror::Error;

/// The reason why no schema could be inferred. `P` is the place of a row.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum InferError<P: Debug + Display> {
    /// Two rows have incompatible types.
    #[error("field {field:?} is {first} in {first_place} and {then} in {then_place}")]
    Conflict {
        field: String,
        /// The type until then.
        first: Box<str>,
        /// The row that determined that type.
        first_place: P,
        /// The type in this row.
        then: Box<str>,
        then_place: P,
    },
    /// A row is not a JSON object, or has content that a record cannot have.
    #[error("{location}: {fault}")]
    Json {
        location: P,
        /// A description of the fault in the row.
        fault: JsonFault,
    },
    /// There are no rows.
    #[error("there are no rows to infer a schema from")]
    NoRows,
    /// The rows have no fields except their key.
    #[error("none of the {rows} rows has a field besides its key")]
    NoFields {
        /// The number of rows.
        rows: u64,
    },
    /// A field has only nulls or empty lists.
    #[error("field {field:?} is null or empty in every row: declare its type in a schema file")]
    NoType { field: String },
    /// The fields do not form a valid schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// The fault of a JSON text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{detail}{}", if *column == 0 { String::new() } else { format!(" (byte {column})") })]
pub struct JsonFault {
    /// A description of the fault in the row.
    pub detail: String,
    /// The byte position, from 1; 0 if there is no single position.
    pub column: usize,
}
