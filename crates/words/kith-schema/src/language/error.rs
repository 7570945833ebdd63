//! Errors in the text of a schema.

use crate::schema::SchemaError;
use thiserror::Error;

/// The reason why a text is not a type.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeError {
    /// There is no type of this name.
    #[error(
        "type {text:?} is unknown (bool, i32, i64, u64, f32, f64, text, bytes, timestamp, vector<…>, list<…> or map<text,…>){}",
        did_you_mean(near)
    )]
    Unknown {
        /// The type as written.
        text: String,
        /// The name that was probably meant.
        near: Option<String>,
    },
    /// There is a `<` without `>`.
    #[error("type {text:?} is not closed by '>'")]
    Unclosed {
        /// The type as written.
        text: String,
    },
    /// There is a wrong number of parts between `<` and `>`.
    #[error("type {text:?} is not of the form vector<f32,64>, list<text> or map<text,f64>")]
    Parts {
        /// The type as written.
        text: String,
    },
    /// The elements of a vector have an invalid type.
    #[error("elements of a vector are f32, f16 or i8, not {text:?}")]
    Element {
        /// The element type as written.
        text: String,
    },
    /// The length of a vector is 0 or too large.
    #[error("a vector has 1 to 65536 dimensions, not {text:?}")]
    Dimensions {
        /// The length as written.
        text: String,
    },
}

/// The reason why a text is not a schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SchemaFault {
    /// The text is not JSON, or a value in it has the wrong type.
    #[error("schema is not as it should be: {detail} (line {line}, column {column})")]
    Syntax {
        /// A description of the fault.
        detail: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// A member has no meaning, or is repeated.
    #[error("{part} has {} member {name:?} (it may have {}){}", if *twice { "more than one" } else { "an unknown" }, known.join(", "), did_you_mean(near))]
    Member {
        /// `schema`, or a description of the field.
        part: String,
        name: String,
        /// Whether the member is known but repeated.
        twice: bool,
        /// The members that are allowed.
        known: &'static [&'static str],
        /// The name that was probably meant.
        near: Option<String>,
    },
    /// A required member is missing.
    #[error("{part} has no member {name:?}")]
    Missing {
        /// `schema`, or a description of the field.
        part: String,
        name: &'static str,
    },
    /// A member has another kind of JSON value than it must.
    #[error("member {name:?} of {part} is not {expected}")]
    Kind {
        /// `schema`, or a description of the field.
        part: String,
        name: &'static str,
        /// The expected kind.
        expected: &'static str,
    },
    /// A type cannot be read.
    #[error("{part} has no valid type")]
    Type {
        /// A description of the field.
        part: String,
        /// The reason why the type is invalid.
        source: TypeError,
    },
    /// The schema has another version of the language.
    #[error("schema is of language version {got}, but this release reads version 1")]
    Version {
        /// The version in the schema.
        got: String,
    },
    /// The fields do not form a valid schema.
    #[error(transparent)]
    Fields(#[from] SchemaError),
}

pub(crate) fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}
