//! The reasons why a data directory cannot be used.

use super::{DIRECTORY_FORMAT, FolderIdentity};
use kith_types::ErrorCode;
use std::{io, path::PathBuf};
use thiserror::Error;

/// A data directory cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum DataDirError {
    /// Another process has it open.
    #[error("data directory {path} is in use by another process")]
    InUse { path: PathBuf },
    /// It was written by another release.
    #[error("data directory {path} has format {got}, this release reads format {DIRECTORY_FORMAT}")]
    OtherFormat { path: PathBuf, got: u32 },
    /// It belongs to another cluster or process.
    #[error("data directory {path} belongs to {} of cluster {}, not to {} of cluster {}", got.owner, got.cluster_id, expected.owner, expected.cluster_id)]
    OtherOwner {
        path: PathBuf,
        /// The process that wants to use it.
        expected: FolderIdentity,
        /// The owner that the directory names.
        got: FolderIdentity,
    },
    /// Its identity file is damaged.
    #[error("{path} is damaged: {detail}")]
    Damaged {
        path: PathBuf,
        /// A description of its fault.
        detail: String,
    },
    /// It cannot be read or written.
    #[error("use data directory {path}")]
    Io {
        /// The file or folder that cannot be read or written.
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl DataDirError {
    /// Advice on what to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            DataDirError::InUse { .. } => "stop the other process, or name another directory with --data",
            DataDirError::OtherFormat { .. } => {
                "use the release that wrote it, or start with an empty directory and load again"
            }
            DataDirError::OtherOwner { .. } => "name the right directory with --data",
            DataDirError::Damaged { .. } => {
                "restore the file, or start with an empty directory and load again"
            }
            DataDirError::Io { .. } => "check that the directory exists, its permissions and the free space",
        }
    }

    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            DataDirError::InUse { .. } => ErrorCode::DataDirectoryInUse,
            DataDirError::OtherFormat { .. } => ErrorCode::DataDirectoryFormat,
            DataDirError::OtherOwner { .. } => ErrorCode::DataDirectoryOwner,
            DataDirError::Damaged { .. } => ErrorCode::DataDirectoryDamaged,
            DataDirError::Io { .. } => ErrorCode::DataDirectoryUnusable,
        }
    }
}
