//! Serves the graphs of a database process to nodes and routers, in frames.

use super::{
    fault::{point, wire_point},
    files::GraphFiles,
};
use crate::{
    BeginTerm, CommitError, Database, DatabaseError, GraphIdentity, LogEntry, LogError, SqliteDatabase, Trim,
};
use bytes::Bytes;
use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use kith_live::{
    AssociationKey, Batch, GarbledBytes, ListKey, TypeId, associations_to_bytes, objects_to_bytes,
    queries_from_bytes,
};
use kith_net::server::framed::{self, FrameReply, FrameService};
use kith_types::{ErrorCode, PartitionCount, PartitionId, Position, Term};
use kith_wire::{
    MESSAGE_BYTES_MAX,
    frame::Op,
    v1::{self, database_reply::Outcome, database_request::Call},
};
use std::sync::Arc;
use tonic::Status;

/// The most bytes of changes in one reply, whatever the request asks for. It is far below the maximum of a message.
const CHANGES_BYTES_MAX: usize = 32 << 20;
/// The most bytes of rows in one reply. The rest of the message is small.
const ROWS_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1024;

/// Answers the operation `database` for the graphs of a process.
pub struct DatabaseService {
    graphs: Arc<GraphFiles>,
}

/// The fault of a call, and its code for the metrics.
struct CallFault {
    code: ErrorCode,
    fault: v1::DatabaseFault,
}

impl From<DatabaseError> for CallFault {
    fn from(error: DatabaseError) -> Self {
        Self { code: error.code(), fault: error.into() }
    }
}

impl From<CommitError> for CallFault {
    fn from(error: CommitError) -> Self {
        Self { code: error.code(), fault: error.into() }
    }
}

impl From<LogError> for CallFault {
    fn from(error: LogError) -> Self {
        Self { code: error.code(), fault: error.into() }
    }
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
    pub fn new(graphs: Arc<GraphFiles>) -> Arc<Self> {
        Arc::new(Self { graphs })
    }

    async fn answer(&self, request: v1::DatabaseRequest) -> Result<v1::DatabaseReply, Status> {
        let v1::DatabaseRequest { graph, call } = request;
        let Some(call) = call else {
            let message = "the request contains no call that this database process knows";
            let help = "a newer call needs a newer release";
            return Err(kith_wire::status(ErrorCode::UnsupportedOperation, message, help));
        };
        let name = name_of(&call);
        let outcome = self.outcome(graph, call).await;
        count(name, outcome.as_ref().err().map(|fault| fault.code));
        let outcome = outcome.unwrap_or_else(|fault| Outcome::Fault(fault.fault));
        Ok(v1::DatabaseReply { outcome: Some(outcome) })
    }

    async fn outcome(&self, graph: Option<v1::DatabaseGraph>, call: Call) -> Result<Outcome, CallFault> {
        let (name, identity) = named(graph)?;
        match call {
            Call::Create(_) => self.graphs.create(&name, identity).await?,
            Call::Drop(_) => self.graphs.remove(&name, identity).await?,
            call => return of_graph(&*self.graphs.get(&name, identity).await?, call).await,
        }
        Ok(done())
    }
}

impl FrameService for DatabaseService {
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<FrameReply, Status>> {
        match op {
            Op::Database => {
                async move { Ok(FrameReply::Database(self.answer(framed::request(body)?).await?)) }.boxed()
            }
            other => future::ready(Err(framed::unsupported(other.name()))).boxed(),
        }
    }
}

/// Carries out a call that concerns an open database.
async fn of_graph(database: &SqliteDatabase, call: Call) -> Result<Outcome, CallFault> {
    match call {
        Call::Create(_) | Call::Open(_) | Call::Drop(_) => Ok(done()),
        Call::BeginTerm(v1::DatabaseBeginTerm { partition, term, leader }) => {
            let begin = BeginTerm { partition: PartitionId(partition), term: Term(term), leader };
            Ok(Outcome::Began(wire_point(database.begin_term(begin).await?)))
        }
        Call::Commit(v1::DatabaseCommit { batch }) => {
            database.commit(Batch::from_bytes(&batch).map_err(unreadable)?).await?;
            Ok(done())
        }
        Call::Read(read) => rows(database, read).await,
        Call::Points(v1::DatabasePoints { partitions }) => {
            let ends = database.points(partitions.into_iter().map(PartitionId).collect()).await?;
            Ok(Outcome::Ends(v1::DatabaseEnds { ends: ends.into_iter().map(wire_point).collect() }))
        }
        Call::Changes(changes) => log_part(database, changes).await,
        Call::ScanObjects(v1::DatabaseScanObjects { partition, after, limit }) => {
            let page = database.scan_objects(PartitionId(partition), after, limit).await?;
            page_of(wire_point(page.at), objects_to_bytes(&page.objects))
        }
        Call::ScanAssociations(v1::DatabaseScanAssociations { partition, after, limit }) => {
            let after = after.map(association_key).transpose()?;
            let page = database.scan_associations(PartitionId(partition), after, limit).await?;
            page_of(wire_point(page.at), associations_to_bytes(&page.associations))
        }
        Call::Trim(trim) => removed(database, trim).await,
    }
}

