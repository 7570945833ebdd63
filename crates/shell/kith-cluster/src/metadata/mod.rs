//! The metadata of a cluster behind one trait, [`MetadataStore`]: a small, ordered key space with revisions,
//! conditional commits, watches and leases. Every process follows it and registers in it. It keeps documents and does
//! not know what they mean, apart from the records of stores.
//!
//! ```text
//! MetadataStore ◄─ EmbeddedMetadata (kith dev: a map and its file) ◄─ MetadataService ◄─ RemoteMetadata (its children)
//!               ◄─ EtcdMetadata (production)
//! ```
//!
//! - [`keys`]: every key that Kith uses.
//! - `embedded`, `etcd`, `remote` and `service`: the implementations.
//! - `target`: which of them an address names.
//! - [`records`]: the only way to change the record of a store: read, decide with `kith-topology`, and write on
//!   condition that nothing changed meanwhile.
//!
//! Commits are atomic and ordered by revision. A watch may skip states but never misses the latest one. Without the
//! store the topology cannot change, but reads continue from the last snapshot.
//!
//! To add an implementation, write a module, its addresses in `target`, and a line in `tests/contract.rs`.

mod embedded;
mod etcd;
pub mod records;
mod remote;
mod service;
mod target;
mod target_error;
pub mod types;

pub use embedded::EmbeddedMetadata;
pub use etcd::EtcdMetadata;
use kith_types::ErrorCode;
pub use remote::RemoteMetadata;
pub use service::MetadataService;
pub use target::MetadataTarget;
pub use target_error::TargetError;

use futures::{future::BoxFuture, stream::BoxStream};
use std::{io, path::PathBuf, time::Duration};
use thiserror::Error;

/// Returns whether a read or a watch of `prefix` covers `key`: the key begins with the prefix, and is not set apart unless the
/// prefix is ([`keys::APART`]).
pub fn covers(prefix: &str, key: &str) -> bool {
    key.starts_with(prefix) && (prefix.starts_with(keys::APART) || !key.starts_with(keys::APART))
}

/// The keys that Kith uses.
pub mod keys {
    /// The first character of keys that are set apart. A read or a watch of all keys does not cover them, so that they cost
    /// nobody anything who does not ask for them. All other keys sort before them.
    pub const APART: char = '~';
    /// Prefix of the types of live graphs: `~types/<graph>/<identity>-<revision>`. The graph's document names the key.
    pub const TYPES: &str = "~types/";
    /// Prefix of the keys that each change writes which adds to what all processes read (`records::shares`).
    pub const SHARES: &str = "~shares";
    /// The `ClusterDocument`.
    pub const CLUSTER: &str = "cluster";
    /// Prefix of `NodeDocument`s.
    pub const NODES: &str = "nodes/";
    /// Prefix of `RouterDocument`s.
    pub const ROUTERS: &str = "routers/";
    /// Prefix of `StoreDocument`s.
    pub const STORES: &str = "stores/";
    /// Prefix of `DroppedDocument`s.
    pub const DROPPED: &str = "~dropped/";
    /// Prefix of `LiveGraphDocument`s.
    pub const LIVE_GRAPHS: &str = "live-graphs/";
    /// Prefix of `LeadersDocument`s.
    pub const LEADERS: &str = "leaders/";
    /// Prefix of `DatabaseDocument`s.
    pub const DATABASES: &str = "databases/";
    /// The `RebalanceDocument` of the running rebalance. Pushes begin only while this key is absent.
    pub const REBALANCE: &str = "rebalance";
    /// The `RebalanceDocument` of the last rebalance that ended. Partitions that it moved wait here for the end of their
    /// grace period.
    pub const REBALANCE_ENDED: &str = "rebalance-ended";
    /// The command `abort` or `resume` with the id of a rebalance, from the router that received it for the router that
    /// drives.
    pub const REBALANCE_ASKED: &str = "rebalance-asked";
    /// Prefix of the leased keys of processes. A key exists while its process lives.
    pub const LIVE: &str = "live/";
    /// Prefix of the leased keys of nodes; the id follows.
    pub const LIVE_NODES: &str = "live/nodes/";
    /// Prefix of the leased keys of routers; the id follows.
    pub const LIVE_ROUTERS: &str = "live/routers/";

    /// The key of one node's document.
    pub fn node(node: u32) -> String {
        format!("{NODES}{node:06}")
    }

    /// The key of one router's document.
    pub fn router(router: u32) -> String {
        format!("{ROUTERS}{router:06}")
    }

    /// The key of one store's document.
    pub fn store(name: &str) -> String {
        format!("{STORES}{name}")
    }

    /// The key of one live graph's document.
    pub fn live_graph(name: &str) -> String {
        format!("{LIVE_GRAPHS}{name}")
    }

    /// The key of the types of a live graph at one revision.
    pub fn types(graph: &str, identity: &str, revision: u64) -> String {
        format!("{}{identity}-{revision:010}", types_of(graph))
    }

