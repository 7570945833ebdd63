//! What callers are told when a store cannot be changed.

use super::document::UnknownName;
use crate::MetadataError;
use kith_types::ErrorCode;
use kith_versions::Refusal;
use kith_wire::documents::DocumentError;
use tonic::Status;

/// A store's record is not changed.
#[derive(Debug)]
pub enum ChangeError {
    /// There is no such store.
    Unknown,
    /// The state machine says no.
    Refused(Refusal),
    /// The metadata store cannot be read or written now.
    Metadata(MetadataError),
    /// Anything else, as the caller is told.
    Failed(Status),
}

impl ChangeError {
    /// What a caller is told who asked for `store`; empty where all are asked about.
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

/// `store` is empty where all are asked about.
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

/// A request whose command is one that this release does not have, which it cannot tell from none.
pub fn unknown_command(of: &str) -> Status {
    let message = format!("{of} request without a command that this release knows");
    kith_wire::status(
        ErrorCode::UnsupportedOperation,
        message,
        "update the routers, or use a kith of this release",
    )
}

/// A record or request that another release wrote.
pub fn other_release(detail: String) -> Status {
    kith_wire::status(ErrorCode::BadRequest, detail, "use a release that knows this document")
}

/// Others changed the record again and again.
pub fn conflict(store: &str) -> Status {
    let message = format!("store {store:?} changed again and again meanwhile");
    kith_wire::status(ErrorCode::Conflict, message, "look at it again, then try again")
}
