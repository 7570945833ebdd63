//! The error for a line or a flag that is not a valid request.

use kith_types::ErrorCode;
use thiserror::Error;

/// A request that cannot be understood, or one that does not fit its store.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct LineError {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened, and why.
    pub message: String,
    /// What to do.
    pub help: String,
}

impl LineError {
    /// Any error.
    pub fn new(code: ErrorCode, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: help.into() }
    }

    /// A request that cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(
            ErrorCode::BadRequest,
            message,
            "see docs/queries.md for the fields of each operation, and docs/live-graph.md for those of writes",
        )
    }
}

/// The known name that a misspelled one was most likely meant to be.
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
