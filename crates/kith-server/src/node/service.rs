//! What a node answers, over gRPC and in frames.

use super::held::HeldStores;
use crate::{
    framed::{self, FrameService, Reply},
    load::LoadCounter,
    topology::TopologyReceiver,
};
use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::BoxStream,
};
use kith_client::convert::{operator_from_wire, value_to_wire};
use kith_engine::GraphReader;
use kith_ops::{EvaluateError, Operator, Share, SourceError, Value, evaluate, sets::Scratch};
use kith_types::PartitionId;
use kith_wire::{
    documents::{Document, ServedDocument},
    frame::Op,
    v1,
};
use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status};

/// Time for a request that brings no deadline.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);
/// Up to so many keys are evaluated on the connection's own task: handing over to another
/// thread costs about what so many short lists cost.
const KEYS_INLINE_MAX: usize = 64;
/// Progress messages of a preparation that may wait for their reader.
const PROGRESS_QUEUE: usize = 64;

/// Answers `Node` requests.
pub(super) struct NodeService {
    pub node: u32,
    pub held: Arc<HeldStores>,
    pub load: Arc<LoadCounter>,
    pub topology: TopologyReceiver,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// One evaluation, ready to run on any thread.
struct Job {
    reader: Arc<GraphReader>,
    keys: Vec<u64>,
    partitions: Vec<PartitionId>,
    plan: Operator,
    deadline: Instant,
    /// Set when the caller goes away.
    abandoned: Arc<AtomicBool>,
}

/// Tells a running job that its caller went away.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Job {
    fn run(&self) -> Result<Value, EvaluateError> {
        let share = Share { keys: &self.keys, partitions: &self.partitions };
        let cancelled = || self.abandoned.load(Ordering::Relaxed) || self.deadline <= Instant::now();
        SCRATCH.with_borrow_mut(|scratch| evaluate(&self.plan, &share, &*self.reader, scratch, &cancelled))
    }

    fn is_small(&self) -> bool {
        self.keys.len() <= KEYS_INLINE_MAX && self.partitions.len() <= KEYS_INLINE_MAX
    }
}

impl NodeService {
    fn job(&self, request: v1::EvaluateRequest, now: Instant) -> Result<Job, Status> {
        let header = request.header.unwrap_or_default();
        let left = match header.deadline_us {
            0 => DEADLINE_DEFAULT,
            micros => Duration::from_micros(micros),
        };
        let reader = self.held.graph(&request.graph, request.graph_version).ok_or_else(|| {
            let message = format!(
                "node {} does not hold version {} of graph {:?}",
                self.node, request.graph_version, request.graph
            );
            kith_wire::status(Code::FailedPrecondition, "version_unavailable", message, "ask another replica")
        })?;
        let plan = request.plan.as_ref().map(operator_from_wire).transpose();
        let plan = plan.and_then(|plan| plan.ok_or(kith_client::convert::ConvertError::Missing("plan")));
        let plan = plan.map_err(|error| {
            kith_wire::status(
                Code::InvalidArgument,
                "unsupported_operation",
                error.to_string(),
                "use a client of this release",
            )
        })?;
        Ok(Job {
            reader,
            keys: request.keys,
            partitions: request.partitions.into_iter().map(PartitionId).collect(),
            plan,
            deadline: now + left,
            abandoned: Arc::new(AtomicBool::new(false)),
        })
    }

    async fn evaluate(&self, request: v1::EvaluateRequest) -> Result<v1::EvaluateReply, Status> {
        let started = Instant::now();
        let client = request.header.as_ref().map_or(0, |header| header.client);
        let Some(_in_flight) = self.load.start(client, started) else {
            metrics::counter!("kith_node_overloaded_total").increment(1);
            let message = format!("node {} has too many requests in flight", self.node);
            return Err(kith_wire::status(
                Code::ResourceExhausted,
                "overloaded",
                message,
                "ask another replica",
            ));
        };
        let served = vec![v1::Served { name: request.graph.clone(), version: request.graph_version }];
        let job = self.job(request, started)?;
        let _guard = AbandonOnDrop(Arc::clone(&job.abandoned));
        let value = if job.is_small() {
            job.run()
        } else {
            let joined = tokio::task::spawn_blocking(move || job.run()).await;
            joined.map_err(|error| Status::internal(format!("evaluation ended unexpectedly: {error}")))?
        };
        let value = value.map_err(|error| status_of(self.node, &error))?;
        let service = started.elapsed();
        metrics::histogram!("kith_node_evaluate_seconds").record(service.as_secs_f64());
        Ok(v1::EvaluateReply {
            value: Some(value_to_wire(&value)),
            load: Some(self.load.load(Instant::now())),
            served,
            service_us: u64::try_from(service.as_micros()).unwrap_or(u64::MAX),
        })
    }

