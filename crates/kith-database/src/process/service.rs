//! Serves the graphs of a database process to nodes over gRPC.

use super::{
    fault::{place, point},
    files::GraphFiles,
};
use crate::{
    BeginTerm, CommitError, Database, DatabaseError, GraphIdentity, LogEntry, LogError, SqliteDatabase, Trim,
};
use bytes::Bytes;
use kith_live::{
    AssociationKey, Batch, Garbled, ListKey, TypeId, associations_to_bytes, objects_to_bytes,
    queries_from_bytes,
};
use kith_types::{ErrorCode, PartitionCount, PartitionId, Position, Term};
use kith_wire::{
    MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX,
    v1::{self, database_server},
};
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The most bytes of changes in one reply, whatever the request asks for. It is far below the maximum of a message.
const CHANGES_BYTES_MAX: usize = 32 << 20;
/// The most bytes of rows in one reply. The rest of the message is small.
const ROWS_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1024;

/// The gRPC service `Database` for the graphs of a process.
pub struct DatabaseService {
    graphs: Arc<GraphFiles>,
}

/// A reply, which may contain a fault.
type Answer<R> = Result<Response<R>, Status>;

/// Replies with the result of `$work`, or with its error as a fault.
macro_rules! answer {
    ($call:literal, $error:ty, $reply:ident, $work:expr) => {{
        let done: Result<v1::$reply, $error> = async { $work }.await;
        count($call, done.as_ref().err().map(|error| error.code()));
        #[allow(clippy::needless_update, reason = "some replies have no other field")]
        let faulty = |error: $error| v1::$reply { fault: Some(error.into()), ..v1::$reply::default() };
        Ok(Response::new(done.unwrap_or_else(faulty)))
    }};
}

impl DatabaseService {
    /// All values of the label `call` of the counter `kith_database_calls_total`.
    pub const CALLS: &[&str] = &[
        "create",
        "open",
        "drop",
        "begin_term",
        "commit",
        "read",
        "points",
        "changes",
        "scan_objects",
        "scan_associations",
        "trim",
    ];

    /// All values of the label `code` of the counter `kith_database_faults_total`: the codes of all errors.
    pub const FAULTS: &[&str] = &[
        "database_damaged",
        "database_empty",
        "database_full",
        "database_newer",
        "database_other_graph",
        "database_read_only",
        "database_refused",
        "database_unavailable",
        "fenced",
        "history_lost",
        "internal",
        "log_moved",
        "log_trimmed",
        "outcome_unknown",
    ];

