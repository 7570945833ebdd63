//! What callers are told when a store cannot be changed.

use super::document::UnknownName;
use crate::metadata::MetadataError;
use kith_versions::Refusal;
use kith_wire::documents::DocumentError;
use tonic::{Code, Status};

/// A store's record is not changed.
#[derive(Debug)]
pub(crate) enum ChangeError {
    /// There is no such store.
    Unknown,
    /// The state machine says no.
    Refused(Refusal),
    /// Anything else, as the caller is told.
    Failed(Status),
}

impl ChangeError {
    pub fn to_status(&self, store: &str) -> Status {
        match self {
            ChangeError::Unknown => kith_wire::status(
                Code::NotFound,
                "unknown_store",
                format!("there is no store {store:?}"),
                "`kith store list` shows those there are",
            ),
            ChangeError::Refused(refusal) => kith_wire::status(
                match refusal {
                    Refusal::OthersStore { .. } => Code::PermissionDenied,
                    _ => Code::FailedPrecondition,
                },
                refusal.code(),
                format!("store {store:?}: {refusal}"),
                refusal.help(),
            ),
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
        let help = match error {
            MetadataError::Refused { .. } => "queries go on; see to the metadata store, then try again",
            _ => "queries go on; changes wait until the metadata store is back",
        };
        ChangeError::Failed(kith_wire::status(Code::Unavailable, error.code(), error.to_string(), help))
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

/// A record or request that another release wrote.
pub(crate) fn other_release(detail: String) -> Status {
    kith_wire::status(Code::InvalidArgument, "bad_request", detail, "use a release that knows this document")
}

/// Others changed the record again and again.
pub(super) fn conflict(store: &str) -> Status {
    let message = format!("store {store:?} changed again and again meanwhile");
    kith_wire::status(Code::Aborted, "conflict", message, "look at it again, then try again")
}
