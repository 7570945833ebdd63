//! The reasons why a topology document is invalid.

use crate::BadTable;
use kith_schema::{SchemaIdError, UnknownKind};
use thiserror::Error;

/// The reason why a topology document is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum BadTopology {
    /// The routing table is invalid.
    #[error(transparent)]
    Table(#[from] BadTable),
    /// The kind of a component's column is invalid, or of a newer release.
    #[error("unknown kind of column {kind:?}")]
    Column { kind: String },
    /// A component's role is invalid, or of a newer release.
    #[error("component {component:?} of graph {graph:?} has unknown role {role:?}")]
    Role { graph: String, component: String, role: String },
    /// The type of a store's keys or values is invalid, or of a newer release.
    #[error("store {store:?}")]
    Kind {
        store: String,
        /// The word that is wrong.
        #[source]
        source: UnknownKind,
    },
    /// The schema id of a store's records is invalid.
    #[error("store {store:?}")]
    Schema {
        store: String,
        /// The reason why the id is invalid.
        #[source]
        source: SchemaIdError,
    },
}
