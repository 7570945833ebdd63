//! Why data give no schema.

use crate::SchemaError;
use std::fmt::{Debug, Display};
use thiserror::Error;

/// Why no schema could be inferred. `P` says where a row is.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum InferError<P: Debug + Display> {
    /// Two rows hold types that do not go together.
    #[error("field {field:?} is {first} in {first_place} and {then} in {then_place}")]
    Conflict {
        field: String,
        /// What it was until then.
        first: Box<str>,
        /// The row that made it so.
        first_place: P,
        /// What it is here.
        then: Box<str>,
        then_place: P,
    },
    /// A row is no JSON object, or holds what no record can.
    #[error("{place}: {fault}")]
    Json {
        place: P,
        /// What is wrong.
        fault: JsonFault,
    },
    /// Nothing to infer from.
    #[error("there are no rows to infer a schema from")]
    NoRows,
    /// The rows have no fields but their key.
    #[error("none of the {rows} rows has a field besides its key")]
    NoFields {
        /// How many rows there are.
        rows: u64,
    },
    /// Only nulls, or only empty lists.
    #[error("field {field:?} is null or empty in every row: declare its type in a schema file")]
    NoType { field: String },
    /// The fields make no schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// What is wrong with a JSON text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{detail}{}", if *column == 0 { String::new() } else { format!(" (byte {column})") })]
pub struct JsonFault {
    /// What is wrong with the row.
    pub detail: String,
    /// Where, in bytes from 1; 0 if it is not at one place.
    pub column: usize,
}