    /// Returns a service for these graphs.
    pub fn new(graphs: Arc<GraphFiles>) -> database_server::DatabaseServer<Self> {
        database_server::DatabaseServer::new(Self { graphs })
            .max_decoding_message_size(REQUEST_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    async fn graph(&self, graph: Option<v1::DatabaseGraph>) -> Result<Arc<SqliteDatabase>, DatabaseError> {
        let (name, identity) = named(graph)?;
        self.graphs.get(&name, identity).await
    }
}

/// Counts a call, and its error code if it failed.
fn count(call: &'static str, fault: Option<ErrorCode>) {
    metrics::counter!("kith_database_calls_total", "call" => call).increment(1);
    if let Some(code) = fault {
        metrics::counter!("kith_database_faults_total", "code" => code.name()).increment(1);
    }
}

fn named(graph: Option<v1::DatabaseGraph>) -> Result<(String, GraphIdentity), DatabaseError> {
    let v1::DatabaseGraph { name, identity, partitions } =
        graph.ok_or_else(|| invalid("the request names no graph"))?;
    let partitions =
        PartitionCount::new(partitions).ok_or_else(|| invalid("a graph has at least one partition"))?;
    Ok((name, GraphIdentity { graph: identity, partitions }))
}

fn invalid(detail: impl Into<String>) -> DatabaseError {
    DatabaseError::Invalid { detail: detail.into() }
}

/// Converts the error of a malformed request. Unlike malformed bytes of a database, it does not mean that the database
/// is damaged.
fn unreadable(garbled: Garbled) -> DatabaseError {
    invalid(garbled.to_string())
}

fn rows(bytes: Vec<u8>) -> Result<Bytes, DatabaseError> {
    check_length(bytes.len())?;
    Ok(bytes.into())
}

fn check_length(length: usize) -> Result<(), DatabaseError> {
    if length <= ROWS_BYTES_MAX {
        return Ok(());
    }
    Err(invalid(format!("a reply of {length} bytes is longer than {ROWS_BYTES_MAX}: ask for less at a time")))
}

fn change(entry: LogEntry) -> v1::DatabaseChange {
    let LogEntry { at, written_ms, change } = entry;
    v1::DatabaseChange { at: Some(place(at)), written_ms, change: change.to_bytes().into() }
}

fn association_key(key: v1::DatabaseAssociationKey) -> Result<AssociationKey, DatabaseError> {
    let kind = u16::try_from(key.r#type).map_err(|_| invalid("there is no such association type"))?;
    Ok(ListKey { id1: key.id1, kind: TypeId(kind) }.to(key.id2))
}

#[tonic::async_trait]
impl database_server::Database for DatabaseService {
    async fn create(&self, request: Request<v1::DatabaseGraphRequest>) -> Answer<v1::DatabaseReply> {
        answer!("create", DatabaseError, DatabaseReply, {
            let (name, identity) = named(request.into_inner().graph)?;
            self.graphs.create(&name, identity).await?;
            Ok(v1::DatabaseReply::default())
        })
    }

    async fn open(&self, request: Request<v1::DatabaseGraphRequest>) -> Answer<v1::DatabaseReply> {
        answer!("open", DatabaseError, DatabaseReply, {
            self.graph(request.into_inner().graph).await?;
            Ok(v1::DatabaseReply::default())
        })
    }

    async fn drop(&self, request: Request<v1::DatabaseGraphRequest>) -> Answer<v1::DatabaseReply> {
        answer!("drop", DatabaseError, DatabaseReply, {
            let (name, identity) = named(request.into_inner().graph)?;
            self.graphs.remove(&name, identity).await?;
            Ok(v1::DatabaseReply::default())
        })
    }

    async fn begin_term(
        &self,
        request: Request<v1::DatabaseBeginTermRequest>,
    ) -> Answer<v1::DatabaseBeginTermReply> {
        answer!("begin_term", CommitError, DatabaseBeginTermReply, {
            let v1::DatabaseBeginTermRequest { graph, partition, term, leader } = request.into_inner();
            let begin = BeginTerm { partition: PartitionId(partition), term: Term(term), leader };
            let end = self.graph(graph).await?.begin_term(begin).await?;
            Ok(v1::DatabaseBeginTermReply { fault: None, end: Some(place(end)) })
        })
    }

    async fn commit(&self, request: Request<v1::DatabaseCommitRequest>) -> Answer<v1::DatabaseReply> {
        answer!("commit", CommitError, DatabaseReply, {
            let v1::DatabaseCommitRequest { graph, batch } = request.into_inner();
            let batch = Batch::from_bytes(&batch).map_err(unreadable)?;
            self.graph(graph).await?.commit(batch).await?;
            Ok(v1::DatabaseReply::default())
        })
    }

    async fn read(&self, request: Request<v1::DatabaseReadRequest>) -> Answer<v1::DatabaseReadReply> {
        answer!("read", DatabaseError, DatabaseReadReply, {
            let v1::DatabaseReadRequest { graph, parts } = request.into_inner();
            let part = |part: v1::DatabaseReadPart| {
                let queries = queries_from_bytes(&part.queries).map_err(unreadable)?;
                Ok((PartitionId(part.partition), queries))
            };
            let parts = parts.into_iter().map(part).collect::<Result<_, DatabaseError>>()?;
            let found = self.graph(graph).await?.read_many(parts).await?;
            let rows: Vec<Bytes> = found.iter().map(|rows| rows.to_bytes().into()).collect();
            check_length(rows.iter().map(Bytes::len).sum())?;
            Ok(v1::DatabaseReadReply { fault: None, rows })
        })
    }

    async fn points(&self, request: Request<v1::DatabasePointsRequest>) -> Answer<v1::DatabasePointsReply> {
        answer!("points", DatabaseError, DatabasePointsReply, {
            let v1::DatabasePointsRequest { graph, partitions } = request.into_inner();
            let partitions = partitions.into_iter().map(PartitionId).collect();
            let ends = self.graph(graph).await?.points(partitions).await?;
            Ok(v1::DatabasePointsReply { fault: None, ends: ends.into_iter().map(place).collect() })
        })
    }

    async fn changes(
        &self,
        request: Request<v1::DatabaseChangesRequest>,
    ) -> Answer<v1::DatabaseChangesReply> {
        answer!("changes", LogError, DatabaseChangesReply, {
            let v1::DatabaseChangesRequest { graph, partition, after, bytes_max } = request.into_inner();
            let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(CHANGES_BYTES_MAX);
            let database = self.graph(graph).await?;
            let part = database.changes(PartitionId(partition), point(after), bytes_max).await?;
            Ok(v1::DatabaseChangesReply {
                fault: None,
                changes: part.changes.into_iter().map(change).collect(),
                end: Some(place(part.end)),
            })
        })
    }

    async fn scan_objects(
        &self,
        request: Request<v1::DatabaseScanObjectsRequest>,
    ) -> Answer<v1::DatabaseScanReply> {
        answer!("scan_objects", DatabaseError, DatabaseScanReply, {
            let v1::DatabaseScanObjectsRequest { graph, partition, after, limit } = request.into_inner();
            let page = self.graph(graph).await?.scan_objects(PartitionId(partition), after, limit).await?;
            let (at, rows) = (Some(place(page.at)), rows(objects_to_bytes(&page.objects))?);
            Ok(v1::DatabaseScanReply { fault: None, at, rows })
        })
    }

    async fn scan_associations(
        &self,
        request: Request<v1::DatabaseScanAssociationsRequest>,
    ) -> Answer<v1::DatabaseScanReply> {
        answer!("scan_associations", DatabaseError, DatabaseScanReply, {
            let v1::DatabaseScanAssociationsRequest { graph, partition, after, limit } = request.into_inner();
            let after = after.map(association_key).transpose()?;
            let database = self.graph(graph).await?;
            let page = database.scan_associations(PartitionId(partition), after, limit).await?;
            let (at, rows) = (Some(place(page.at)), rows(associations_to_bytes(&page.associations))?);
            Ok(v1::DatabaseScanReply { fault: None, at, rows })
        })
    }

    async fn trim(&self, request: Request<v1::DatabaseTrimRequest>) -> Answer<v1::DatabaseTrimReply> {
        answer!("trim", DatabaseError, DatabaseTrimReply, {
            let request = request.into_inner();
            let trim = Trim {
                changes_before: Position(request.changes_before),
                changes_written_before_ms: request.changes_written_before_ms,
                outcomes_before_ms: request.outcomes_before_ms,
            };
            let database = self.graph(request.graph).await?;
            let trimmed = database.trim(PartitionId(request.partition), trim).await?;
            let (changes, outcomes, more) = (trimmed.changes, trimmed.outcomes, trimmed.more);
            Ok(v1::DatabaseTrimReply { fault: None, changes, outcomes, more })
        })
    }
}
