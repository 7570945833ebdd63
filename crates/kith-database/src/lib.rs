//! The store of record of a live graph (`docs/design/0019-live-graph.md`): one trait, and a database in a file (SQLite), in
//! another process that has such files, or behind the protocol of MySQL.
//!
//! A database stores rows and the log of each partition. It does not know what a write means: leaders decide, and their
//! transactions are conditional on the term and the position that they believe to be the last. The tables are described in
//! `docs/formats/database.md`.
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

mod error;
mod fold;
mod log;
mod mysql;
mod process;
mod read;
mod retention;
mod rows;
mod sqlite;
mod storage;
mod tables;

pub use error::{CommitError, DatabaseError, LogError};
pub use mysql::{MysqlDatabase, MysqlOptions, MysqlTarget, PasswordSource, TargetError};
pub use process::{DatabaseService, GraphFiles, Locate, RemoteDatabase, RemoteOptions, RemoteTarget};
pub use retention::Retention;
pub use sqlite::{SqliteDatabase, SqliteOptions};
pub use storage::{Opened, PASSWORD_VARIABLE, Reach, Storage, StorageError};

use futures::future::BoxFuture;
use kith_live::{Association, AssociationKey, Batch, Change, ListKey, Object, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionCount, PartitionId, Position, Term};

/// The version of the tables that this release writes.
pub const SCHEMA_VERSION: u32 = 1;

/// Which graph a database holds. Both are fixed when the database is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphIdentity {
    /// The graph ([`kith_live::GraphTypes::identity`]).
    pub graph: u64,
    /// The number of its partitions.
    pub partitions: PartitionCount,
}

/// What a new leader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeginTerm {
    /// The partition.
    pub partition: PartitionId,
    /// The term that the metadata assigned to the leader.
    pub term: Term,
    /// A random number that the process of the leader drew when it started. It tells a repeat of this request from a request of
    /// another process for the same term.
    pub leader: u64,
}

/// One change of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEntry {
    /// Its place in the log.
    pub at: LogPoint,
    /// When it was written: milliseconds since 1970, by the clock of the process that wrote it.
    pub written_ms: u64,
    /// What changed.
    pub change: Change,
}

/// Consecutive changes of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogPart {
    /// The changes, in order and without gaps. Empty if the log has none after the point that was asked for.
    pub changes: Vec<LogEntry>,
    /// Where the log ended when it was read. Its term may be later than that of the last change.
    pub end: LogPoint,
}

/// Objects of one partition in ascending order of their ids.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectPage {
    /// The end of the log in the snapshot that the page was read from.
    pub at: LogPoint,
    /// The objects. Fewer than the limit: these are the last ones.
    pub objects: Vec<Object>,
}

/// Associations of one partition in ascending order of their keys.
#[derive(Clone, Debug, PartialEq)]
pub struct AssociationPage {
    /// The end of the log in the snapshot that the page was read from.
    pub at: LogPoint,
    /// The associations with their lists. Fewer than the limit: these are the last ones.
    pub associations: Vec<(ListKey, Association)>,
}

/// What is no longer needed of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trim {
    /// Changes before this position may go …
    pub changes_before: Position,
    /// … if they were written before this time too (milliseconds since 1970). Only a prefix of the log is removed.
    pub changes_written_before_ms: u64,
    /// Outcomes that were decided before this time may go (milliseconds since 1970).
    pub outcomes_before_ms: u64,
}

/// What [`Database::trim`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// The number of changes.
    pub changes: u64,
    /// The number of outcomes.
    pub outcomes: u64,
    /// Whether one transaction was not enough: trim again.
    pub more: bool,
}

/// What a call of a [`Database`] returns: a future of its outcome.
pub type Reply<'a, T, E = DatabaseError> = BoxFuture<'a, Result<T, E>>;

/// What reading the log of a partition returns.
pub type LogReply<'a> = Reply<'a, LogPart, LogError>;

/// The database of one live graph. Implementations are held to `tests/contract.rs`.
///
/// Callers may assume: a transaction takes effect as a whole or not at all, and is durable once it is acknowledged; reads
/// see all transactions that were acknowledged before they began; the answers of one call come from one snapshot.
///
/// Requests and answers are plain values, so that a process can offer its database to others.
pub trait Database: Send + Sync + 'static {
    /// Which graph this is.
    fn identity(&self) -> GraphIdentity;

    /// Raises the term of a partition and returns where its log ends: in the new term, at the last position. From then on
    /// commits of earlier terms are refused.
    ///
    /// A repeat with the same term and the same [`BeginTerm::leader`] succeeds and returns the current end of the log.
    ///
    /// # Errors
    /// [`CommitError::Fenced`] if the partition has a later term, or this term with another leader.
    /// [`CommitError::Unknown`]: ask for a later term. After a repeat of this request the term might begin in two histories, if the
    /// database is replaced by an older copy of itself.
    fn begin_term(&self, request: BeginTerm) -> Reply<'_, LogPoint, CommitError>;

    /// Writes all parts of `batch` in one transaction, if the log of each of its partitions ends where the part expects,
    /// and if logs contain what the batch requires. A part without changes writes nothing and is only such a condition.
    ///
    /// # Errors
    /// Nothing was written, except after [`CommitError::Unknown`]. To find out what happened then, begin a later term:
    /// the batch cannot take effect any more, and the end of the log tells whether it has.
    fn commit(&self, batch: Batch) -> Reply<'_, (), CommitError>;

    /// Reads rows of one partition and the end of its log.
    fn read(&self, partition: PartitionId, queries: Vec<RowQuery>) -> Reply<'_, RowsAt>;

    /// Where the logs of these partitions end, in their order.
    fn points(&self, partitions: Vec<PartitionId>) -> Reply<'_, Vec<LogPoint>>;

    /// The changes after `after`, which is a place that the caller has reached: at most about `bytes_max` of them, but at
    /// least one if there is any.
    fn changes(&self, partition: PartitionId, after: LogPoint, bytes_max: usize) -> LogReply<'_>;

    /// At most `limit` objects with ids above `after`. Each page is a snapshot of its own.
    fn scan_objects(&self, partition: PartitionId, after: Option<u64>, limit: u32) -> Reply<'_, ObjectPage>;

    /// At most `limit` associations with keys above `after`. Each page is a snapshot of its own.
    fn scan_associations(
        &self,
        partition: PartitionId,
        after: Option<AssociationKey>,
        limit: u32,
    ) -> Reply<'_, AssociationPage>;

    /// Removes old changes and outcomes, as many as one short transaction allows. It may be repeated at any time.
    fn trim(&self, partition: PartitionId, trim: Trim) -> Reply<'_, Trimmed>;

    /// Waits for transactions under way and closes all connections. Later calls fail as unavailable.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The time of day, for [`LogEntry::written_ms`].
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl GraphIdentity {
    /// Refuses a partition that the graph does not have.
    fn check_partition(self, partition: PartitionId) -> Result<(), DatabaseError> {
        match partition.0 < self.partitions.get() {
            true => Ok(()),
            false => Err(DatabaseError::no_partition(partition, self.partitions)),
        }
    }

    /// Compares with what the table `meta` says.
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
