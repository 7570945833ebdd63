//! Why a place cannot be used.

use kith_engine::ObjectError;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A place, or an object in it, cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ObjectsError {
    /// Its settings are wrong.
    #[error("{location} cannot be used")]
    Settings {
        location: String,
        /// What is wrong.
        source: Box<object_store::Error>,
    },
    /// It does not let us in, or not do this.
    #[error("{object} is refused to us")]
    Refused {
        /// The object or place.
        object: String,
        /// What the store says.
        source: Box<object_store::Error>,
    },
    /// It is not there.
    #[error("{object} is not there")]
    Missing {
        /// The object or place.
        object: String,
    },
    /// Something else is there.
    #[error("{object} is there already, and is not the same")]
    Taken { object: String },
    /// Another build has begun to write a version there.
    #[error("{location} is where another build, of other rows or with other options, writes or wrote")]
    Reserved {
        /// The folder of the version.
        location: String,
    },
    /// What a version was to be made of is damaged; nothing was put in its place.
    #[error("{location} cannot be made")]
    Damaged {
        location: String,
        /// What does not hold.
        source: kith_engine::Damage,
    },
    /// The store did not answer, or not with what was asked for, however often it was asked.
    #[error("{object} cannot be read or written")]
    Failed {
        /// The object or place.
        object: String,
        /// What the store says.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file of this machine.
    #[error("{} cannot be read or written", path.display())]
    Local {
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What was to be uploaded is no whole version.
    #[error("{} is no whole version", path.display())]
    NoVersion { path: PathBuf, source: kith_engine::OpenError },
}

impl ObjectsError {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Settings { .. } => "see docs/operating/object-stores.md for the settings of object stores",
            Self::Refused { .. } => {
                "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (GOOGLE_…, AZURE_…), and what they may do"
            }
            Self::Missing { .. } => {
                "check the bucket and the path, and the endpoint in AWS_ENDPOINT_URL (GOOGLE_BASE_URL, AZURE_STORAGE_ENDPOINT)"
            }
            Self::Taken { .. } => "give the version another number",
            Self::Reserved { .. } => {
                "give the version another number, or remove what is there if nothing builds it any more"
            }
            Self::Damaged { .. } => "build the partitions again",
            Self::Failed { .. } => {
                "check that the store can be reached, and the endpoint in AWS_ENDPOINT_URL (GOOGLE_BASE_URL, AZURE_STORAGE_ENDPOINT)"
            }
            Self::Local { .. } => "check the folder, its permissions and the space on its disk",
            Self::NoVersion { .. } => "build it again with `kith store build`",
        }
    }

    /// Whose cause says what it is.
    pub(crate) fn of(object: impl Into<String>, error: object_store::Error) -> Self {
        let object = object.into();
        match error {
            object_store::Error::NotFound { .. } => Self::Missing { object },
            object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
                Self::Taken { object }
            }
            error @ (object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. }) => {
                Self::Refused { object, source: Box::new(error) }
            }
            error if is_refusal(&error) => Self::Refused { object, source: Box::new(error) },
            error => Self::Failed { object, source: Box::new(error) },
        }
    }

    /// Whether the object ends before what was asked for.
    pub(crate) fn is_out_of_range(&self) -> bool {
        let Self::Failed { source, .. } = self else { return false };
        source.downcast_ref().is_some_and(|error| has_status(error, "416"))
    }

    /// As the engine's fetch has it. `object` is the name that the engine asked for.
    pub(crate) fn in_fetch(self, object: &str) -> ObjectError {
        let object = object.to_owned();
        match self {
            Self::Missing { .. } => ObjectError::Missing { object },
            error => ObjectError::Failed { object, source: Box::new(error) },
        }
    }
}

fn is_refusal(error: &object_store::Error) -> bool {
    has_status(error, "401") || has_status(error, "403")
}

/// The status is in the text alone: the type that has it is not for others.
fn has_status(error: &object_store::Error, status: &str) -> bool {
    error.to_string().contains(&format!("status code: {status}"))
}
