//! Invalid lines and rows that a load, build or push dropped, as JSON. The field names are a contract: see
//! `docs/loading.md`.

use serde::Serialize;

/// Lines that were dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DroppedLines {
    pub reason: String,
    pub count: u64,
    /// The first of these lines, at most ten per file.
    pub first_lines: Vec<String>,
}

impl DroppedLines {
    /// Converts the report of the library.
    pub fn all(dropped: Vec<kith_build::DroppedRows>) -> Vec<Self> {
        let reply =
            |kith_build::DroppedRows { reason, count, first_lines }| Self { reason, count, first_lines };
        dropped.into_iter().map(reply).collect()
    }
}
