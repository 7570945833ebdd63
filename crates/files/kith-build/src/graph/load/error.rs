//! Errors of a load.

use super::FileRole;
use crate::failure::{Failure, chain};
use crate::rows::graph::FileError;
use kith_files::BuildError;
use kith_types::ErrorCode;
use std::path::PathBuf;
use thiserror::Error;

/// Why a load fails. None of its components remains then.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum LoadError {
    /// No file is given.
    #[error("nothing to load: no file of edges, entities or members")]
    Nothing,
    /// The files of one role have no good line, which is probably unintended.
    #[error("{} in {lines} lines{}", missing(*role, edge_type), dropped(*wrong))]
    NoRows {
        /// The role of the files.
        role: FileRole,
        /// The edge type of files of edges.
        edge_type: String,
        /// The number of lines read.
        lines: u64,
        /// The number of lines that were dropped because they are wrong.
        wrong: u64,
    },
    /// A name is not a valid folder name.
    #[error("{name:?} cannot name {what} (1 to 64 letters, digits, '_' or '-')")]
    Name {
        /// The thing that it should name.
        what: &'static str,
        /// The name as given.
        name: String,
    },
    /// Two components have the same name.
    #[error("{name:?} is the name of {by} already")]
    NameTaken {
        name: String,
        /// The component that already has it.
        by: &'static str,
    },
    /// An entities file has too many kinds.
    #[error("{} has more than {max} entity kinds", path.display())]
    TooManyKinds {
        path: PathBuf,
        /// The most kinds of one load.
        max: usize,
    },
    /// A file is refused or cannot be read.
    #[error(transparent)]
    Input(#[from] FileError),
    /// A component cannot be built.
    #[error("cannot build {component:?}")]
    Build { component: String, source: BuildError },
}

impl LoadError {
    /// A short, stable name of the error, for scripts.
    pub fn code(&self) -> ErrorCode {
        match self {
            LoadError::Nothing => ErrorCode::NothingToLoad,
            LoadError::NoRows { role: FileRole::Edges, .. } => ErrorCode::NoEdges,
            LoadError::NoRows { role: FileRole::Entities, .. } => ErrorCode::NoEntities,
            LoadError::NoRows { role: FileRole::Members, .. } => ErrorCode::NoMembers,
            LoadError::Name { .. } => ErrorCode::InvalidName,
            LoadError::NameTaken { .. } => ErrorCode::NameTaken,
            LoadError::TooManyKinds { .. } => ErrorCode::TooManyKinds,
            LoadError::Input(FileError::BadLines { .. }) => ErrorCode::BadLines,
            LoadError::Input(_) => ErrorCode::BadInput,
            LoadError::Build { source: BuildError::Busy { .. }, .. } => ErrorCode::LoadRunning,
            LoadError::Build { .. } => ErrorCode::BuildFailed,
        }
    }

    /// Advice on what to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            LoadError::Nothing => "name at least one file",
            LoadError::NoRows { .. } => {
                "check the file and its line endings; --allow-empty replaces what there is by nothing"
            }
            LoadError::Name { .. } | LoadError::NameTaken { .. } => "choose another name",
            LoadError::TooManyKinds { .. } => "check that its second column is the kind, or split the file",
            LoadError::Input(error) => error.help(),
            LoadError::Build { source, .. } => source.help(),
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let failure = Self::new(error.code(), chain(&error), error.help());
        match &error {
            LoadError::Input(FileError::BadLines { errors, path, .. }) => {
                let wrong = errors.first.iter().map(|error| format!("{}: {error}", path.display()));
                Self { wrong: wrong.collect(), ..failure }
            }
            _ => failure,
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        LoadError::Input(error).into()
    }
}

fn missing(role: FileRole, edge_type: &str) -> String {
    match role {
        FileRole::Edges => format!("no edge of type {edge_type:?}"),
        FileRole::Entities => "no entity of any member".to_owned(),
        FileRole::Members => "no member".to_owned(),
    }
}

fn dropped(wrong: u64) -> String {
    if wrong == 0 { String::new() } else { format!(", {wrong} of which are wrong; nothing was changed") }
}
