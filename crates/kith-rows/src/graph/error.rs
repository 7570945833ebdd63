//! Why a whole input file cannot be read.

use super::{ColumnRef, LineErrors};
use crate::codec::Codec;
use crate::error::RowsError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a file of a graph cannot be read or is refused. Lines count from 1 in the unpacked text, bytes in the
/// file as it is on disk.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum FileError {
    /// The file cannot be opened.
    #[error("{} cannot be opened", path.display())]
    Open {
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The disk or the network under the file failed.
    #[error("{} cannot be read beyond byte {bytes} (line {line})", path.display())]
    Read {
        path: PathBuf,
        /// Bytes read so far.
        bytes: u64,
        /// The line being read.
        line: u64,
        /// What the system says.
        source: io::Error,
    },
    /// A compressed file ends in the middle.
    #[error("{} is cut off: its {codec} data end early at byte {bytes} (line {line})", path.display())]
    Truncated {
        path: PathBuf,
        /// How it is compressed.
        codec: Codec,
        /// Bytes of the file.
        bytes: u64,
        /// The line being read.
        line: u64,
    },
    /// A compressed file does not unpack.
    #[error("{} is damaged: its {codec} data are invalid before byte {bytes} (line {line})", path.display())]
    Damaged {
        path: PathBuf,
        /// How it is compressed.
        codec: Codec,
        /// Bytes read so far.
        bytes: u64,
        /// The line being read.
        line: u64,
        /// What the decoder says.
        source: io::Error,
    },
    /// The name says compressed, the first bytes do not.
    #[error("{} is named as {codec} but does not begin like it", path.display())]
    NotCompressed {
        path: PathBuf,
        /// What its name promises.
        codec: Codec,
    },
    /// The file is of a known kind that is not delimited text.
    #[error("{} is {found}, not CSV or TSV text (plain, .gz or .zst)", path.display())]
    NotText {
        path: PathBuf,
        /// What it seems to be.
        found: &'static str,
    },
    /// A file of rows cannot be read to its end.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// A line is longer than any sensible one: the file is not delimited text.
    #[error("{} has a line of more than {limit} bytes at line {line}", path.display())]
    LineTooLong {
        path: PathBuf,
        line: u64,
        /// The most bytes a line may have.
        limit: usize,
    },
    /// A column that is needed is not there.
    #[error("{} has no column {column} for {role} (its columns: {})", path.display(), header.join(", "))]
    NoColumn {
        path: PathBuf,
        /// The column looked for.
        column: ColumnRef,
        /// What it is needed for.
        role: String,
        /// The header line, or the places if there is none.
        header: Vec<String>,
    },
    /// More wrong lines than allowed.
    #[error("{} has {}, {max_errors} allowed; {}", path.display(), count(errors, *complete),
            errors.first[0])]
    BadLines {
        path: PathBuf,
        /// How many were allowed.
        max_errors: u64,
        /// The first ten, and all those found by reason; never empty.
        errors: LineErrors,
        /// Whether the file was read to its end.
        complete: bool,
    },
}

fn count(errors: &LineErrors, complete: bool) -> String {
    let total = errors.total();
    let plural = if total == 1 { "" } else { "s" };
    format!("{}{total} bad line{plural}", if complete { "" } else { "at least " })
}

impl FileError {
    /// What the user can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            FileError::Open { .. } => "check the path and its permissions",
            FileError::Read { .. } => "check the disk or mount that holds the file",
            FileError::Truncated { .. } | FileError::Damaged { .. } => {
                "fetch or write the file again; `gzip -t` or `zstd -t` checks it"
            }
            FileError::NotCompressed { .. } => "rename the file if it is plain text, or fetch it again",
            FileError::NotText { .. } => {
                "convert it to CSV, TSV, JSON lines, Parquet or Arrow first; of a pipe only text is read"
            }
            FileError::Rows(_) => "write it again, or as CSV",
            FileError::LineTooLong { .. } => "check that the file is CSV or TSV with one edge a line",
            FileError::NoColumn { .. } => "name a column of the header, or give its place (from 1)",
            FileError::BadLines { .. } => "correct the lines, or allow some with --max-errors",
        }
    }
}
