//! What a node answers, over gRPC and in frames.

use super::{
    PrepareOptions, Replicas, Supplier,
    answered::Answered,
    held::{HeldStores, VersionReader},
    pace::Reads,
    quota::{NodeQuotas, WayIn},
    scrub::FileHealth,
    slices::Cut,
};
use crate::{
    load::{InFlight, LoadCounter},
    peer,
};
use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::{self, BoxFuture},
    stream::BoxStream,
};
use kith_api::{
    ANSWER_BYTES_MAX, BATCH_KEYS_MAX,
    convert::{ConvertError, operator_from_wire},
};
use kith_engine::KeyType;
use kith_net::server::framed::{self, FrameService, Reply};
use kith_ops::{
    BatchRead, EvaluateError, LookupKeys, Operator, Room, Share, SourceError, Value, evaluate,
    evaluate_values, sets::Scratch,
};
use kith_process::{FailPoint, background, topology::TopologyReceiver};
use kith_types::{ByteKeys, ErrorCode, PartitionId};
use kith_wire::{
    body::{decode_keys, key_count},
    documents::{Document, ServedDocument},
    frame::Op,
    v1,
};
use std::{
    cell::RefCell,
    num::NonZeroU64,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

/// Time for a request that brings no deadline.
const DEADLINE_DEFAULT: Duration = Duration::from_secs(10);
/// Up to so many keys are evaluated on the connection's own task: handing over to another
/// thread costs about what so many short lists cost.
pub(super) const KEYS_INLINE_MAX: usize = 64;
/// Progress messages of a preparation that may wait for their reader.
const PROGRESS_QUEUE: usize = 64;

/// Answers `Node` requests. Cheap to clone.
#[derive(Clone)]
pub(super) struct NodeService {
    pub node: u32,
    pub held: Arc<HeldStores>,
    pub load: Arc<LoadCounter>,
    pub topology: TopologyReceiver,
    pub doctor: Arc<FileHealth>,
    /// What they take.
    pub reads: Arc<Reads>,
    /// The same, as a metric: looked up once.
    pub evaluate_seconds: metrics::Histogram,
    /// How much of stores may be read.
    pub quotas: Arc<NodeQuotas>,
    /// Of a version that a push has prepared.
    pub warm_bytes: u64,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// One evaluation, ready to run on any thread.
pub(super) struct Job {
    reader: VersionReader,
    keys: Vec<u64>,
    byte_keys: ByteKeys,
    partitions: Vec<PartitionId>,
    pub plan: Operator,
    /// Whether whoever asks proves values itself.
    proofs: bool,
    /// Which quota pays for it.
    pub way: WayIn,
    deadline: Instant,
    /// Set when the caller goes away.
    abandoned: Arc<AtomicBool>,
}

/// Tells a running job that its caller went away.
pub(super) struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Job {
    fn run(&self) -> Result<Value, EvaluateError> {
        self.check_wanted()?;
        let cancelled = || self.is_unwanted();
        match &self.reader {
            VersionReader::Graph(reader) => {
                let share = Share { keys: &self.keys, partitions: &self.partitions };
                SCRATCH
                    .with_borrow_mut(|scratch| evaluate(&self.plan, &share, &**reader, scratch, &cancelled))
            }
            VersionReader::Values(reader) => {
                let keys = match reader.key_type() {
                    KeyType::Id => LookupKeys::Ids(&self.keys),
                    KeyType::String | KeyType::Bytes => LookupKeys::Bytes(&self.byte_keys),
                };
                let asked = BatchRead { keys, room: Room::for_all(ANSWER_BYTES_MAX), proofs: self.proofs };
                evaluate_values(&self.plan, &asked, &**reader, reader.schema(), &cancelled)
            }
        }
    }

    /// What it makes of the first of the keys at these places, as many as there is room for; only of plans that go key by key.
    ///
    /// # Errors
    /// As `kith_ops::evaluate_values`.
    pub fn run_slice(&self, places: Range<usize>, room: Room) -> Result<Value, EvaluateError> {
        self.check_wanted()?;
        let cancelled = || self.is_unwanted();
        let VersionReader::Values(reader) = &self.reader else {
            return Err(EvaluateError::Mistyped { operator: "lookup", got: "a graph" });
        };
        let some;
        let keys = match reader.key_type() {
            KeyType::Id => LookupKeys::Ids(&self.keys[places]),
            KeyType::String | KeyType::Bytes => {
                let places: Vec<u32> = places.map(|place| place as u32).collect();
                some = self.byte_keys.select(&places);
                LookupKeys::Bytes(&some)
            }
        };
        let asked = BatchRead { keys, room, proofs: self.proofs };
        evaluate_values(&self.plan, &asked, &**reader, reader.schema(), &cancelled)
    }

    /// Refuses to begin what nobody waits for any more: it may have waited for its thread for longer than that.
    fn check_wanted(&self) -> Result<(), EvaluateError> {
        if !self.is_unwanted() {
            return Ok(());
        }
        metrics::counter!("kith_node_expired_total").increment(1);
        Err(EvaluateError::Cancelled)
    }

    fn is_unwanted(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed) || self.deadline <= Instant::now()
    }

    /// How many keys it is asked for.
    pub fn key_count(&self) -> usize {
        self.keys.len() + self.byte_keys.len()
    }

    /// Has it stop when this is dropped.
    pub fn abandon_on_drop(&self) -> AbandonOnDrop {
        AbandonOnDrop(Arc::clone(&self.abandoned))
    }

    /// Whether it has no page to wait for.
    pub fn is_warm(&self) -> bool {
        !self.reader.is_cold()
    }

    /// As [`Job::is_quick`], of these keys alone.
    pub fn is_quick_slice(&self, places: &Range<usize>) -> bool {
        places.len() <= KEYS_INLINE_MAX && self.is_warm()
    }

    /// Whether it is over sooner than another thread could take it up: few keys, and no page to wait for.
    fn is_quick(&self) -> bool {
        let counts = [self.keys.len(), self.byte_keys.len(), self.partitions.len()];
        counts.iter().all(|count| *count <= KEYS_INLINE_MAX) && self.is_warm()
    }

    /// Refuses what the store cannot answer.
    fn check(&self) -> Result<(), &'static str> {
        let reads_values = self.plan.reads_values();
        match &self.reader {
            VersionReader::Graph(_) if !self.byte_keys.is_empty() => {
                Err("the store holds a graph: its keys are ids, without byte keys")
            }
            VersionReader::Values(_) if !self.partitions.is_empty() => {
                Err("the store holds values: they are read by key, without partitions")
            }
            VersionReader::Graph(_) if reads_values => {
                Err("the store holds a graph: there are no values to look up")
            }
            VersionReader::Graph(_) => Ok(()),
            VersionReader::Values(_) if !reads_values => {
                Err("the store holds values: they can be looked up and worked on by key, and nothing else")
            }
            VersionReader::Values(reader) => {
                let is_id = reader.key_type() == KeyType::Id;
                let strangers = if is_id { self.byte_keys.len() } else { self.keys.len() };
                if strangers == 0 { Ok(()) } else { Err("the keys are of another type than the store's") }
            }
        }
    }
}

