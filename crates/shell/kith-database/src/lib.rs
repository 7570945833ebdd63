//! The durable store of a live graph (`docs/design/0019-live-graph.md`): one trait, [`Database`], over rows and the log
//! of each partition. Leaders on nodes write to it, and replicas follow its logs. It does not know the meaning of a
//! write.
//!
//! - `sqlite`: a graph in one file. `process`: such files in another process (`kith database`).
//! - `mysql`: a database behind the MySQL protocol (feature `mysql`).
//! - `tables`, `rows`, `fold`, `read`: tables and cells for both dialects; a batch as writes, queries as reads.
//! - `log`, `unique`, `retention`: checks of logs, unique values, and how long logs are kept.
//! - `storage`, `servers`: where a graph is stored, and which servers it may use.
//! - `error`: above all, whether nothing was written or the outcome is unknown.
//! - `testing`: a MariaDB (feature `testing`).
//!
//! A commit takes effect only if each of its partitions is still at the term and position that the leader expects. This
//! alone keeps two leaders from writing. `docs/formats/database.md` describes the tables.
//!
//! ```
//! use kith_database::{BeginTerm, Database, GraphIdentity, SqliteDatabase, SqliteOptions};
//! use kith_live::{Batch, BatchPart, ListKey, LoggedChange, RowAnswer, RowQuery, RowWrite, TypeId};
//! use kith_types::{PartitionCount, PartitionId, Term};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let identity = GraphIdentity { graph: 7, partitions: PartitionCount::new(4).ok_or("no count")? };
//! let file = folder.path().join("graph.sqlite");
//! let database = SqliteDatabase::create(&file, identity, SqliteOptions::default())?;
//!
//! let partition = PartitionId(3);
//! let expected = database.begin_term(BeginTerm { partition, term: Term(1), leader: 42 }).await?;
//! let list = ListKey { id1: 9043, kind: TypeId(1) };
//! let change = LoggedChange { rows: vec![RowWrite::SetCount(list, 2)], ..Default::default() };
//! let part = BatchPart { partition, expected, changes: vec![change] };
//! database.commit(Batch { parts: vec![part], ..Default::default() }).await?;
//!
//! let rows = database.read(partition, vec![RowQuery::Count(list)]).await?;
//! assert_eq!(rows.answers, [RowAnswer::Count(2)]);
//! database.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! To add a database, implement [`Database`] and add a variant of [`Storage`]. `tests/contract.rs` checks every one.

mod error;
mod fold;
mod log;
#[cfg(feature = "mysql")]
mod mysql;
mod process;
mod read;
mod retention;
mod rows;
mod servers;
mod sqlite;
mod storage;
mod tables;
#[cfg(feature = "testing")]
pub mod testing;
mod unique;

pub use error::{CommitError, DatabaseError, LogError};
#[cfg(feature = "mysql")]
pub use mysql::{MysqlDatabase, MysqlOptions, PasswordError};
pub use process::{
    DatabaseProcesses, DatabaseService, GraphFiles, ProcessLocator, RemoteDatabase, RemoteOptions,
    RemoteTarget,
};
pub use retention::Retention;
pub use servers::{
    AddressError, DatabaseServer, DatabaseServers, MysqlTarget, PasswordSource, ServerAddress, ServerRefused,
    ServerUrl, Tls, TlsKey,
};
pub use sqlite::{SqliteDatabase, SqliteOptions};
pub use storage::{OpenResult, PASSWORD_VARIABLE, Reach, Storage, StorageError};

use futures::future::BoxFuture;
use kith_live::{Association, AssociationKey, Batch, Change, ListKey, Object, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionCount, PartitionId, Position, Term};

/// The version of the tables in this release.
pub const SCHEMA_VERSION: u32 = 1;

/// The graph that a database holds. Both fields are fixed when the database is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphIdentity {
    /// The identity of the graph ([`kith_live::GraphTypes::identity`]).
    pub graph: u64,
    /// The number of partitions of the graph.
    pub partitions: PartitionCount,
}

/// The request of a new leader to begin a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginTerm {
    /// The partition.
    pub partition: PartitionId,
    /// The term that the metadata store has assigned to the leader.
    pub term: Term,
    /// A random number that the leader's process drew when it started. It distinguishes a repeat of this request from a
    /// request of another process for the same term.
    pub leader: u64,
}

/// One change of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// Its place in the log.
    pub at: LogPoint,
    /// The time at which it was written, in milliseconds since 1970, by the clock of the process that wrote it.
    pub written_ms: u64,
    /// The change.
    pub change: Change,
}

/// Consecutive changes of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPart {
    /// The changes, in order and without gaps. Empty if the log has none after the requested point.
    pub changes: Vec<LogEntry>,
    /// The end of the log when it was read. Its term may be later than that of the last change.
    pub end: LogPoint,
}

/// A page of objects of one partition, in ascending order of ids.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectPage {
    /// The end of the log in the snapshot that the page was read from.
    pub at: LogPoint,
    /// The objects. If there are fewer than the limit, no further objects follow.
    pub objects: Vec<Object>,
}

/// A page of associations of one partition, in ascending order of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct AssociationPage {
    /// The end of the log in the snapshot that the page was read from.
    pub at: LogPoint,
    /// The associations with their lists. If there are fewer than the limit, no further associations follow.
    pub associations: Vec<(ListKey, Association)>,
}

/// The parts of a partition that are no longer needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trim {
    /// The position before which changes may be removed, if they were also written before `changes_written_before_ms`.
    pub changes_before: Position,
    /// The time before which these changes must have been written, in milliseconds since 1970. Only a prefix of the log
    /// is removed.
    pub changes_written_before_ms: u64,
    /// The time before which the outcomes that may be removed were decided, in milliseconds since 1970.
    pub outcomes_before_ms: u64,
}

