//! Errors of building a component.

use crate::SortError;
use kith_engine::WriteError;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The reason why a component cannot be built. Nothing of it remains under its final name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A file of the component cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The edges cannot be sorted.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// A folder or file cannot be created, synced, renamed or removed.
    #[error("cannot {action} {}", path.display())]
    Folder {
        /// The action that failed.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another build of the same component is running.
    #[error("another build writes to {}", path.display())]
    Busy {
        /// The component's folder.
        path: PathBuf,
    },
    /// This version has already been built.
    #[error("{} exists already", path.display())]
    Exists {
        /// The version's folder.
        path: PathBuf,
    },
    /// The caller stopped the build.
    #[error("the build was stopped")]
    Stopped,
    /// The component's name is not a valid folder name.
    #[error("{name:?} cannot name an edge type or entity kind (1 to 64 letters, digits, '_' or '-')")]
    Name {
        /// The name as given.
        name: String,
    },
    /// There are more columns than a component can have, or two have the same name.
    #[error("columns {columns:?} are more than {max}, or not distinct")]
    Columns {
        /// The columns as given.
        columns: Vec<String>,
        /// The most columns.
        max: usize,
    },
    /// A column has the name that answers use for the id of an edge.
    #[error(
        "a column cannot be called {ID_COLUMN:?}: answers have the other end of each edge under that name"
    )]
    ReservedColumn,
}

/// The name of the other end of an edge, in answers that list edges with their columns.
pub(super) const ID_COLUMN: &str = "id";

impl BuildError {
    /// Advice on what to do about it.
    pub fn help(&self) -> &'static str {
        if is_full_disk(self) {
            return "the disk is full: free some space, or choose other folders for data and scratch files";
        }
        match self {
            BuildError::Write(_) | BuildError::Folder { .. } => "check the data folder and its permissions",
            BuildError::Sort(_) => "check the scratch folder, or choose another",
            BuildError::Busy { .. } => "wait until it ends; a build that was killed does not block others",
            BuildError::Stopped => "start it again: nothing was built",
            BuildError::Exists { .. } => "build under the next version number",
            BuildError::Name { .. } => "choose another name",
            BuildError::Columns { .. } => "keep fewer columns, each under a name of its own",
            BuildError::ReservedColumn => {
                "give the column another name in the file's header, or by its position, as ref=3:u64"
            }
        }
    }

    pub(crate) fn folder(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| BuildError::Folder { action, path, source }
    }
}

fn is_full_disk(error: &(dyn Error + 'static)) -> bool {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    let is_full = |error: &io::Error| full.contains(&error.kind());
    error.downcast_ref::<io::Error>().is_some_and(is_full) || error.source().is_some_and(is_full_disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_recognised_wherever_it_shows() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let errors = [
            BuildError::from(WriteError::Io { path: "/data/p00000.both.data".into(), source: full() }),
            BuildError::from(SortError::Io { dir: "/scratch".into(), source: full() }),
            BuildError::folder("sync", "/data")(full()),
        ];
        for error in &errors {
            assert!(error.help().starts_with("the disk is full"), "{error}");
        }
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "cannot write /data/p00000.both.data",
                "cannot use a scratch file in /scratch",
                "cannot sync /data"
            ]
        );
        let other = BuildError::folder("sync", "/data")(io::ErrorKind::PermissionDenied.into());
        assert_eq!(other.help(), "check the data folder and its permissions");
    }
}