impl NodeService {
    fn job(&self, request: v1::EvaluateRequest, now: Instant) -> Result<Job, Status> {
        let way = WayIn::of(&request);
        let left = match request.header.as_ref().map_or(0, |header| header.deadline_us) {
            0 => DEADLINE_DEFAULT,
            micros => Duration::from_micros(micros),
        };
        let reader = self.held.get(&request.name, request.version).ok_or_else(|| {
            let message =
                format!("node {} does not hold version {} of {:?}", self.node, request.version, request.name);
            kith_wire::status(ErrorCode::VersionUnavailable, message, "ask another replica")
        })?;
        let plan = request.plan.as_ref().map(operator_from_wire).transpose();
        let plan = plan.and_then(|plan| plan.ok_or(ConvertError::Missing("plan")));
        let plan = plan.map_err(|error| {
            let code = match error {
                ConvertError::TooDeep(_) | ConvertError::TooWide(_) => ErrorCode::BadRequest,
                _ => ErrorCode::UnsupportedOperation,
            };
            let help = "use a client of this release";
            kith_wire::status(code, error.to_string(), help)
        })?;
        let refused =
            |detail: String| kith_wire::status(ErrorCode::BadRequest, detail, "use a client of this release");
        if matches!(reader, VersionReader::Values(_)) {
            check_key_count(&request).map_err(refused)?;
        }
        let byte_keys = match request.byte_keys.is_empty() {
            true => ByteKeys::default(),
            false => {
                decode_keys(&request.byte_keys).map_err(|error| refused(format!("byte keys: {error}")))?
            }
        };
        let job = Job {
            reader,
            keys: request.keys,
            byte_keys,
            partitions: request.partitions.into_iter().map(PartitionId).collect(),
            plan,
            proofs: request.proofs,
            way,
            deadline: now + left,
            abandoned: Arc::new(AtomicBool::new(false)),
        };
        job.check().map_err(|detail| refused(detail.to_owned()))?;
        Ok(job)
    }

