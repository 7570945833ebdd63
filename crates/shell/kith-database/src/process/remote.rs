//! The database of a graph in a database process.

use super::{
    call::{CallFailure, ProcessClient, RemoteTarget},
    fault::{point, wire_point},
    portions::portions,
};
use crate::{
    AssociationPage, BeginTerm, CommitError, Database, DatabaseError, DatabaseFuture, GraphIdentity,
    LogEntry, LogFuture, LogPart, ObjectPage, PartitionQueries, Trim, TrimResult,
};
use futures::future::{BoxFuture, try_join_all};
use kith_live::{
    AssociationKey, Batch, Change, RowsAt, associations_from_bytes, objects_from_bytes, queries_to_bytes,
};
use kith_types::{LogPoint, PartitionId};
use kith_wire::v1::{self, database_reply::Outcome, database_request::Call};

/// The database of a graph in a database process of the cluster.
///
/// If the connection is lost before the reply, a commit or the beginning of a term fails with [`CommitError::Unknown`].
/// If no connection could be opened, it fails with [`CommitError::NotWritten`].
pub struct RemoteDatabase {
    client: ProcessClient,
}

/// Sends a call and returns its result. If the outcome is a fault, returns from the function with an error.
macro_rules! call {
    ($client:expr, $call:expr, $outcome:path) => {
        match $client.call($call).await? {
            $outcome(it) => it,
            Outcome::Fault(fault) => return Err(fault.into()),
            _ => return Err(mixed_up().into()),
        }
    };
}

impl RemoteDatabase {
    /// Creates the database of a graph. Does nothing if the process has that graph already.
    ///
    /// # Errors
    /// [`DatabaseError::OtherGraph`] or [`DatabaseError::OtherPartitions`] if the process has another graph of this
    /// name; any other [`DatabaseError`] if it cannot be used.
    pub async fn create(target: RemoteTarget, identity: GraphIdentity) -> Result<Self, DatabaseError> {
        let client = ProcessClient::new(target, identity);
        call!(client, Call::Create(v1::DatabaseCreate {}), Outcome::Done);
        Ok(Self { client })
    }

    /// Opens the database of a graph.
    ///
    /// # Errors
    /// [`DatabaseError::NoGraph`] if the process does not have the graph; [`DatabaseError::OtherGraph`] or
    /// [`DatabaseError::OtherPartitions`] if it has another graph of this name; any other [`DatabaseError`] if it
    /// cannot be used.
    pub async fn open(target: RemoteTarget, identity: GraphIdentity) -> Result<Self, DatabaseError> {
        let client = ProcessClient::new(target, identity);
        call!(client, Call::Open(v1::DatabaseOpen {}), Outcome::Done);
        Ok(Self { client })
    }

    /// Removes the database of a graph. Does nothing if it does not exist.
    ///
    /// # Errors
    /// [`DatabaseError::OtherGraph`] or [`DatabaseError::OtherPartitions`] if the process has another graph of this
    /// name; any other [`DatabaseError`] if it cannot be used.
    pub async fn remove(target: RemoteTarget, identity: GraphIdentity) -> Result<(), DatabaseError> {
        let client = ProcessClient::new(target, identity);
        call!(client, Call::Drop(v1::DatabaseDrop {}), Outcome::Done);
        Ok(())
    }
}

impl RemoteDatabase {
    /// Reads rows of several partitions in one call.
    async fn read_portion(&self, parts: Vec<PartitionQueries>) -> Result<Vec<RowsAt>, DatabaseError> {
        let expected = parts.len();
        let part = |(partition, queries): PartitionQueries| {
            let queries = queries_to_bytes(&queries).into();
            v1::DatabaseReadPart { partition: partition.0, queries }
        };
        let parts = parts.into_iter().map(part).collect();
        let rows = call!(self.client, Call::Read(v1::DatabaseRead { parts }), Outcome::Rows).rows;
        if rows.len() != expected {
            let detail =
                format!("the process returned rows of {} partitions instead of {expected}", rows.len());
            return Err(DatabaseError::damaged(detail));
        }
        Ok(rows.iter().map(|rows| RowsAt::from_bytes(rows)).collect::<Result<_, _>>()?)
    }
}

fn mixed_up() -> CallFailure {
    CallFailure::Unknown("the database process sent the reply to another call".to_owned())
}

