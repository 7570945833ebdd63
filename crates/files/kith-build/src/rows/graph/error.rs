//! Errors of a whole input file.

use super::{ColumnRef, LineErrors};
use crate::rows::codec::Codec;
use crate::rows::error::RowsError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a file of a graph is refused or cannot be read. Lines count from 1 in the decompressed text; bytes count in the file
/// as it is on disk.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum FileError {
    /// The file cannot be opened.
    #[error("{} cannot be opened", path.display())]
    Open {
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The disk or the network failed during reading.
    #[error("{} cannot be read beyond byte {bytes} (line {line})", path.display())]
    Read {
        path: PathBuf,
        /// The number of bytes read so far.
        bytes: u64,
        /// The current line.
        line: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A compressed file ends too early.
    #[error("{} is cut off: its {codec} data end early at byte {bytes} (line {line})", path.display())]
    Truncated {
        path: PathBuf,
        /// Its compression.
        codec: Codec,
        /// The size of the file in bytes.
        bytes: u64,
        /// The current line.
        line: u64,
    },
    /// A compressed file cannot be decompressed.
    #[error("{} is damaged: its {codec} data are invalid before byte {bytes} (line {line})", path.display())]
    Damaged {
        path: PathBuf,
        /// Its compression.
        codec: Codec,
        /// The number of bytes read so far.
        bytes: u64,
        /// The current line.
        line: u64,
        /// The error of the decoder.
        source: io::Error,
    },
    /// The file name indicates a compression, but the first bytes do not.
    #[error("{} is named as {codec} but does not begin like it", path.display())]
    NotCompressed {
        path: PathBuf,
        /// The compression that the name indicates.
        codec: Codec,
    },
    /// The file has a known format that is not delimited text.
    #[error("{} is {found}, not CSV or TSV text (plain, .gz or .zst)", path.display())]
    NotText {
        path: PathBuf,
        /// The format that the file seems to have.
        found: &'static str,
    },
    /// The file has no bytes, which its format does not allow.
    #[error("{} is empty, and {why}; fetch or write it again", path.display())]
    Empty {
        path: PathBuf,
        /// The beginning of a file of the format.
        why: &'static str,
    },
    /// A file of rows cannot be read to its end.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// A line is so long that the file cannot be delimited text.
    #[error("{} has a line of more than {limit} bytes at line {line}", path.display())]
    LineTooLong {
        path: PathBuf,
        line: u64,
        /// The most bytes of a line.
        limit: usize,
    },
    /// A required column is missing.
    #[error("{} has no column {column} for {role} (its columns: {})", path.display(), listed(header))]
    NoColumn {
        path: PathBuf,
        /// The required column.
        column: ColumnRef,
        /// The purpose of the column.
        role: String,
        /// The header line, or the places of the columns if there is none.
        header: Vec<String>,
    },
    /// Two columns have the name of a column that is needed.
    #[error("{} has two columns that can be {column:?}", path.display())]
    RepeatedColumn {
        path: PathBuf,
        /// The name.
        column: String,
    },
    /// The header does not say which columns are meant.
    #[error("{} does not say which columns are {}: its columns are {}", path.display(), roles.join(" and "), listed(header))]
    UnknownHeader {
        path: PathBuf,
        /// The roles of the columns that were not found.
        roles: Vec<String>,
        /// The names of the columns.
        header: Vec<String>,
    },
    /// More lines are wrong than allowed.
    #[error("{} has {}, {max_errors} allowed; {}", path.display(), count(errors, *complete),
            errors.first[0])]
    BadLines {
        path: PathBuf,
        /// The allowed number.
        max_errors: u64,
        /// The first ten, and the counts by reason of those found; never empty.
        errors: LineErrors,
        /// Whether the file was read to its end.
        complete: bool,
    },
}

/// The names of columns. A name can contain anything that the file has in its first line.
fn listed(header: &[String]) -> String {
    header.iter().map(|name| name.escape_debug().to_string()).collect::<Vec<_>>().join(", ")
}

fn count(errors: &LineErrors, complete: bool) -> String {
    let total = errors.total();
    let plural = if total == 1 { "" } else { "s" };
    format!("{}{total} bad line{plural}", if complete { "" } else { "at least " })
}

impl FileError {
    /// The advice about the error.
    pub fn help(&self) -> &'static str {
        match self {
            FileError::Open { .. } => "check the path and its permissions",
            FileError::Read { .. } => "check the disk or mount that holds the file",
            FileError::Truncated { .. } | FileError::Damaged { .. } => {
                "fetch or write the file again; `gzip -t` or `zstd -t` checks it"
            }
            FileError::Empty { .. } => "fetch or write the file again",
            FileError::NotCompressed { .. } => "rename the file if it is plain text, or fetch it again",
            FileError::NotText { .. } => {
                "convert it to CSV, TSV, JSON lines, Parquet or Arrow first; of a pipe only text is read"
            }
            FileError::Rows(RowsError::Expands { .. }) => {
                "look at what is in it, and at the free space of the disk"
            }
            FileError::Rows(RowsError::FolderColumn { .. }) => {
                "rename the folder, or leave the column out of --columns"
            }
            FileError::Rows(_) => "write it again, or as CSV",
            FileError::LineTooLong { .. } => "check that the file is CSV or TSV with one edge a line",
            FileError::NoColumn { .. } => "name a column of the header, or give its place (from 1)",
            FileError::RepeatedColumn { .. } => {
                "rename one of them, or give the place of the column (from 1)"
            }
            FileError::UnknownHeader { .. } => {
                "name them: --src and --dst for edges, --column for members, --columns for imports; or name the columns as in docs/loading.md"
            }
            FileError::BadLines { .. } => "correct the lines, or allow some with --max-errors",
        }
    }
}
