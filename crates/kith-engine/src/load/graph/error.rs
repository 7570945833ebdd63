//! Why a load fails.

use crate::load::BuildError;
use crate::load::input::InputError;
use std::path::PathBuf;
use thiserror::Error;

/// Why a load fails. None of its components is left then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No file is given.
    #[error("nothing to load: no file of edges, entities or members")]
    Nothing,
    /// The files of edges hold no edge: most likely not what was meant.
    #[error("no edge of type {edge_type:?} in {lines} lines")]
    NoEdges {
        /// The edge type.
        edge_type: String,
        /// Lines read.
        lines: u64,
    },
    /// A name cannot name a folder.
    #[error("{name:?} cannot name {what} (1 to 64 letters, digits, '_' or '-')")]
    Name {
        /// What it should name.
        what: &'static str,
        /// As given.
        name: String,
    },
    /// Two components of one name.
    #[error("{name:?} is the name of {by} already")]
    NameTaken {
        /// The name.
        name: String,
        /// What else has it.
        by: &'static str,
    },
    /// An entities file has too many kinds.
    #[error("{} has more than {max} entity kinds", path.display())]
    TooManyKinds {
        /// The file.
        path: PathBuf,
        /// The most that are loaded at once.
        max: usize,
    },
    /// A file cannot be read or is refused.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A component cannot be built.
    #[error("cannot build {component:?}")]
    Build {
        /// Its name.
        component: String,
        /// Why.
        source: BuildError,
    },
}

impl LoadError {
    /// A short, stable name of the fault, for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            LoadError::Nothing => "nothing_to_load",
            LoadError::NoEdges { .. } => "no_edges",
            LoadError::Name { .. } => "invalid_name",
            LoadError::NameTaken { .. } => "name_taken",
            LoadError::TooManyKinds { .. } => "too_many_kinds",
            LoadError::Input(InputError::BadLines { .. }) => "bad_lines",
            LoadError::Input(_) => "bad_input",
            LoadError::Build { source: BuildError::Busy { .. }, .. } => "load_running",
            LoadError::Build { .. } => "build_failed",
        }
    }

    /// What the user can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            LoadError::Nothing => "name at least one file",
            LoadError::NoEdges { .. } => {
                "check the file and its line ends; --allow-empty replaces what there is by nothing"
            }
            LoadError::Name { .. } | LoadError::NameTaken { .. } => "choose another name",
            LoadError::TooManyKinds { .. } => "check that its second column is the kind, or split the file",
            LoadError::Input(error) => error.help(),
            LoadError::Build { source, .. } => source.help(),
        }
    }
}
