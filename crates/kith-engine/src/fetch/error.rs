//! Why a version cannot be fetched.

use crate::errors::{Damage, OpenError, WriteError};
use crate::source::ObjectError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A fetch failed; the target is as it was before.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum FetchError {
    /// A manifest cannot be read, lists no such partition, or is not that of the version wanted.
    #[error(transparent)]
    Manifest(#[from] OpenError),
    /// The source has missing, extra or wrong bytes.
    #[error("source: {0}")]
    Damaged(#[from] Damage),
    /// The source cannot be read; what has come so far is kept for another try.
    #[error(transparent)]
    Source(ObjectError),
    /// The operating system refused.
    #[error("cannot read or write {path}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        source: io::Error,
    },
    /// The disk is too full to begin.
    #[error("{path} needs {needed} bytes, but only {available} are free")]
    NoSpace {
        /// Where the files would go.
        path: PathBuf,
        /// Bytes to copy.
        needed: u64,
        /// Bytes free to this process.
        available: u64,
    },
    /// The version is larger than it may be.
    #[error("the version needs {needed} bytes, but its quota is {allowed}")]
    Quota {
        /// Bytes of the wanted partitions.
        needed: u64,
        allowed: u64,
    },
    /// The target holds something else: another version, or foreign files.
    #[error("{path} is in the way")]
    Occupied { path: PathBuf },
    /// Another fetch to the same target is running.
    #[error("{path} is being fetched already")]
    Busy {
        /// Its hidden folder.
        path: PathBuf,
    },
    /// The caller's `progress` said so.
    #[error("fetch was cancelled")]
    Cancelled,
}

impl From<ObjectError> for FetchError {
    /// A manifest or pack that is not there is as bad as a damaged one.
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