    /// A place among the requests in flight.
    pub fn admit(&self, request: &v1::EvaluateRequest, now: Instant) -> Result<InFlight, Status> {
        let client = request.header.as_ref().map_or(0, |header| header.client);
        self.load.start(client, now).ok_or_else(|| {
            metrics::counter!("kith_node_overloaded_total").increment(1);
            let message = format!("node {} has too many requests in flight", self.node);
            kith_wire::status(ErrorCode::Overloaded, message, "ask another replica")
        })
    }

    async fn evaluate(&self, request: v1::EvaluateRequest) -> Result<Answered, Status> {
        if let Some(reservation) = &request.reservation
            && reservation.step() != v1::ReservationStep::Redeem
        {
            return self.reserve(&request, reservation);
        }
        let started = Instant::now();
        let keys = keys_of(&request);
        let reply = self.evaluated(request, started).await;
        self.load.note(keys, reply.as_ref().ok().map(|_| started.elapsed()));
        reply
    }

    async fn evaluated(&self, request: v1::EvaluateRequest, started: Instant) -> Result<Answered, Status> {
        let _in_flight = self.admit(&request, started)?;
        let served = vec![v1::Served { name: request.name.clone(), version: request.version }];
        let job = self.let_in(request, &served, started)?;
        self.answer(job, served, started).await
    }

    /// A request as a job, if so much may be read of what it names.
    pub fn let_in(
        &self,
        request: v1::EvaluateRequest,
        served: &[v1::Served],
        now: Instant,
    ) -> Result<Job, Status> {
        let job = self.job(request, now)?;
        for served in served.iter().filter(|_| job.plan.reads_values()) {
            let taken = self.quotas.take(&served.name, job.key_count(), job.way);
            taken.map_err(|error| error.to_status())?;
        }
        Ok(job)
    }

    /// Runs a job that was admitted.
    pub async fn answer(
        &self,
        job: Job,
        served: Vec<v1::Served>,
        started: Instant,
    ) -> Result<Answered, Status> {
        let _guard = job.abandon_on_drop();
        let way = job.way;
        let value = if job.is_quick() {
            job.run()
        } else {
            let joined = tokio::task::spawn_blocking(move || job.run()).await;
            joined.map_err(|error| Status::internal(format!("evaluation ended unexpectedly: {error}")))?
        };
        let value = value.map_err(|error| {
            if let EvaluateError::Source(SourceError::Damaged { .. }) = error {
                self.suspect(&served);
            }
            status_of(self.node, self.topology.borrow().cluster.epoch, &error)
        })?;
        self.note_damaged(value.records().map_or(0, kith_ops::Records::damaged), &served);
        let bytes = || value.records().map_or(0, kith_ops::Records::value_bytes);
        let left = self.answered(&served, way, bytes);
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
        Ok(Answered { value, rest })
    }

    /// So many records of an answer are damaged. They are answers, for their keys alone: nothing else tells of them.
    pub fn note_damaged(&self, damaged: u64, served: &[v1::Served]) {
        if 0 < damaged {
            tracing::error!(node = self.node, ?served, damaged, "damaged records");
            metrics::counter!("kith_node_damaged_reads_total").increment(damaged);
            self.suspect(served);
        }
    }

    /// How long a request was worked on.
    pub fn note_worked(&self, service: Duration) {
        self.evaluate_seconds.record(service.as_secs_f64());
        self.reads.record(service);
    }

    /// Has what a damaged read read looked at, and repaired.
    pub fn suspect(&self, served: &[v1::Served]) {
        served.iter().for_each(|served| self.doctor.suspect(&served.name));
    }

    fn prepare_options(&self, request: v1::PrepareRequest) -> PrepareOptions {
        let suppliers = request.suppliers.into_iter().map(|supplier| Supplier {
            addr: supplier.addr,
            partitions: supplier.partitions.into_iter().map(PartitionId).collect(),
        });
        PrepareOptions {
            bytes_max: request.quota_left_bytes,
            warm_bytes: self.warm_bytes,
            only: request.only.into_iter().map(PartitionId).collect(),
            suppliers: suppliers.collect(),
            given_up: CancellationToken::new(),
            replicas: Replicas::default(),
        }
    }

