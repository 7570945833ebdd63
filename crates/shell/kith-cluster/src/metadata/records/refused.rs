//! The errors that callers get when a store cannot be changed.

use super::{document::UnknownName, shares::SharesError};
use crate::metadata::MetadataError;
use kith_topology::versions::Refusal;
use kith_types::ErrorCode;
use kith_wire::documents::DocumentError;
use tonic::Status;

/// The reason why a store's record was not changed.
#[derive(Debug)]
pub enum ChangeError {
    /// There is no such store.
    Unknown,
    /// The state machine refused the change.
    Refused(Refusal),
    /// The metadata store cannot be read or written now.
    Metadata(MetadataError),
    /// Any other error, as the caller should see it.
    Failed(Status),
}

impl ChangeError {
    /// Returns the status for a caller who asked about `store`, which is empty if the request was about all stores.
    pub fn to_status(&self, store: &str) -> Status {
        match self {
            ChangeError::Unknown => kith_wire::status(
                ErrorCode::UnknownStore,
                format!("there is no store {store:?}"),
                "`kith store list` shows those there are",
            ),
            ChangeError::Refused(refusal) => {
                kith_wire::status(refusal.code(), format!("store {store:?}: {refusal}"), refusal.help())
            }
            ChangeError::Metadata(error) => not_written(store, error),
            ChangeError::Failed(status) => status.clone(),
        }
    }
}

impl From<Refusal> for ChangeError {
    fn from(refusal: Refusal) -> Self {
        ChangeError::Refused(refusal)
    }
}

impl From<Status> for ChangeError {
    fn from(status: Status) -> Self {
        ChangeError::Failed(status)
    }
}

impl From<MetadataError> for ChangeError {
    fn from(error: MetadataError) -> Self {
        ChangeError::Metadata(error)
    }
}

/// Returns the status for a failure of the metadata store. `store` is empty if the request was about all stores.
fn not_written(store: &str, error: &MetadataError) -> Status {
    let help = match error {
        MetadataError::Refused { .. } => {
            "queries go on; the reason is the metadata store's own: see its rights, its quota and its limit of a request, then try again"
        }
        _ => "queries go on; changes wait until the metadata store is back",
    };
    let message = match store {
        "" => error.to_string(),
        store => format!("the record of store {store:?} was not changed: {error}"),
    };
    kith_wire::status(error.code(), message, help)
}

impl From<SharesError> for ChangeError {
    fn from(error: SharesError) -> Self {
        match error {
            SharesError::Metadata(error) => error.into(),
            SharesError::Document(error) => error.into(),
        }
    }
}

impl From<DocumentError> for ChangeError {
    fn from(error: DocumentError) -> Self {
        ChangeError::Failed(other_release(error.to_string()))
    }
}

impl From<UnknownName> for ChangeError {
    fn from(error: UnknownName) -> Self {
        ChangeError::Failed(other_release(error.to_string()))
    }
}

/// The error for a request without a command. A command that this release does not know looks the same.
pub fn unknown_command(of: &str) -> Status {
    let message = format!("{of} request without a command that this release knows");
    kith_wire::status(
        ErrorCode::UnsupportedOperation,
        message,
        "update the routers, or use a kith of this release",
    )
}

/// The error for a record or request that another release wrote.
pub fn other_release(detail: String) -> Status {
    kith_wire::status(ErrorCode::BadRequest, detail, "use a release that knows this document")
}

/// The error for a record that others kept changing.
pub fn conflict(store: &str) -> Status {
    let message = format!("store {store:?} kept changing meanwhile");
    kith_wire::status(ErrorCode::Conflict, message, "look at it again, then try again")
}
