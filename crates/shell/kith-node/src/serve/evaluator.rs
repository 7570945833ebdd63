//! Evaluates requests on the versions that a node holds, within quotas and the node's load limit, and records how long they
//! take.

use super::{
    answer::EncodableAnswer,
    job::{Job, keys_of},
    load::{InFlight, LoadCounter},
    quota::NodeQuotas,
};
use crate::{
    live::{LiveGraph, LiveGraphs, LiveValue},
    repair::scrub::FileHealth,
    threads::evaluate_aside,
    versions::held::HeldStores,
    versions::pace::Reads,
};
use kith_cluster::topology::TopologyReceiver;
use kith_operators::EvaluateError;
use kith_schema::SourceError;
use kith_types::ErrorCode;
use kith_wire::v1;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tonic::Status;

/// Evaluates requests.
pub(crate) struct Evaluator {
    pub node: u32,
    pub held: Arc<HeldStores>,
    pub load: Arc<LoadCounter>,
    pub topology: TopologyReceiver,
    pub file_health: Arc<FileHealth>,
    /// The service times of evaluations.
    pub reads: Arc<Reads>,
    /// The same times as a metric, whose handle is looked up only once.
    pub evaluate_seconds: metrics::Histogram,
    /// The read quotas of the stores.
    pub quotas: Arc<NodeQuotas>,
    /// The live graphs.
    pub live: Arc<LiveGraphs>,
}

impl Evaluator {
    /// Answers a request as a whole.
    ///
    /// # Errors
    /// Returns the status for the caller.
    pub async fn evaluate(&self, request: v1::EvaluateRequest) -> Result<EncodableAnswer, Status> {
        if let Some(reservation) = &request.reservation
            && reservation.step() != v1::ReservationStep::Redeem
        {
            return self.quotas.reserve_for(&request, reservation);
        }
        let started = Instant::now();
        let keys = keys_of(&request);
        let reply = self.evaluated(request, started).await;
        self.load.note(keys, reply.as_ref().ok().map(|_| started.elapsed()));
        reply
    }

    async fn evaluated(
        &self,
        request: v1::EvaluateRequest,
        started: Instant,
    ) -> Result<EncodableAnswer, Status> {
        let _in_flight = self.admit(&request, started)?;
        if let Some(graph) = self.live.find(&request.name).map_err(|error| error.to_status())? {
            return self.evaluated_live(&graph, &request, started).await;
        }
        let served = vec![v1::Served::of_version(request.name.clone(), request.version)];
        let job = self.let_in(request, &served, started)?;
        self.answer(job, served, started).await
    }

    /// Answers a request about a live graph.
    pub async fn evaluated_live(
        &self,
        graph: &Arc<LiveGraph>,
        request: &v1::EvaluateRequest,
        started: Instant,
    ) -> Result<EncodableAnswer, Status> {
        let LiveValue { value, reached } = graph.evaluate(request).await?;
        let service = started.elapsed();
        self.note_worked(service);
        let served = v1::Served { name: request.name.clone(), version: 0, ticket: reached.to_bytes().into() };
        let rest = v1::EvaluateReply {
            load: Some(self.load.load(Instant::now())),
            served: vec![served],
            service_us: u64::try_from(service.as_micros()).unwrap_or(u64::MAX),
            ..Default::default()
        };
        Ok(EncodableAnswer { value, rest })
    }

    /// Counts a request among those in flight.
    pub fn admit(&self, request: &v1::EvaluateRequest, now: Instant) -> Result<InFlight, Status> {
        let client = request.header.as_ref().map_or(0, |header| header.client);
        self.load.start(client, now).ok_or_else(|| {
            metrics::counter!("kith_node_overloaded_total").increment(1);
            let message = format!("node {} has too many requests in flight", self.node);
            kith_wire::status(ErrorCode::Overloaded, message, "ask another replica")
        })
    }

    /// Turns a request into a job, if the read quota of its store allows it.
    pub fn let_in(
        &self,
        request: v1::EvaluateRequest,
        served: &[v1::Served],
        now: Instant,
    ) -> Result<Job, Status> {
        let reader = self.held.open.get(&request.name, request.version).ok_or_else(|| {
            let message =
                format!("node {} does not hold version {} of {:?}", self.node, request.version, request.name);
            kith_wire::status(ErrorCode::VersionUnavailable, message, "ask another replica")
        })?;
        let job = Job::new(request, reader, now)?;
        for served in served.iter().filter(|_| job.plan.reads_values()) {
            let taken = self.quotas.take(&served.name, job.key_count(), job.way);
            taken.map_err(|refusal| kith_query::QueryError::from(refusal).to_status())?;
        }
        Ok(job)
    }

