//! The reasons why a process cannot start.

use crate::metadata::{MetadataError, TargetError};
use crate::{data_dir::DataDirError, topology::TopologyError};
use kith_net::{security::SecurityError, server::ListenError};
use kith_types::ErrorCode;
use std::{error::Error, io, path::PathBuf};
use thiserror::Error;

/// The reason why a node, router or supervisor cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum StartError {
    /// The data directory cannot be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The metadata store cannot be used.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// The address of the metadata store is not valid.
    #[error(transparent)]
    MetadataTarget(#[from] TargetError),
    /// The topology cannot be read.
    #[error(transparent)]
    TopologyUnknown(#[from] TopologyError),
    /// The topology has no place for this process.
    #[error("the topology does not fit: {detail}")]
    Topology {
        /// A description of the mismatch.
        detail: String,
    },
    /// A new cluster would not survive the loss of a zone or rack, although its nodes lie in several.
    #[error(transparent)]
    Outage(#[from] kith_routing::placement::OutageRisk),
    /// The settings are not valid.
    #[error("settings: {detail}")]
    Settings {
        /// A description of the fault.
        detail: String,
    },
    /// The cluster's object store cannot be used.
    #[error("object store {location:?} cannot be used")]
    ObjectStore {
        /// Its folder or URL.
        location: String,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The object store belongs to another cluster, or cannot be checked or claimed.
    #[error("the object store cannot be used")]
    ObjectStoreClaim {
        /// The code of the reason.
        code: ErrorCode,
        /// Advice for the operator.
        help: &'static str,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Another process with the same id is alive.
    #[error("{name} is already running at {addr}")]
    IdTaken {
        /// The id as it is shown to people: `node 3`.
        name: String,
        /// The address at which the other process listens.
        addr: String,
    },
    /// The process cannot listen on an address.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Certificates, keys or rights cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The ready file names another cluster that is still running.
    #[error("ready file {path} names a running cluster, whose router is at {router}")]
    ReadyFileInUse {
        path: PathBuf,
        /// The router that answers.
        router: String,
    },
    /// A child process cannot be started.
    #[error("start {what}")]
    Spawn {
        what: String,
        #[source]
        source: io::Error,
    },
    /// A child process did not start serving.
    #[error("{what} did not come up: {detail}")]
    Child {
        what: String,
        /// The reason, or the output of the process.
        detail: String,
    },
    /// A file cannot be written.
    #[error("write {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl StartError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            StartError::DataDir(error) => error.code(),
            StartError::Metadata(error) => error.code(),
            StartError::TopologyUnknown(_) => ErrorCode::TopologyUnknown,
            StartError::Topology { .. } => ErrorCode::TopologyMismatch,
            StartError::Outage(_) => ErrorCode::ReplicasTogether,
            StartError::Settings { .. } | StartError::MetadataTarget(_) => ErrorCode::BadSettings,
            StartError::ObjectStore { .. } => ErrorCode::ObjectStoreUnreachable,
            StartError::ObjectStoreClaim { code, .. } => *code,
            StartError::ReadyFileInUse { .. } => ErrorCode::ReadyFileInUse,
            StartError::Security(error) => error.code(),
            StartError::IdTaken { .. } => ErrorCode::IdTaken,
            StartError::Listen(error) => error.code(),
            StartError::Spawn { .. } | StartError::Child { .. } => ErrorCode::ChildFailed,
            StartError::Write { .. } => ErrorCode::CannotWrite,
        }
    }

    /// Advice for the operator.
    pub fn help(&self) -> &'static str {
        match self {
            StartError::DataDir(error) => error.help(),
            StartError::Metadata(MetadataError::Damaged { .. }) => {
                "restore the file, or start with an empty directory and load again"
            }
            StartError::Metadata(MetadataError::Refused { .. }) => {
                "look at etcd: users and rights, space and quotas"
            }
            StartError::TopologyUnknown(TopologyError::NoCluster) => {
                "make the cluster with `kith cluster create`, or check --metadata and --cluster"
            }
            StartError::Metadata(_) | StartError::TopologyUnknown(_) => {
                "is the metadata store running, and is --metadata its address? With etcd: --metadata etcd://HOST:PORT,HOST:PORT --cluster NAME"
            }
            StartError::Topology { .. } => "leave out what differs, or name another data directory",
            StartError::Outage(_) => {
                "label all nodes, spread each group's nodes evenly over zones, and choose partitions that its nodes divide evenly; or pass --allow-shared-zones"
            }
            StartError::Settings { .. } => "correct the settings file",
            StartError::MetadataTarget(_) => "correct the flag, or the key of the same name in the file",
            StartError::ObjectStore { .. } => {
                "name a folder or an s3://, gs:// or az:// URL; docs/operating/object-stores.md lists the settings"
            }
            StartError::ObjectStoreClaim { help, .. } => help,
            StartError::ReadyFileInUse { .. } => {
                "end that cluster first (`kith dev --stop`), or name another file with --ready-file"
            }
            StartError::Security(error) => error.help(),
            StartError::IdTaken { .. } => "stop that one first, or give this one another id (--id, --node)",
            StartError::Listen(error) => error.help(),
            StartError::Spawn { .. } | StartError::Child { .. } => {
                "its log is in the data directory, as node-NNN.log"
            }
            StartError::Write { .. } => "check the directory, its permissions and the free space",
        }
    }
}