async fn rows(database: &SqliteDatabase, read: v1::DatabaseRead) -> Result<Outcome, CallFault> {
    let part = |part: v1::DatabaseReadPart| {
        let queries = queries_from_bytes(&part.queries).map_err(unreadable)?;
        Ok((PartitionId(part.partition), queries))
    };
    let parts = read.parts.into_iter().map(part).collect::<Result<_, DatabaseError>>()?;
    let found = database.read_many(parts).await?;
    let rows: Vec<Bytes> = found.iter().map(|rows| rows.to_bytes().into()).collect();
    check_length(rows.iter().map(Bytes::len).sum())?;
    Ok(Outcome::Rows(v1::DatabaseRows { rows }))
}

async fn log_part(database: &SqliteDatabase, changes: v1::DatabaseChanges) -> Result<Outcome, CallFault> {
    let v1::DatabaseChanges { partition, after, bytes_max } = changes;
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(CHANGES_BYTES_MAX);
    let part = database.changes(PartitionId(partition), point(after), bytes_max).await?;
    let changes = part.changes.into_iter().map(change).collect();
    Ok(Outcome::LogPart(v1::DatabaseLogPart { changes, end: Some(wire_point(part.end)) }))
}

async fn removed(database: &SqliteDatabase, trim: v1::DatabaseTrim) -> Result<Outcome, CallFault> {
    let partition = PartitionId(trim.partition);
    let trim = Trim {
        changes_before: Position(trim.changes_before),
        changes_written_before_ms: trim.changes_written_before_ms,
        outcomes_before_ms: trim.outcomes_before_ms,
    };
    let trimmed = database.trim(partition, trim).await?;
    let (changes, outcomes, more) = (trimmed.changes, trimmed.outcomes, trimmed.more);
    Ok(Outcome::Removed(v1::DatabaseRemoved { changes, outcomes, more }))
}

fn page_of(at: v1::LogPlace, rows: Vec<u8>) -> Result<Outcome, CallFault> {
    check_length(rows.len())?;
    Ok(Outcome::Page(v1::DatabasePage { at: Some(at), rows: rows.into() }))
}

fn done() -> Outcome {
    Outcome::Done(v1::DatabaseDone {})
}

/// Returns the name of a call as in [`DatabaseService::CALLS`].
fn name_of(call: &Call) -> &'static str {
    match call {
        Call::Create(_) => "create",
        Call::Open(_) => "open",
        Call::Drop(_) => "drop",
        Call::BeginTerm(_) => "begin_term",
        Call::Commit(_) => "commit",
        Call::Read(_) => "read",
        Call::Points(_) => "points",
        Call::Changes(_) => "changes",
        Call::ScanObjects(_) => "scan_objects",
        Call::ScanAssociations(_) => "scan_associations",
        Call::Trim(_) => "trim",
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
fn unreadable(garbled: GarbledBytes) -> DatabaseError {
    invalid(garbled.to_string())
}

fn check_length(length: usize) -> Result<(), DatabaseError> {
    if length <= ROWS_BYTES_MAX {
        return Ok(());
    }
    Err(invalid(format!("a reply of {length} bytes is longer than {ROWS_BYTES_MAX}: ask for less at a time")))
}

fn change(entry: LogEntry) -> v1::DatabaseChange {
    let LogEntry { at, written_ms, change } = entry;
    v1::DatabaseChange { at: Some(wire_point(at)), written_ms, change: change.to_bytes().into() }
}

fn association_key(key: v1::DatabaseAssociationKey) -> Result<AssociationKey, DatabaseError> {
    let kind = u16::try_from(key.r#type).map_err(|_| invalid("there is no such association type"))?;
    Ok(ListKey { id1: key.id1, kind: TypeId(kind) }.to(key.id2))
}
