//! Summaries of wrong rows and lines that were dropped.

use crate::graph::LoadedFile;
use crate::rows::RowErrors;
use std::collections::BTreeMap;

/// Rows or lines that were dropped for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DroppedRows {
    /// A short description of the fault.
    pub reason: String,
    /// The number of rows or lines.
    pub count: u64,
    /// Those that are among the first ten wrong ones (of each file, for a graph), as written in the files.
    pub first_lines: Vec<String>,
}

impl DroppedRows {
    /// Summarises the wrong rows of a store by reason.
    pub fn of_rows(errors: &RowErrors) -> Vec<Self> {
        let mut by_reason: BTreeMap<&'static str, Self> = BTreeMap::new();
        for (reason, count) in &errors.by_reason {
            add(&mut by_reason, reason, *count);
        }
        for error in &errors.first {
            by_reason.entry(error.fault.reason()).or_default().first_lines.push(error.to_string());
        }
        by_reason.into_values().collect()
    }

    /// Summarises the wrong lines of a graph's files by reason.
    pub fn of_files(files: &[LoadedFile]) -> Vec<Self> {
        let mut by_reason: BTreeMap<&'static str, Self> = BTreeMap::new();
        for file in files {
            let errors = &file.report.errors;
            for (reason, count) in &errors.by_reason {
                add(&mut by_reason, reason, *count);
            }
            for error in &errors.first {
                let line = format!("{}: {error}", file.report.path.display());
                by_reason.entry(error.fault.reason()).or_default().first_lines.push(line);
            }
        }
        by_reason.into_values().collect()
    }
}

fn add(by_reason: &mut BTreeMap<&'static str, DroppedRows>, reason: &'static str, count: u64) {
    let dropped = by_reason.entry(reason).or_default();
    dropped.reason = reason.to_owned();
    dropped.count += count;
}
