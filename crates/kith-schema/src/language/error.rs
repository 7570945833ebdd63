//! What is wrong with the text of a schema.

use crate::schema::SchemaError;
use thiserror::Error;

/// Why a text names no type.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypeError {
    /// No type of that name.
    #[error(
        "type {text:?} is unknown (bool, i32, i64, u64, f32, f64, text, bytes, timestamp, vector<…>, list<…> or map<text,…>){}",
        did_you_mean(near)
    )]
    Unknown {
        /// What was given.
        text: String,
        /// What was probably meant.
        near: Option<String>,
    },
    /// `<` without `>`.
    #[error("type {text:?} is not closed by '>'")]
    Unclosed {
        /// What was given.
        text: String,
    },
    /// The wrong number of things between `<` and `>`.
    #[error("type {text:?} is not of the form vector<f32,64>, list<text> or map<text,f64>")]
    Parts {
        /// What was given.
        text: String,
    },
    /// A vector of something else.
    #[error("elements of a vector are f32, f16 or i8, not {text:?}")]
    Element {
        /// What was given.
        text: String,
    },
    /// A vector of no length, or too long.
    #[error("a vector has 1 to 65536 dimensions, not {text:?}")]
    Dimensions {
        /// What was given.
        text: String,
    },
}

/// Why a text is not a schema.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum SchemaFault {
    /// The text is not JSON, or a thing in it is of another kind than it must be.
    #[error("schema is not as it should be: {detail} (line {line}, column {column})")]
    Syntax {
        /// What is wrong there.
        detail: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
    },
    /// A member that has no meaning, or comes twice.
    #[error("{place} has {} member {name:?} (it may have {}){}", if *twice { "more than one" } else { "an unknown" }, known.join(", "), did_you_mean(near))]
    Member {
        /// `schema`, or which field.
        place: String,
        name: String,
        /// Whether it is known, but there twice.
        twice: bool,
        /// What may be there.
        known: &'static [&'static str],
        /// What was probably meant.
        near: Option<String>,
    },
    /// A member that must be there is not.
    #[error("{place} has no member {name:?}")]
    Missing {
        /// `schema`, or which field.
        place: String,
        name: &'static str,
    },
    /// A member holds another kind of JSON value than it must.
    #[error("member {name:?} of {place} is not {expected}")]
    Kind {
        /// `schema`, or which field.
        place: String,
        name: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A type cannot be read.
    #[error("{place} has no valid type")]
    Type {
        /// Which field.
        place: String,
        /// Why not.
        source: TypeError,
    },
    /// The language is of another version.
    #[error("schema is of language version {got}, but this release reads version 1")]
    Version {
        /// What the schema says.
        got: String,
    },
    /// The fields do not go together.
    #[error(transparent)]
    Fields(#[from] SchemaError),
}

pub(crate) fn did_you_mean(near: &Option<String>) -> String {
    near.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}
