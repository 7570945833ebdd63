//! Why a component cannot be fetched.

use crate::errors::{Damage, OpenError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A fetch failed; the target is as it was before.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// A manifest cannot be read, or lists no such partition.
    #[error(transparent)]
    Manifest(#[from] OpenError),
    /// The source has missing, extra or wrong bytes.
    #[error("source: {0}")]
    Damaged(#[from] Damage),
    /// The operating system refused.
    #[error("cannot read or write {path}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Its answer.
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
    /// The target holds something else: another version, or foreign files.
    #[error("{path} is in the way")]
    Occupied {
        /// The target.
        path: PathBuf,
    },
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

/// Adds the path to an error of the operating system.
pub(super) trait IoContext<T> {
    fn at(self, path: &Path) -> Result<T, FetchError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, FetchError> {
        self.map_err(|source| FetchError::Io { path: path.to_owned(), source })
    }
}
