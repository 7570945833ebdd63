//! Errors of places and objects.

use crate::objects::location::LocationError;
use kith_engine::ObjectError;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The reason why a place, or an object in it, cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum ObjectsError {
    /// The settings of the store are wrong.
    #[error("{location} cannot be used")]
    Settings {
        location: String,
        /// The fault in the settings.
        source: Box<object_store::Error>,
    },
    /// The store denies access, or denies this operation.
    #[error("access to {object} was refused")]
    Refused {
        /// The object or place.
        object: String,
        /// The error of the store.
        source: Box<object_store::Error>,
    },
    /// The object or place does not exist.
    #[error("{object} is not there")]
    Missing {
        /// The object or place.
        object: String,
    },
    /// Another object exists in its place.
    #[error("{object} already exists and has other contents")]
    Taken { object: String },
    /// Another build has begun to write a version there.
    #[error("{location} is reserved by another build, of other rows or with other options")]
    Reserved {
        /// The folder of the version.
        location: String,
    },
    /// The input of the version is damaged. Nothing was written in its place.
    #[error("{location} cannot be assembled")]
    Damaged {
        location: String,
        /// The damage.
        source: kith_engine::Damage,
    },
    /// The store did not answer, or gave an unexpected answer, even after retries.
    #[error("{object} cannot be read or written")]
    Failed {
        /// The object or place.
        object: String,
        /// The error of the store.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A file on this machine cannot be read or written.
    #[error("{} cannot be read or written", path.display())]
    Local {
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The folder to be uploaded does not contain a whole version.
    #[error("{} is not a complete version", path.display())]
    NoVersion { path: PathBuf, source: kith_engine::OpenError },
}

/// A text that names no place, or a place whose settings are wrong.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The text names no place.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// The settings of the place are wrong.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

impl ObjectsError {
    /// Returns a text that says what to do about the error.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Settings { .. } => "see docs/operating/object-stores.md for the settings of object stores",
            Self::Refused { .. } => {
                "check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (GOOGLE_…, AZURE_…), and their permissions"
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
            Self::NoVersion { .. } => "build the version again with `kith store build`",
        }
    }

    /// Classifies an error of the store that concerns `object`.
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

    /// Whether the object ends before the requested range.
    pub(crate) fn is_out_of_range(&self) -> bool {
        let Self::Failed { source, .. } = self else { return false };
        source.downcast_ref().is_some_and(|error| has_status(error, "416"))
    }

    /// Converts to an error of the engine's fetch. `object` is the name that the engine asked for.
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

/// The text alone contains the status, because the type that holds it is private.
fn has_status(error: &object_store::Error, status: &str) -> bool {
    error.to_string().contains(&format!("status code: {status}"))
}
