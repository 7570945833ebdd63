//! What the reading of a file tells, while it goes on and at its end.

use super::LineErrors;
use std::path::PathBuf;

/// How far the reading of a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadProgress {
    /// The file.
    pub path: PathBuf,
    /// Bytes read, as they are on disk.
    pub bytes_read: u64,
    /// Bytes of the file; 0 if unknown (a pipe).
    pub bytes_total: u64,
    /// Lines read.
    pub lines: u64,
}

/// What one file held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Lines of data, wrong ones included; without header, comments and blank lines.
    pub rows: u64,
    /// Lines in all.
    pub lines: u64,
    /// Bytes of the file on disk.
    pub bytes: u64,
    /// The lines that were dropped because they are wrong.
    pub errors: LineErrors,
}