    fn ping(&self, request: &v1::PingRequest) -> Result<v1::PingReply, Status> {
        if self.load.is_leaving() {
            let message = format!("node {} is about to end", self.node);
            return Err(kith_wire::status(ErrorCode::Leaving, message, "ask another replica"));
        }
        if !request.waits.is_empty() {
            self.reads.told(&request.waits);
        }
        let served = self.held.served(&self.topology.borrow()).into_iter();
        let served = served.map(|(name, version)| v1::Served { name, version }).collect();
        let (files_damaged, files_repaired) = self.doctor.counts();
        Ok(v1::PingReply {
            node: self.node,
            load: Some(self.load.load(Instant::now())),
            served,
            epoch: self.topology.borrow().cluster.epoch,
            files_damaged,
            files_repaired,
            fetch_held_back: self.held.fetches().state().held_back.map_or(0, NonZeroU64::get),
            counters: request.counters.then(|| self.load.counters()),
            disk_free: request.disk.then(|| super::disk::free(self.held.folder())).flatten(),
        })
    }
}

/// Refuses more keys of values than routers let in, before they are decoded. Graphs have a bound of their own, [`Share::KEYS_MAX`].
fn check_key_count(request: &v1::EvaluateRequest) -> Result<(), String> {
    let count = request.keys.len().max(key_count(&request.byte_keys));
    match count <= BATCH_KEYS_MAX {
        true => Ok(()),
        false => Err(format!("the request has {count} keys, but must have at most {BATCH_KEYS_MAX}")),
    }
}

/// How much a request asks for; of byte keys, which are packed, the number that their body begins with.
pub fn keys_of(request: &v1::EvaluateRequest) -> usize {
    let packed = key_count(&request.byte_keys);
    request.keys.len() + request.partitions.len() + packed
}

impl FrameService for NodeService {
    fn call(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        match op {
            Op::Evaluate => {
                async move { Ok(self.evaluate(framed::request(body)?).await?.into_reply()) }.boxed()
            }
            Op::Ping => {
                let asked = framed::request::<v1::PingRequest>(body);
                future::ready(asked.and_then(|asked| Ok(Reply::Ping(self.ping(&asked)?)))).boxed()
            }
            Op::Query
            | Op::MultiGet
            | Op::MultiGetStream
            | Op::Compute
            | Op::ComputeStream
            | Op::Aggregate
            | Op::Cancel
            | Op::Credit
            | Op::Alive
            | Op::Identify
            | Op::Share
            | Op::GiveBack => future::ready(Err(framed::unsupported(op.name()))).boxed(),
        }
    }

    fn call_alone(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        match op {
            Op::Evaluate => async move {
                let request: v1::EvaluateRequest = framed::request(body)?;
                match request.in_slices {
                    true => Ok(self.evaluate_in_parts(request, Cut::Parts).await?.into_reply()),
                    false => Ok(self.evaluate(request).await?.into_reply()),
                }
            }
            .boxed(),
            other => self.call(other, body),
        }
    }

    fn call_credited(self: Arc<Self>, op: Op, body: Bytes) -> BoxFuture<'static, Result<Reply, Status>> {
        match op {
            Op::Evaluate => async move {
                let request = framed::request(body)?;
                Ok(self.evaluate_in_parts(request, Cut::Messages).await?.into_reply())
            }
            .boxed(),
            other => self.call(other, body),
        }
    }
}

#[tonic::async_trait]
impl v1::node_server::Node for NodeService {
    type PrepareStream = BoxStream<'static, Result<v1::PrepareProgress, Status>>;
    type ReadObjectStream = BoxStream<'static, Result<v1::ObjectPiece, Status>>;
    type CopyStream = super::moves::CopyStream;
    type EvaluateStreamStream = BoxStream<'static, Result<v1::EvaluateReply, Status>>;

    async fn copy(&self, request: Request<v1::CopyRequest>) -> Result<Response<Self::CopyStream>, Status> {
        Ok(Response::new(self.copy_from(request.into_inner()).await?))
    }