    fn ping(&self) -> v1::PingReply {
        let served = self.held.served(&self.topology.borrow()).into_iter();
        let served = served.map(|(name, version)| v1::Served { name, version }).collect();
        v1::PingReply {
            node: self.node,
            load: Some(self.load.load(Instant::now())),
            served,
            epoch: self.topology.borrow().cluster.epoch,
        }
    }
}

impl FrameService for NodeService {
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        match op {
            Op::Evaluate => {
                async move { Ok(Reply::Evaluate(self.evaluate(framed::request(body)?).await?)) }.boxed()
            }
            Op::Ping => {
                let asked = framed::request::<v1::PingRequest>(body);
                future::ready(asked.map(|_| Reply::Ping(self.ping()))).boxed()
            }
            Op::Query | Op::Cancel | Op::Credit | Op::Alive => {
                future::ready(Err(framed::unsupported(op.name()))).boxed()
            }
        }
    }
}

#[tonic::async_trait]
impl v1::node_server::Node for NodeService {
    type PrepareStream = BoxStream<'static, Result<v1::PrepareProgress, Status>>;

    async fn evaluate(
        &self,
        request: Request<v1::EvaluateRequest>,
    ) -> Result<Response<v1::EvaluateReply>, Status> {
        Ok(Response::new(self.evaluate(request.into_inner()).await?))
    }

    async fn ping(&self, _request: Request<v1::PingRequest>) -> Result<Response<v1::PingReply>, Status> {
        Ok(Response::new(self.ping()))
    }

    async fn prepare(
        &self,
        request: Request<v1::PrepareRequest>,
    ) -> Result<Response<Self::PrepareStream>, Status> {
        let store = ServedDocument::decode(&request.get_ref().record).map_err(|error| {
            kith_wire::status(
                Code::InvalidArgument,
                "bad_request",
                error.to_string(),
                "use a router of this release",
            )
        })?;
        let revision = request.get_ref().revision;
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE);
        let (held, node) = (Arc::clone(&self.held), self.node);
        tokio::task::spawn_blocking(move || {
            let mut report = |component: &str, bytes_done, bytes_total| {
                let progress = v1::PrepareProgress {
                    component: component.to_owned(),
                    bytes_done,
                    bytes_total,
                    ready: false,
                };
                // A full queue drops a progress message, never the preparation.
                let _ = sender.try_send(Ok(progress));
            };
            let last = match held.prepare(&store, revision, &mut report) {
                Ok(()) => Ok(v1::PrepareProgress { ready: true, ..Default::default() }),
                Err(error) => Err(prepare_status(node, &error)),
            };
            let _ = sender.blocking_send(last);
        });
        Ok(Response::new(ReceiverStream::new(receiver).boxed()))
    }
}

fn prepare_status(node: u32, error: &super::PrepareError) -> Status {
    let mut message = format!("node {node}: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        message.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    kith_wire::status(
        Code::Aborted,
        "prepare_failed",
        message,
        "nothing was swapped; mend the cause and load again",
    )
}

fn status_of(node: u32, error: &EvaluateError) -> Status {
    let message = format!("node {node}: {error}");
    let (code, kith_code, help) = match error {
        EvaluateError::Cancelled => (Code::DeadlineExceeded, "deadline_exceeded", "give the query more time"),
        EvaluateError::Source(SourceError::NotOwner { .. }) => {
            (Code::FailedPrecondition, "not_owner", "refresh the routing table")
        }
        EvaluateError::Source(SourceError::Damaged { .. }) => {
            tracing::error!(%error, node, "damaged data");
            metrics::counter!("kith_node_damaged_reads_total").increment(1);
            (Code::DataLoss, "damaged", "ask another replica; load the graph again to repair this one")
        }
        _ => (Code::InvalidArgument, "bad_request", "use a client of this release"),
    };
    kith_wire::status(code, kith_code, message, help)
}
