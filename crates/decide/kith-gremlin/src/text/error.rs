//! Why a text cannot be read.

use crate::GremlinError;
use kith_schema::nearest;
use kith_types::ErrorCode;
use thiserror::Error;

/// An error in Gremlin text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TextError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character in that line, counted from 1.
    pub column: usize,
    /// The expectation, or the fault there.
    pub message: String,
    /// `bad_request`; `unsupported_operation` if TinkerPop has it but Kith does not, such as a lambda; or why there is no room.
    pub code: ErrorCode,
}

impl TextError {
    /// An error at this byte of the text.
    pub(super) fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: 1 + before.matches('\n').count(),
            column: 1 + before[line_begin..].chars().count(),
            message: message.into(),
            code: ErrorCode::BadRequest,
        }
    }

    /// Something at this byte of the text exists in TinkerPop, but not in Kith.
    pub(super) fn unsupported(text: &str, offset: usize, what: &str) -> Self {
        Self::of(text, offset, GremlinError::unsupported(what))
    }

    /// Another error at this byte of the text.
    pub(super) fn of(text: &str, offset: usize, error: GremlinError) -> Self {
        Self { code: error.code, ..Self::at(text, offset, error.message) }
    }
}

impl From<TextError> for GremlinError {
    fn from(error: TextError) -> Self {
        Self::new(error.code, error.to_string())
    }
}

/// A message about an unknown name, with the nearest known one.
pub(super) fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown {what} {name:?}; did you mean {near:?}?"),
        None => format!("unknown {what} {name:?}"),
    }
}