    /// Prefix of the types of one live graph.
    pub fn types_of(graph: &str) -> String {
        format!("{TYPES}{graph}/")
    }

    /// The key of the leaders of one live graph.
    pub fn leaders(graph: &str) -> String {
        format!("{LEADERS}{graph}")
    }

    /// The key of one database's document.
    pub fn database(database: u32) -> String {
        format!("{DATABASES}{database:06}")
    }

    /// The leased key of one database.
    pub fn live_database(database: u32) -> String {
        format!("{LIVE}databases/{database:06}")
    }

    /// The key of the `DroppedDocument` of a dropped store.
    pub fn dropped(name: &str) -> String {
        format!("{DROPPED}{name}")
    }

    /// The leased key of one node.
    pub fn live_node(node: u32) -> String {
        format!("{LIVE_NODES}{node:06}")
    }

    /// The leased key of one router.
    pub fn live_router(router: u32) -> String {
        format!("{LIVE_ROUTERS}{router:06}")
    }
}

/// One key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Vec<u8>,
    /// The revision of its last change.
    pub revision: u64,
}

/// All entries under a prefix at one revision, in key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// The store's revision.
    pub revision: u64,
    /// The entries.
    pub entries: Vec<Entry>,
}

impl Snapshot {
    /// Returns the entry of `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

/// A condition of a commit: the last change of the key must have this revision; 0 requires that the key does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The key.
    pub key: String,
    /// Its expected revision.
    pub revision: u64,
}

/// One change of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: String,
    /// Its new value; `None` deletes it.
    pub value: Option<Vec<u8>>,
    /// The lease of the key, if any. The key vanishes when the lease ends. Leased keys are not kept on disk.
    pub lease: Option<LeaseId>,
}

impl MetadataError {
    /// The stable error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            MetadataError::Refused { .. } => ErrorCode::MetadataRefused,
            MetadataError::Damaged { .. } => ErrorCode::DataDirectoryDamaged,
            MetadataError::Unavailable { .. }
            | MetadataError::LeaseEnded(_)
            | MetadataError::Write { .. } => ErrorCode::MetadataUnavailable,
        }
    }
}

impl Write {
    /// Sets `key` without a lease.
    pub fn put(key: impl Into<String>, value: Vec<u8>) -> Self {
        Self { key: key.into(), value: Some(value), lease: None }
    }

    /// Deletes `key`.
    pub fn delete(key: impl Into<String>) -> Self {
        Self { key: key.into(), value: None, lease: None }
    }
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// All writes happened, at this revision.
    At(u64),
    /// A condition did not hold; nothing happened.
    Conflict,
}

/// A lease. It lasts while it is kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// The reason why the metadata cannot be read or changed.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum MetadataError {
    /// The store cannot be reached now. Reads continue without it.
    #[error("metadata store is unavailable: {reason}")]
    Unavailable { reason: String },
    /// The store answers with a refusal: rights, quotas, sizes. Reads continue without it.
    #[error("metadata store refuses: {reason}")]
    Refused {
        /// The store's own explanation.
        reason: String,
    },
    /// The lease has ended.
    #[error("lease {0} has ended")]
    LeaseEnded(u64),
    /// A write to disk failed; nothing was committed.
    #[error("write metadata to {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file on disk is not a metadata file of this release.
    #[error("metadata file {path} cannot be read: {detail}")]
    Damaged {
        path: PathBuf,
        /// A description of the fault in the file.
        detail: String,
    },
}

/// The result of a call of a [`MetadataStore`], as a future.
pub type MetadataFuture<'a, T> = BoxFuture<'a, Result<T, MetadataError>>;

/// The metadata store. All implementations are tested by `tests/contract.rs`.
///
/// Callers may assume that commits are atomic and totally ordered by revision, and that a watch never misses the latest
/// state, though it may skip states in between.
pub trait MetadataStore: Send + Sync + 'static {
    /// Returns all entries that `prefix` [`covers`], at one revision.
    fn read<'a>(&'a self, prefix: &'a str) -> MetadataFuture<'a, Snapshot>;

    /// Applies all `writes`, or none if a condition does not hold.
    fn commit(&self, conditions: Vec<Condition>, writes: Vec<Write>) -> MetadataFuture<'_, CommitOutcome>;

    /// Returns the snapshot of `prefix`, as [`MetadataStore::read`] does, once it is newer than `from_revision`, then a snapshot
    /// after each change. The stream ends when the store goes away.
    fn watch(&self, prefix: &str, from_revision: u64) -> BoxStream<'static, Snapshot>;

    /// Returns a lease that ends `ttl` after it was last kept alive.
    fn lease(&self, ttl: Duration) -> MetadataFuture<'_, LeaseId>;

    /// Keeps a lease alive for another `ttl`.
    ///
    /// # Errors
    /// [`MetadataError::LeaseEnded`] if the lease has ended. Take a new one and write its keys again.
    fn keep_alive(&self, lease: LeaseId) -> MetadataFuture<'_, ()>;
}
