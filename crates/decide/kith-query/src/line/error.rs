//! The error for a line or a flag that is not a valid request.

use kith_types::ErrorCode;
use thiserror::Error;

/// A request that cannot be parsed, or one that does not fit its store.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct LineError {
    /// The stable error code.
    pub code: ErrorCode,
    /// A description of the error and its cause.
    pub message: String,
    /// Advice for the user.
    pub help: String,
}

impl LineError {
    /// Returns an error with the given code, message and help.
    pub fn new(code: ErrorCode, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }

    /// Returns the error for a request that cannot be parsed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(
            ErrorCode::BadRequest,
            message,
            "see docs/queries.md for the fields of each operation, and docs/live-graph.md for those of writes",
        )
    }
}

/// Returns the known name that is most similar to a misspelled one; `None` if none is similar enough.
pub fn near_miss<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = 1 + name.len() / 4;
    let lower = name.to_lowercase().replace('-', "_");
    let distance = |other: &str| strsim::damerau_levenshtein(&lower, &other.replace('-', "_"));
    known.iter().copied().min_by_key(|other| distance(other)).filter(|other| distance(other) <= allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_far_ones_are_not() {
        let known = ["edge_type", "direction", "deadline_ms"];
        assert_eq!(near_miss("edgetype", &known), Some("edge_type"));
        assert_eq!(near_miss("Edge-Type", &known), Some("edge_type"));
        assert_eq!(near_miss("deadline", &known), Some("deadline_ms"));
        assert_eq!(near_miss("colour", &known), None);
    }
}