    async fn release(
        &self,
        request: Request<v1::ReleaseRequest>,
    ) -> Result<Response<v1::ReleaseReply>, Status> {
        self.release_partitions(request.into_inner()).await?;
        Ok(Response::new(v1::ReleaseReply {}))
    }

    async fn fetch_rate(
        &self,
        request: Request<v1::FetchRateRequest>,
    ) -> Result<Response<v1::FetchRateReply>, Status> {
        let fetches = self.held.fetches();
        if let Some(rate) = request.into_inner().bytes_per_second {
            fetches.set(NonZeroU64::new(rate));
            tracing::info!(node = self.node, bytes_per_second = rate, "fetches have a new rate");
        }
        let state = fetches.state();
        Ok(Response::new(v1::FetchRateReply {
            bytes_per_second: state.bytes_per_second.map_or(0, NonZeroU64::get),
            bytes_fetched: state.bytes,
            waiting: state.waiting,
            held_back: state.held_back.map_or(0, NonZeroU64::get),
        }))
    }

    async fn read_object(
        &self,
        request: Request<v1::ReadObjectRequest>,
    ) -> Result<Response<Self::ReadObjectStream>, Status> {
        Ok(Response::new(peer::read_object(&self.held, request.into_inner()).await?))
    }

    async fn evaluate(
        &self,
        request: Request<v1::EvaluateRequest>,
    ) -> Result<Response<v1::EvaluateReply>, Status> {
        Ok(Response::new(self.evaluate(request.into_inner()).await?.into_message()))
    }

    async fn evaluate_stream(
        &self,
        request: Request<v1::EvaluateRequest>,
    ) -> Result<Response<Self::EvaluateStreamStream>, Status> {
        let parts = Arc::new(self.clone()).evaluate_in_parts(request.into_inner(), Cut::Messages).await?;
        Ok(Response::new(parts.into_stream()))
    }

    async fn ping(&self, request: Request<v1::PingRequest>) -> Result<Response<v1::PingReply>, Status> {
        Ok(Response::new(self.ping(request.get_ref())?))
    }

    async fn prepare(
        &self,
        request: Request<v1::PrepareRequest>,
    ) -> Result<Response<Self::PrepareStream>, Status> {
        let store = ServedDocument::decode(&request.get_ref().record).map_err(|error| {
            kith_wire::status(ErrorCode::BadRequest, error.to_string(), "use a router of this release")
        })?;
        let revision = request.get_ref().revision;
        let options = self.prepare_options(request.into_inner());
        // Dropped with the stream: a router that went away, or ended its push, waits for nothing.
        let listener = options.given_up.clone().drop_guard();
        let (sender, receiver) = mpsc::channel(PROGRESS_QUEUE);
        let (held, node, topology) = (Arc::clone(&self.held), self.node, self.topology.clone());
        background::spawn(move || {
            let mut report = |component: &str, bytes_done, bytes_total| {
                let progress = v1::PrepareProgress {
                    component: component.to_owned(),
                    bytes_done,
                    bytes_total,
                    ready: false,
                    held_back: held.fetches().state().held_back.map_or(0, NonZeroU64::get),
                };
                // A full queue drops a progress message, never the preparation.
                let _ = sender.try_send(Ok(progress));
            };
            let last = match held.prepare(&store, revision, &options, &mut report) {
                Ok(()) => {
                    FailPoint::NodeReady.reach();
                    Ok(v1::PrepareProgress { ready: true, ..Default::default() })
                }
                Err(error) => Err(prepare_status(node, &error)),
            };
            let _ = sender.blocking_send(last);
            if options.given_up.is_cancelled() {
                // What was fetched of a version that nobody names goes at once.
                held.retire(&Arc::clone(&topology.borrow()), Instant::now());
            }
        });
        let steps = ReceiverStream::new(receiver).inspect(move |_| {
            let _kept_with_the_stream = &listener;
        });
        Ok(Response::new(steps.boxed()))
    }
}

fn prepare_status(node: u32, error: &super::PrepareError) -> Status {
    let mut message = format!("node {node}: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        message.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    kith_wire::status(ErrorCode::PrepareFailed, message, "nothing was swapped; mend the cause and load again")
}

/// What an evaluation that failed is answered with.
pub(super) fn status_of(node: u32, epoch: u64, error: &EvaluateError) -> Status {
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
        _ => (ErrorCode::BadRequest, "use a client of this release"),
    };
    kith_wire::status(code, message, help)
}