    /// Runs a job that was admitted.
    pub async fn answer(
        &self,
        job: Job,
        served: Vec<v1::Served>,
        started: Instant,
    ) -> Result<EncodableAnswer, Status> {
        let _guard = job.abandon_on_drop();
        let way = job.way;
        let value = if job.is_quick() {
            job.run()
        } else {
            let joined = evaluate_aside(move || job.run()).await;
            joined.map_err(|error| Status::internal(format!("evaluation ended unexpectedly: {error}")))?
        };
        let value = value.map_err(|error| self.failed(&error, &served))?;
        self.note_damaged(value.records().map_or(0, kith_operators::Records::damaged), &served);
        let bytes = || value.records().map_or(0, kith_operators::Records::value_bytes);
        let left = self.quotas.charge_answer(&served, way, bytes);
        let service = started.elapsed();
        self.note_worked(service);
        let rest = v1::EvaluateReply {
            value: None,
            load: Some(self.load.load(Instant::now())),
            served,
            service_us: u64::try_from(service.as_micros()).unwrap_or(u64::MAX),
            slices: Vec::new(),
            quota_left: left.into(),
        };
        Ok(EncodableAnswer { value, rest })
    }

    /// Returns the status of a failed evaluation. If the cause is damage, has the version checked.
    pub fn failed(&self, error: &EvaluateError, served: &[v1::Served]) -> Status {
        if let EvaluateError::Source(SourceError::Damaged { .. }) = error {
            self.suspect(served);
        }
        status_of(self.node, self.topology.borrow().cluster.epoch, error)
    }

    /// Records that `damaged` records of an answer are damaged. Such records are part of an answer, as errors of their keys,
    /// so nothing else reports them.
    pub fn note_damaged(&self, damaged: u64, served: &[v1::Served]) {
        if 0 < damaged {
            tracing::error!(node = self.node, ?served, damaged, "damaged records");
            metrics::counter!("kith_node_damaged_reads_total").increment(damaged);
            self.suspect(served);
        }
    }

    /// Records how long a request was worked on.
    pub fn note_worked(&self, service: Duration) {
        self.evaluate_seconds.record(service.as_secs_f64());
        self.reads.record(service);
    }

    /// Requests a check and repair of the files that a damaged read touched.
    fn suspect(&self, served: &[v1::Served]) {
        served.iter().for_each(|served| self.file_health.suspect(&served.name));
    }
}

/// Returns the status of a failed evaluation.
pub(crate) fn status_of(node: u32, epoch: u64, error: &EvaluateError) -> Status {
    let message = format!("node {node}: {error}");
    let (code, help) = match error {
        EvaluateError::Cancelled => (ErrorCode::DeadlineExceeded, "give the query more time"),
        EvaluateError::Source(SourceError::NotOwner { partition }) => {
            let help = "refresh the routing table".to_owned();
            let partitions = vec![partition.0];
            let detail = v1::ErrorDetail { help, epoch, partitions, ..Default::default() };
            return kith_wire::with_detail(ErrorCode::NotOwner, message, detail);
        }
        EvaluateError::Source(SourceError::Damaged { .. }) => {
            tracing::error!(%error, node, "damaged data");
            metrics::counter!("kith_node_damaged_reads_total").increment(1);
            (ErrorCode::Damaged, "ask another replica; load the graph again to repair this one")
        }
        EvaluateError::Source(SourceError::NotBuilt { .. }) => {
            (ErrorCode::Unavailable, "ask another replica")
        }
        EvaluateError::Source(SourceError::PositionUnavailable { .. }) => {
            (ErrorCode::OtherPosition, "ask again")
        }
        EvaluateError::Source(SourceError::OneSided { .. }) => {
            (ErrorCode::DirectionNotKept, "give the type an inverse, or follow it along \"out\"")
        }
        EvaluateError::TooLarge { .. } => (ErrorCode::TooLarge, "ask in several batches"),
        EvaluateError::Repeated { .. } | EvaluateError::UnknownPartition { .. } => {
            (ErrorCode::BadRequest, "name each key, and each partition that there is, once")
        }
        EvaluateError::TooMany { .. } => (ErrorCode::BadRequest, "ask in several requests"),
        EvaluateError::TooManyOperators { .. } | EvaluateError::TooManyIds { .. } => {
            (ErrorCode::BadRequest, "ask in several plans")
        }
        EvaluateError::Plan(error) => (error.code(), "see docs/queries.md"),
        EvaluateError::NotRecords => {
            (ErrorCode::NotRecords, "`kith store describe` shows what the store holds")
        }
        EvaluateError::LoadedGraph { .. } => {
            (ErrorCode::LoadedGraph, "only live graphs have objects and associations")
        }
        _ => (ErrorCode::BadRequest, "use a client of this release"),
    };
    kith_wire::status(code, message, help)
}
