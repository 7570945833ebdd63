//! Why a component cannot be built.

use crate::SortError;
use kith_engine::WriteError;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a component cannot be built. Nothing of it is left under its final name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A file of the component cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The edges cannot be sorted.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// A folder or file cannot be made, synced, renamed or removed.
    #[error("cannot {action} {}", path.display())]
    Folder {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another build of the same component runs.
    #[error("another build writes to {}", path.display())]
    Busy {
        /// The component's folder.
        path: PathBuf,
    },
    /// This version was built before.
    #[error("{} exists already", path.display())]
    Exists {
        /// The version's folder.
        path: PathBuf,
    },
    /// Whoever asked for the build ended it.
    #[error("the build was stopped")]
    Stopped,
    /// The component's name cannot name a folder.
    #[error("{name:?} cannot name an edge type or entity kind (1 to 64 letters, digits, '_' or '-')")]
    Name {
        /// As given.
        name: String,
    },
    /// More columns than are kept, or one name twice.
    #[error("columns {columns:?} are more than {max}, or not distinct")]
    Columns {
        /// As given.
        columns: Vec<String>,
        /// The most that are kept.
        max: usize,
    },
    /// A column has the name under which answers have the id of an edge.
    #[error(
        "a column cannot be called {ID_COLUMN:?}: answers have the other end of each edge under that name"
    )]
    ReservedColumn,
}

/// The name of the other end of an edge in answers that list edges with their columns.
pub(super) const ID_COLUMN: &str = "id";

impl BuildError {
    /// What the user can do about it.
    pub fn help(&self) -> &'static str {
        if is_full_disk(self) {
            return "the disk is full: free some space, or choose other folders for data and scratch files";
        }
        match self {
            BuildError::Write(_) | BuildError::Folder { .. } => "check the data folder and its permissions",
            BuildError::Sort(_) => "check the scratch folder, or choose another",
            BuildError::Busy { .. } => "wait until it ends; a killed build does not stay in the way",
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