/// The result of [`Database::trim`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrimResult {
    /// The number of removed changes.
    pub changes: u64,
    /// The number of removed outcomes.
    pub outcomes: u64,
    /// Whether one transaction did not suffice, so that the caller should trim again.
    pub more: bool,
}

/// The result of a call of a [`Database`]: a future of its outcome.
pub type DatabaseFuture<'a, T, E = DatabaseError> = BoxFuture<'a, Result<T, E>>;

/// A partition, and what to read of it.
pub type PartitionQueries = (PartitionId, Vec<RowQuery>);

/// The result of reading the log of a partition.
pub type LogFuture<'a> = DatabaseFuture<'a, LogPart, LogError>;

/// The database of one live graph. `tests/contract.rs` checks all implementations.
///
/// Callers may rely on the following. A transaction takes effect as a whole or not at all, and is durable once it is
/// acknowledged. Reads see all transactions that were acknowledged before the reads began. All answers of one call about
/// one partition come from one snapshot.
///
/// Requests and answers are plain values, so that a process can serve its database to others.
pub trait Database: Send + Sync + 'static {
    /// Returns the graph that this database holds.
    fn identity(&self) -> GraphIdentity;

    /// Raises the term of a partition and returns the end of its log: the last position, in the new term. From then on,
    /// commits of earlier terms are refused.
    ///
    /// A repeat with the same term and the same [`BeginTerm::leader`] succeeds and returns the current end of the log.
    ///
    /// # Errors
    /// - [`CommitError::Fenced`] if the partition has a later term, or this term with another leader.
    /// - [`CommitError::Unknown`] if the outcome is unknown. The caller should then ask for a later term, not repeat
    ///   this request: if the database is replaced by an older copy of itself, the same term could begin in two
    ///   histories.
    fn begin_term(&self, request: BeginTerm) -> DatabaseFuture<'_, LogPoint, CommitError>;

    /// Writes all parts of `batch` in one transaction, if the log of each of its partitions ends where the part
    /// expects, if all logs contain the places that the batch requires, and if no other object of the graph has a unique
    /// value that the batch gives to one. If several of these conditions fail, the error names the first. A part without changes writes nothing and
    /// is only a condition.
    ///
    /// # Errors
    /// Except after [`CommitError::Unknown`], nothing was written. To find out what happened in that case, begin a
    /// later term: the batch can then no longer take effect, and the end of the log shows whether it has.
    fn commit(&self, batch: Batch) -> DatabaseFuture<'_, (), CommitError>;

    /// Reads rows of several partitions, each with the end of its log, in the order of `parts`. The rows of one partition
    /// come from one snapshot; those of different partitions may come from different ones.
    fn read_many(&self, parts: Vec<PartitionQueries>) -> DatabaseFuture<'_, Vec<RowsAt>>;

    /// Reads rows of one partition and the end of its log.
    fn read(&self, partition: PartitionId, queries: Vec<RowQuery>) -> DatabaseFuture<'_, RowsAt> {
        Box::pin(async move {
            let mut rows = self.read_many(vec![(partition, queries)]).await?;
            rows.pop().ok_or_else(|| DatabaseError::damaged("the database returned no rows"))
        })
    }

    /// Returns the ends of the logs of these partitions, in the same order.
    fn points(&self, partitions: Vec<PartitionId>) -> DatabaseFuture<'_, Vec<LogPoint>>;

    /// Reads the changes after `after`, which is a place that the caller has reached. Returns about `bytes_max` bytes
    /// of changes at most, but at least one change if there is any.
    fn changes(&self, partition: PartitionId, after: LogPoint, bytes_max: usize) -> LogFuture<'_>;

    /// Reads at most `limit` objects with ids above `after`. Each page is a snapshot of its own.
    fn scan_objects(
        &self,
        partition: PartitionId,
        after: Option<u64>,
        limit: u32,
    ) -> DatabaseFuture<'_, ObjectPage>;

    /// Reads at most `limit` associations with keys above `after`. Each page is a snapshot of its own.
    fn scan_associations(
        &self,
        partition: PartitionId,
        after: Option<AssociationKey>,
        limit: u32,
    ) -> DatabaseFuture<'_, AssociationPage>;

    /// Removes old changes and outcomes, as many as fit into one short transaction. The call may be repeated at any
    /// time.
    fn trim(&self, partition: PartitionId, trim: Trim) -> DatabaseFuture<'_, TrimResult>;

    /// Waits for transactions under way, and closes all connections. Later calls fail as unavailable.
    fn close(&self) -> BoxFuture<'_, ()>;
}

impl GraphIdentity {
    /// Returns an error if the graph does not have this partition.
    fn check_partition(self, partition: PartitionId) -> Result<(), DatabaseError> {
        match partition.0 < self.partitions.get() {
            true => Ok(()),
            false => Err(DatabaseError::no_partition(partition, self.partitions)),
        }
    }

    /// Compares this identity with the contents of the table `meta`.
    fn check(self, version: u32, graph: u64, partitions: u64) -> Result<(), DatabaseError> {
        if version == 0 || SCHEMA_VERSION < version {
            return Err(DatabaseError::Newer { found: version, known: SCHEMA_VERSION });
        }
        if graph != self.graph {
            return Err(DatabaseError::OtherGraph { found: graph, expected: self.graph });
        }
        if partitions != u64::from(self.partitions.get()) {
            let expected = self.partitions.get();
            return Err(DatabaseError::OtherPartitions { found: partitions, expected });
        }
        Ok(())
    }
}
