//! The database and the network of one node. Each call may be a step of the plan, which can fail.

use super::plan::{FailPlan, Step};
use crate::live::{Databases, LiveGraphs};
use futures::{FutureExt, future::BoxFuture};
use kith_database::{
    AssociationPage, BeginTerm, CommitError, Database, DatabaseError, DatabaseFuture, GraphIdentity,
    LogFuture, ObjectPage, OpenResult, PartitionQueries, SqliteDatabase, Storage, Trim, TrimResult,
};
use kith_live::{AssociationKey, Batch, Intent, RowsAt};
use kith_net::{
    SendFailure,
    transport::{Transport, TransportFuture},
};
use kith_types::{LogPoint, PartitionCount, PartitionId};
use kith_wire::v1;
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::runtime::Handle;
use tonic::Status;

/// The real database. Calls of leaders are steps of the plan; calls of followers are not.
pub struct FaultyDatabase {
    pub node: usize,
    pub plan: Arc<FailPlan>,
    pub inner: Arc<SqliteDatabase>,
}

impl FaultyDatabase {
    fn step(&self, what: &'static str, partitions: Vec<PartitionId>) -> Step {
        Step { node: self.node, what, partitions }
    }

    fn commit_step<T: Send + 'static>(
        &self,
        step: Step,
        request: BoxFuture<'static, Result<T, CommitError>>,
    ) -> DatabaseFuture<'_, T, CommitError> {
        let lost = CommitError::Unknown { reason: "a test lost it".to_owned() };
        self.plan.step(step, request, CommitError::NotWritten(refused()), lost).boxed()
    }
}

fn refused() -> DatabaseError {
    DatabaseError::Unavailable { reason: "a test refuses it".to_owned() }
}

impl Database for FaultyDatabase {
    fn identity(&self) -> GraphIdentity {
        self.inner.identity()
    }

    fn begin_term(&self, request: BeginTerm) -> DatabaseFuture<'_, LogPoint, CommitError> {
        let (inner, step) = (Arc::clone(&self.inner), self.step("begin_term", vec![request.partition]));
        self.commit_step(step, async move { inner.begin_term(request).await }.boxed())
    }

    fn commit(&self, batch: Batch) -> DatabaseFuture<'_, (), CommitError> {
        let partitions = batch.parts.iter().map(|part| part.partition).collect();
        let (inner, step) = (Arc::clone(&self.inner), self.step("commit", partitions));
        self.commit_step(step, async move { inner.commit(batch).await }.boxed())
    }

    fn read_many(&self, parts: Vec<PartitionQueries>) -> DatabaseFuture<'_, Vec<RowsAt>> {
        let partitions = parts.iter().map(|(partition, _)| *partition).collect();
        let (inner, step) = (Arc::clone(&self.inner), self.step("read", partitions));
        let request = async move { inner.read_many(parts).await }.boxed();
        self.plan.step(step, request, refused(), refused()).boxed()
    }

    fn points(&self, partitions: Vec<PartitionId>) -> DatabaseFuture<'_, Vec<LogPoint>> {
        self.inner.points(partitions)
    }

    fn changes(&self, partition: PartitionId, after: LogPoint, bytes_max: usize) -> LogFuture<'_> {
        self.inner.changes(partition, after, bytes_max)
    }

    fn scan_objects(
        &self,
        partition: PartitionId,
        after: Option<u64>,
        limit: u32,
    ) -> DatabaseFuture<'_, ObjectPage> {
        self.inner.scan_objects(partition, after, limit)
    }

    fn scan_associations(
        &self,
        partition: PartitionId,
        after: Option<AssociationKey>,
        limit: u32,
    ) -> DatabaseFuture<'_, AssociationPage> {
        self.inner.scan_associations(partition, after, limit)
    }

    fn trim(&self, partition: PartitionId, trim: Trim) -> DatabaseFuture<'_, TrimResult> {
        self.inner.trim(partition, trim)
    }

    /// Does nothing, because the other nodes continue to use the database.
    fn close(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

/// Opens the database for one node.
pub struct NodeOpener {
    pub node: usize,
    pub plan: Arc<FailPlan>,
    pub inner: Arc<SqliteDatabase>,
}

impl Databases for NodeOpener {
    fn open<'a>(&'a self, _: &'a str, _: &'a Storage, _: GraphIdentity) -> BoxFuture<'a, OpenResult> {
        let (plan, inner) = (Arc::clone(&self.plan), Arc::clone(&self.inner));
        let database: Arc<dyn Database> = Arc::new(FaultyDatabase { node: self.node, plan, inner });
        std::future::ready(Ok(database)).boxed()
    }
}

/// The running processes of the nodes, by node.
pub type Processes = Arc<Mutex<Vec<(Handle, Arc<LiveGraphs>)>>>;

/// Carries deliveries from one node to the others, whose addresses are their numbers.
pub struct Network {
    pub node: usize,
    pub count: PartitionCount,
    pub plan: Arc<FailPlan>,
    pub processes: Processes,
}

impl Transport for Network {
    fn evaluate<'a>(&'a self, _: &'a str, _: v1::EvaluateRequest) -> TransportFuture<'a, v1::EvaluateReply> {
        std::future::ready(Err(Status::unimplemented("nodes do not evaluate for each other here"))).boxed()
    }

    fn ping<'a>(&'a self, _: &'a str, _: v1::PingRequest) -> TransportFuture<'a, v1::PingReply> {
        std::future::ready(Err(Status::unimplemented("nodes do not ping each other here"))).boxed()
    }

    fn write<'a>(
        &'a self,
        _: &'a str,
        _: v1::GraphWriteRequest,
        _: Duration,
    ) -> TransportFuture<'a, v1::GraphWriteReply, SendFailure> {
        let status = Status::unimplemented("nodes do not write to each other");
        std::future::ready(Err(SendFailure::Unsent(status))).boxed()
    }

    fn deliver<'a>(
        &'a self,
        addr: &'a str,
        request: v1::DeliverRequest,
        _: Duration,
    ) -> TransportFuture<'a, v1::DeliverReply> {
        let intent = Intent::from_bytes(&request.intent).expect("leaders encode intents");
        let partitions = vec![intent.pair.partitions(self.count).0];
        let step = Step { node: self.node, what: "deliver", partitions };
        let processes = Arc::clone(&self.processes);
        let node: usize = addr.parse().expect("addresses are numbers");
        let request = async move {
            let (handle, graphs) = processes.lock()[node].clone();
            let delivered = handle.spawn(async move { graphs.deliver(request).await });
            delivered.await.unwrap_or_else(|_| Err(Status::unavailable("the node has died")))
        };
        let refused = Status::unavailable("a test refuses it");
        let lost = Status::deadline_exceeded("a test lost it");
        self.plan.step(step, request.boxed(), refused, lost).boxed()
    }
}
