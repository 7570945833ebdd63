//! Errors of addresses of metadata stores.

use std::{io, path::PathBuf};
use thiserror::Error;

/// The longest name of a cluster. It is part of every key.
pub(super) const CLUSTER_NAME_BYTES_MAX: usize = 64;

/// The reason why an address or its options are invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum TargetError {
    /// The address is malformed.
    #[error("metadata address {address:?}: {detail}")]
    Address {
        address: String,
        /// A description of its fault.
        detail: String,
    },
    /// The name of the cluster is invalid.
    #[error(
        "cluster name {name:?}: 1 to {CLUSTER_NAME_BYTES_MAX} letters, digits, dots, hyphens and underscores"
    )]
    ClusterName { name: String },
    /// An option needs another one, or contradicts it.
    #[error("{option} {detail}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// A description of its fault.
        detail: &'static str,
    },
    /// A file of certificates, a key or a password cannot be read.
    #[error("{option}: read {path}")]
    File {
        /// The option's name.
        option: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}
