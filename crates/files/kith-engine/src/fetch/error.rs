//! Errors of fetching a version.

use crate::errors::{Damage, OpenError, WriteError};
use crate::source::ObjectError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A fetch failed. The target is unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum FetchError {
    /// A manifest cannot be read, lists no such partition, or belongs to another version than the wanted one.
    #[error(transparent)]
    Manifest(#[from] OpenError),
    /// Bytes of the source are missing, superfluous or wrong.
    #[error("source: {0}")]
    Damaged(#[from] Damage),
    /// The source cannot be read. The bytes that have arrived are kept for the next attempt.
    #[error(transparent)]
    Source(ObjectError),
    /// The operating system reported an error.
    #[error("cannot read or write {path}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        source: io::Error,
    },
    /// The disk has too little free space to begin.
    #[error("{path} needs {needed} bytes, but only {available} are free")]
    NoSpace {
        /// The folder that the files would go to.
        path: PathBuf,
        /// The number of bytes to copy.
        needed: u64,
        /// The number of bytes that are free to this process.
        available: u64,
    },
    /// The version is larger than its quota.
    #[error("the version needs {needed} bytes, but its quota is {allowed}")]
    Quota {
        /// The size of the wanted partitions in bytes.
        needed: u64,
        allowed: u64,
    },
    /// The target holds another version, or other files.
    #[error("{path} is in the way")]
    Occupied { path: PathBuf },
    /// Another fetch to the same target is running.
    #[error("{path} is being fetched already")]
    Busy {
        /// The hidden folder of the target.
        path: PathBuf,
    },
    /// The caller's `progress` cancelled the fetch.
    #[error("fetch was cancelled")]
    Cancelled,
}

impl From<ObjectError> for FetchError {
    /// A missing manifest or pack is treated like a damaged one.
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Missing { object } if object == crate::files::MANIFEST_NAME => {
                OpenError::NoComponent { path: "source".into() }.into()
            }
            error => FetchError::Source(error),
        }
    }
}

impl From<WriteError> for FetchError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io { path, source } => FetchError::Io { path, source },
            WriteError::Damaged(damage) => FetchError::Damaged(damage),
            other => FetchError::Io { path: PathBuf::new(), source: io::Error::other(other) },
        }
    }
}

/// Adds the path to an error of the operating system.
pub(super) trait IoContext<T> {
    fn at(self, path: &Path) -> Result<T, FetchError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, FetchError> {
        self.map_err(|source| FetchError::Io { path: path.to_owned(), source })
    }
}