fn entry(entry: v1::DatabaseChange) -> Result<LogEntry, DatabaseError> {
    let change = Change::from_bytes(&entry.change)?;
    Ok(LogEntry { at: point(entry.at), written_ms: entry.written_ms, change })
}

impl Database for RemoteDatabase {
    fn identity(&self) -> GraphIdentity {
        self.client.identity()
    }

    fn begin_term(&self, request: BeginTerm) -> DatabaseFuture<'_, LogPoint, CommitError> {
        Box::pin(async move {
            let BeginTerm { partition, term, leader } = request;
            let begin = v1::DatabaseBeginTerm { partition: partition.0, term: term.0, leader };
            let end = call!(self.client, Call::BeginTerm(begin), Outcome::Began);
            Ok(point(Some(end)))
        })
    }

    fn commit(&self, batch: Batch) -> DatabaseFuture<'_, (), CommitError> {
        Box::pin(async move {
            let commit = v1::DatabaseCommit { batch: batch.to_bytes().into() };
            call!(self.client, Call::Commit(commit), Outcome::Done);
            Ok(())
        })
    }

    fn read_many(&self, parts: Vec<PartitionQueries>) -> DatabaseFuture<'_, Vec<RowsAt>> {
        Box::pin(async move {
            let calls = portions(parts).into_iter().map(|portion| self.read_portion(portion));
            Ok(try_join_all(calls).await?.concat())
        })
    }

    fn points(&self, partitions: Vec<PartitionId>) -> DatabaseFuture<'_, Vec<LogPoint>> {
        Box::pin(async move {
            let partitions: Vec<u32> = partitions.into_iter().map(|partition| partition.0).collect();
            let expected = partitions.len();
            let points = v1::DatabasePoints { partitions };
            let ends = call!(self.client, Call::Points(points), Outcome::Ends).ends;
            if ends.len() != expected {
                let detail = format!("the process returned {} log ends instead of {expected}", ends.len());
                return Err(DatabaseError::damaged(detail));
            }
            Ok(ends.into_iter().map(|end| point(Some(end))).collect())
        })
    }

    fn changes(&self, partition: PartitionId, after: LogPoint, bytes_max: usize) -> LogFuture<'_> {
        Box::pin(async move {
            let after = Some(wire_point(after));
            let asked = v1::DatabaseChanges { partition: partition.0, after, bytes_max: bytes_max as u64 };
            let part = call!(self.client, Call::Changes(asked), Outcome::LogPart);
            let changes = part.changes.into_iter().map(entry).collect::<Result<_, _>>()?;
            Ok(LogPart { changes, end: point(part.end) })
        })
    }

    fn scan_objects(
        &self,
        partition: PartitionId,
        after: Option<u64>,
        limit: u32,
    ) -> DatabaseFuture<'_, ObjectPage> {
        Box::pin(async move {
            let scan = v1::DatabaseScanObjects { partition: partition.0, after, limit };
            let page = call!(self.client, Call::ScanObjects(scan), Outcome::Page);
            Ok(ObjectPage { at: point(page.at), objects: objects_from_bytes(&page.rows)? })
        })
    }

    fn scan_associations(
        &self,
        partition: PartitionId,
        after: Option<AssociationKey>,
        limit: u32,
    ) -> DatabaseFuture<'_, AssociationPage> {
        Box::pin(async move {
            let key = |key: AssociationKey| v1::DatabaseAssociationKey {
                id1: key.list.id1,
                r#type: key.list.kind.0.into(),
                id2: key.id2,
            };
            let after = after.map(key);
            let scan = v1::DatabaseScanAssociations { partition: partition.0, after, limit };
            let page = call!(self.client, Call::ScanAssociations(scan), Outcome::Page);
            let associations = associations_from_bytes(&page.rows)?;
            Ok(AssociationPage { at: point(page.at), associations })
        })
    }

    fn trim(&self, partition: PartitionId, trim: Trim) -> DatabaseFuture<'_, TrimResult> {
        Box::pin(async move {
            let trim = v1::DatabaseTrim {
                partition: partition.0,
                changes_before: trim.changes_before.0,
                changes_written_before_ms: trim.changes_written_before_ms,
                outcomes_before_ms: trim.outcomes_before_ms,
            };
            let removed = call!(self.client, Call::Trim(trim), Outcome::Removed);
            Ok(TrimResult { changes: removed.changes, outcomes: removed.outcomes, more: removed.more })
        })
    }

    /// Waits for calls under way. The process keeps the graph open for other callers.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.client.close())
    }
}
