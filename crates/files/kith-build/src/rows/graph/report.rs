//! The progress of reading a file, and the final report.

use super::LineErrors;
use std::path::PathBuf;

/// The progress of reading a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadProgress {
    /// The file.
    pub path: PathBuf,
    /// The number of bytes read, as they are on disk.
    pub bytes_read: u64,
    /// The size of the file in bytes; 0 if it is unknown (a pipe).
    pub bytes_total: u64,
    /// The number of lines read.
    pub lines: u64,
}

/// Says which columns of a file were read, for people: `edges: follower → followee; since = column 2`. `taken` are the role
/// and the name of each, as in [`FileReport::taken`]. The ends of edges are first, in their direction.
pub fn columns_taken(what: &str, taken: &[(String, String)]) -> Option<String> {
    let is_end = |(role, _): &&(String, String)| matches!(role.as_str(), "src" | "dst" | "id1" | "id2");
    let ends: Vec<&str> = taken.iter().take_while(is_end).map(|(_, name)| name.as_str()).collect();
    let rest = taken.iter().skip(ends.len()).map(|(role, name)| format!("{role} = {name}"));
    let ends = Some(ends.join(" → ")).filter(|ends| !ends.is_empty());
    let parts: Vec<String> = ends.into_iter().chain(rest).collect();
    (!parts.is_empty()).then(|| format!("{what}: {}", parts.join("; ")))
}

/// The report on one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// The columns that were read: the role of each, and its name in the file or its place.
    pub taken: Vec<(String, String)>,
    /// A time that is probably in another unit than the column says, with a proposal; for people.
    pub unlikely_time: Option<String>,
    /// The number of data lines, including wrong ones, without the header, comments and blank lines.
    pub rows: u64,
    /// The number of all lines.
    pub lines: u64,
    /// The size of the file on disk, in bytes.
    pub bytes: u64,
    /// The lines that were dropped because they are wrong.
    pub errors: LineErrors,
}
