//! Wrong lines and rows that a load, build or push dropped, as JSON: field names are a contract (`docs/loading.md`).

use serde::Serialize;

/// Lines that were dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Dropped {
    pub reason: String,
    pub count: u64,
    /// The first of them: at most ten of each file.
    pub first_lines: Vec<String>,
}

impl Dropped {
    /// Converts what the library reports.
    pub fn all(dropped: Vec<kith_build::Dropped>) -> Vec<Self> {
        let reply = |kith_build::Dropped { reason, count, first_lines }| Self { reason, count, first_lines };
        dropped.into_iter().map(reply).collect()
    }
}
