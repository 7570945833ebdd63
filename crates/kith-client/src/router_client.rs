//! A client that speaks to routers: the simple way in, one hop more than [`crate::Session`].

mod cluster;

use crate::{
    compute::{aggregate_here, compute_here},
    failover::left,
    schemas::Schemas,
    store::note_mismatches,
    topology::Topology,
    transport::TransportKind,
};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::BoxStream};
use kith_api::{
    AggregateAnswer, AggregateQuery, Answered, BatchAnswer, BatchKeys, BatchStream, ComputeAnswer, ComputeAt,
    ComputeQuery, GraphService, Proofs, QueryError, QueryOptions, StoreService, StoreShape,
    convert::{
        aggregate_answer_from_wire, aggregate_to_wire, answer_from_wire, batch_answer_from_wire,
        batch_to_wire, compute_answer_from_wire, compute_to_wire, query_to_wire,
    },
};
use kith_net::{
    frames::{Frames, decoded},
    security::{Dialer, GrpcChannel, TlsFailure},
};
use kith_ops::{GraphQuery, Operand, Want};
use kith_schema::{Schema, SchemaId};
use kith_types::ErrorCode;
use kith_wire::{
    MESSAGE_BYTES_MAX, Message,
    documents::{Document, TopologyDocument},
    frame::Op,
    v1::{
        self, cluster_client::ClusterClient, graph_client::GraphClient, query_reply::Answer,
        store_client::StoreClient,
    },
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tonic::{Code, Response, Status, transport::Channel};

/// A router that cannot tell its topology within this time is not one to choose.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// How long an administrative call may take.
const CALL_PATIENCE: Duration = Duration::from_secs(10);
/// How long a query without a deadline may take: no router allows more.
const QUERY_PATIENCE: Duration = Duration::from_secs(60);
/// What the way there and back may add to a query's deadline.
const DEADLINE_GRACE: Duration = Duration::from_millis(500);

/// Connections to one router: queries travel in frames, if it speaks them, the rest over HTTP/2. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct RouterClient {
    addr: String,
    /// `None` where gRPC was asked for.
    frames: Option<Arc<Frames>>,
    graph: GraphClient<GrpcChannel>,
    cluster: ClusterClient<GrpcChannel>,
    store: StoreClient<GrpcChannel>,
    schemas: Schemas,
    dialer: Dialer,
}

/// What is answered by a stream.
pub(crate) enum StreamRequest {
    Values(v1::MultiGetRequest),
    Compute(v1::ComputeRequest),
}

impl RouterClient {
    /// Connects in the clear to the first router of `addrs` (`host:port`) that can be reached.
    ///
    /// # Errors
    /// As [`RouterClient::connect_by`].
    pub async fn connect(addrs: &[String]) -> Result<Self, QueryError> {
        Self::connect_by(addrs, &Dialer::default()).await
    }

    /// Connects to the first router of `addrs` (`host:port`) that can be reached and answers this process.
    ///
    /// # Errors
    /// [`QueryError::Unreachable`] with the last reason if none can; [`QueryError::Tls`], and what the router says of who this
    /// process is.
    pub async fn connect_by(addrs: &[String], dialer: &Dialer) -> Result<Self, QueryError> {
        Ok(Self::connect_and_look(addrs, dialer).await?.0)
    }

    /// The same, with what it said of the cluster: whoever asked again might find it gone.
    pub(crate) async fn connect_and_look(
        addrs: &[String],
        dialer: &Dialer,
    ) -> Result<(Self, v1::Topology), QueryError> {
        let mut last =
            QueryError::Unreachable { addr: "(none)".to_owned(), reason: "no address given".to_owned() };
        for addr in addrs {
            let answered = match dialer.connect(addr).await {
                Ok(channel) => Self::through(addr.clone(), channel, dialer).answering().await,
                Err(status) => Err(unreachable(dialer, addr, status.message())),
            };
            match answered {
                Ok(answered) => return Ok(answered),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Itself, once it has shown that it answers: a frozen process still accepts connections.
    async fn answering(self) -> Result<(Self, v1::Topology), QueryError> {
        let asked = self.cluster.clone();
        let call = async move { { asked }.get_topology(v1::TopologyRequest {}).await };
        let status = match within(CONNECT_PATIENCE, call).await {
            Ok(topology) => return Ok((self, topology.into_inner())),
            Err(status) => status,
        };
        match kith_wire::code_of(&status).is_denial() {
            true => Err(QueryError::from_status(&status)),
            false => Err(unreachable(&self.dialer, &self.addr, status.message())),
        }
    }

    /// Speaks gRPC over a channel that is there already; `addr` is for queries in frames, in the clear, and for messages.
    pub fn over(addr: String, channel: Channel) -> Self {
        let dialer = Dialer::default();
        Self::through(addr, dialer.bearing(channel), &dialer)
    }

    /// Connects when it is first used.
    ///
    /// # Errors
    /// If `addr` is no address.
    pub fn lazy(addr: String, dialer: &Dialer) -> Result<Self, Status> {
        let channel = dialer.channel(&addr)?;
        Ok(Self::through(addr, channel, dialer))
    }

    fn through(addr: String, channel: GrpcChannel, dialer: &Dialer) -> Self {
        let graph = GraphClient::new(channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        Self {
            addr,
            frames: Some(Arc::new(Frames::new(dialer.clone(), TransportKind::default().is_local()))),
            dialer: dialer.clone(),
            graph,
            store: StoreClient::new(channel.clone())
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX),
            schemas: Schemas::default(),
            cluster: ClusterClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX),
        }
    }

    /// Itself, with what its queries shall travel in.
    pub fn with_transport(mut self, transport: TransportKind) -> Self {
        self.frames = match transport {
            TransportKind::Grpc => None,
            framed => Some(Arc::new(Frames::new(self.dialer.clone(), framed.is_local()))),
        };
        self
    }

    /// How it connects: to go on to nodes in the same way.
    pub fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// The router's address.
    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// Opens the connection that queries take, unless it is open; whether it is then.
    pub async fn warm(&self) -> bool {
        match &self.frames {
            Some(frames) => frames.open(&self.addr).await,
            None => false,
        }
    }

    /// Passes a query on as it came, marked as forwarded: from a router to the owner of a member's network.
    ///
    /// # Errors
    /// As the other router reports them.
    pub async fn forward(&self, mut request: v1::QueryRequest) -> Result<v1::QueryReply, Status> {
        request.options.get_or_insert_default().forwarded = true;
        self.ask(request, false).await
    }

    /// `pieces` says whether the reply may be too long for one message.
    async fn ask(&self, request: v1::QueryRequest, pieces: bool) -> Result<v1::QueryReply, Status> {
        if let Some(frames) = &self.frames {
            let deadline = frame_deadline(request.options.as_ref());
            let pieces = frames.call(&self.addr, Op::Query, deadline, &request).await?;
            return joined(pieces.into_iter().map(decoded));
        }
        let mut client = self.graph.clone();
        if !pieces {
            return Ok(client.query(request).await?.into_inner());
        }
        let mut stream = client.query_stream(request).await?.into_inner();
        let mut pieces = Vec::new();
        while let Some(piece) = stream.message().await? {
            pieces.push(Ok(piece));
        }
        joined(pieces)
    }

    /// Asks something about keys of a store, which has one message for an answer: in frames, or as `grpc` asks it.
    async fn batch<Request: Message, Reply: Message + Default, Called>(
        &self,
        op: Op,
        options: &QueryOptions,
        request: Request,
        grpc: impl FnOnce(Request) -> Called,
    ) -> Result<Reply, Status>
    where
        Called: Future<Output = Result<Response<Reply>, Status>>,
    {
        let patience = patience(options);
        let asked = async {
            if let Some(frames) = &self.frames {
                let deadline = options.deadline.map(|deadline| deadline + DEADLINE_GRACE);
                return frames.ask(&self.addr, op, deadline, &request).await;
            }
            Ok(grpc(request).await?.into_inner())
        };
        tokio::time::timeout(patience, asked).await.unwrap_or_else(|_| Err(overdue(patience)))
    }

    /// The messages of a stream: in frames, or over gRPC. The deadline is the router's own and half a second.
    pub(crate) async fn messages(
        &self,
        request: StreamRequest,
        options: &QueryOptions,
    ) -> Result<BoxStream<'static, Result<v1::MultiGetPiece, Status>>, Status> {
        if let Some(frames) = &self.frames {
            let deadline = Some(patience(options));
            let parts = match &request {
                StreamRequest::Values(request) => {
                    frames.call_in_parts(&self.addr, Op::MultiGetStream, deadline, request).await
                }
                StreamRequest::Compute(request) => {
                    frames.call_in_parts(&self.addr, Op::ComputeStream, deadline, request).await
                }
            };
            return Ok(parts?.map(|part| part.and_then(decoded)).boxed());
        }
        let mut store = self.store.clone();
        let messages = match request {
            StreamRequest::Values(request) => store.multi_get_stream(request).await?,
            StreamRequest::Compute(request) => store.compute_stream(request).await?,
        };
        Ok(messages.into_inner().boxed())
    }

    /// Reads values and proves each. Should one not hold, the read is asked again, once, with the router checking what its nodes
    /// send, so that it finds another replica.
    async fn proven_values(
        &self,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
    ) -> Result<BatchAnswer, QueryError> {
        keys.check()?;
        let started = Instant::now();
        let (answer, mismatched) = self.values(store, keys, options, Proofs::There).await?;
        if mismatched == 0 {
            return Ok(answer);
        }
        tracing::warn!(router = self.addr, store, mismatched, "values do not match their checksums");
        let Some(again) = left(options, started.elapsed()) else {
            return Err(self.error(&overdue(started.elapsed())));
        };
        let (answer, mismatched) = self.values(store, keys, &again, Proofs::Everywhere).await?;
        if 0 < mismatched && !options.partial {
            let detail = format!("{mismatched} values from {} do not match their checksums", self.addr);
            return Err(QueryError::Damaged { store: store.to_owned(), detail });
        }
        Ok(answer)
    }

    /// Reads values once; how many of them do not match their checksums. They are damaged.
    async fn values(
        &self,
        store: &str,
        keys: &BatchKeys,
        options: &QueryOptions,
        proofs: Proofs,
    ) -> Result<(BatchAnswer, u64), QueryError> {
        let asked = QueryOptions { proofs, ..options.clone() };
        let request = batch_to_wire(store, keys, &asked);
        let grpc = |request: v1::MultiGetRequest| async move { self.store.clone().multi_get(request).await };
        let reply = self.batch(Op::MultiGet, options, request, grpc).await;
        let reply = reply.map_err(|status| self.error(&status))?;
        let mut answer = batch_answer_from_wire(reply, keys.len())?;
        let lookup = keys.lookup();
        let mismatched = answer.records.prove(|index| lookup.key(index)).len() as u64;
        if 0 < mismatched {
            note_mismatches(mismatched);
        }
        Ok((answer, mismatched))
    }

    pub(crate) fn error(&self, status: &Status) -> QueryError {
        let lost = kith_wire::code_of(status) == ErrorCode::Unavailable && status.code() == Code::Unavailable;
        if lost {
            unreachable(&self.dialer, &self.addr, status.message())
        } else {
            QueryError::from_status(status)
        }
    }
}

impl GraphService for RouterClient {
    fn query<'a>(
        &'a self,
        graph: &'a str,
        query: &'a GraphQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Answered, QueryError>> {
        async move {
            let ids_wanted = wants_ids(&query.operand);
            let request = query_to_wire(graph, query, options);
            let patience = patience(options);
            let reply = match tokio::time::timeout(patience, self.ask(request, ids_wanted)).await {
                Ok(reply) => reply.map_err(|status| self.error(&status))?,
                Err(_) => return Err(self.error(&overdue(patience))),
            };
            answered_from_wire(reply, ids_wanted)
        }
        .boxed()
    }

    fn explain<'a>(
        &'a self,
        graph: &'a str,
        query: &'a GraphQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<v1::ExplainReply, QueryError>> {
        async move {
            let mut client = self.graph.clone();
            let patience = patience(options);
            let reply = within(patience, client.explain(query_to_wire(graph, query, options))).await;
            Ok(reply.map_err(|status| self.error(&status))?.into_inner())
        }
        .boxed()
    }
}

impl StoreService for RouterClient {
    fn multi_get<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<BatchAnswer, QueryError>> {
        self.proven_values(store, keys, options).boxed()
    }

    fn multi_get_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        self.stream(store, keys, options)
    }

    fn read_compute<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<ComputeAnswer, QueryError>> {
        async move {
            keys.check()?;
            if query.at == ComputeAt::Nodes {
                let request = compute_to_wire(store, keys, &query.plan, options);
                let grpc =
                    |request: v1::ComputeRequest| async move { self.store.clone().compute(request).await };
                let reply = self.batch(Op::Compute, options, request, grpc).await;
                let reply = reply.map_err(|status| self.error(&status))?;
                return compute_answer_from_wire(reply, keys.len(), &query.plan);
            }
            compute_here(self, store, keys, &query.plan, options).await
        }
        .boxed()
    }

    fn read_compute_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BatchStream<'a> {
        self.computed_stream(store, keys, query, options)
    }

    fn read_aggregate<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a AggregateQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<AggregateAnswer, QueryError>> {
        async move {
            keys.check()?;
            if query.at == ComputeAt::Nodes {
                let request = aggregate_to_wire(store, keys, &query.plan, options);
                let grpc = |request: v1::AggregateRequest| async move {
                    self.store.clone().aggregate(request).await
                };
                let reply = self.batch(Op::Aggregate, options, request, grpc).await;
                let reply = reply.map_err(|status| self.error(&status))?;
                return aggregate_answer_from_wire(reply, keys.len(), &query.plan);
            }
            aggregate_here(self, store, keys, &query.plan, options).await
        }
        .boxed()
    }

    fn shape<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<StoreShape, QueryError>> {
        async move {
            let topology = Topology::from_document(Arc::new(self.topology().await?));
            let topology = topology.map_err(|error| QueryError::Internal { detail: error.to_string() })?;
            let store = topology.store(store)?;
            Ok(StoreShape { key: store.key, value: store.value })
        }
        .boxed()
    }

    fn schema<'a>(
        &'a self,
        store: &'a str,
        version: u64,
        id: SchemaId,
    ) -> BoxFuture<'a, Result<Schema, QueryError>> {
        let request = v1::SchemaRequest { store: store.to_owned(), version, schema: id.to_string() };
        let fetch = async move {
            let mut client = self.store.clone();
            let reply = within(CALL_PATIENCE, client.schema(request)).await;
            Ok(reply.map_err(|status| self.error(&status))?.into_inner().schema)
        };
        self.schemas.get(store, version, id, fetch).boxed()
    }
}

/// A call that ends in time, whatever the other side does.
async fn within<T>(
    patience: Duration,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<Response<T>, Status> {
    tokio::time::timeout(patience, call)
        .await
        .unwrap_or_else(|_| Err(no_answer(&format!("within {} ms", patience.as_millis()))))
}

/// How long whoever asks a router waits for its answer: it tells by itself when a query's own deadline has passed.
pub(crate) fn patience(options: &QueryOptions) -> Duration {
    options.deadline.unwrap_or(QUERY_PATIENCE) + DEADLINE_GRACE
}

/// A query that was waited for until its [`patience`] ended.
pub(crate) fn overdue(patience: Duration) -> Status {
    let (deadline, grace) = (patience.saturating_sub(DEADLINE_GRACE), DEADLINE_GRACE);
    no_answer(&format!(
        "within {} ms, nor word of it in the {} ms after",
        deadline.as_millis(),
        grace.as_millis()
    ))
}

fn no_answer(when: &str) -> Status {
    let message = format!("no answer {when}");
    let help = "the router may be frozen or cut off: look at its process, or ask another (--router)";
    kith_wire::status(ErrorCode::DeadlineExceeded, message, help)
}

/// The document inside a topology message.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn topology_of(message: &v1::Topology) -> Result<TopologyDocument, QueryError> {
    TopologyDocument::decode(&message.document)
        .map_err(|error| QueryError::Internal { detail: error.to_string() })
}

/// An answer with all that came beside it.
///
/// # Errors
/// If the reply has no answer or a malformed one.
pub(crate) fn answered_from_wire(reply: v1::QueryReply, ids_wanted: bool) -> Result<Answered, QueryError> {
    let malformed = |detail: String| QueryError::Internal { detail };
    let answer = reply.answer.ok_or_else(|| malformed("the router sent no answer".to_owned()))?;
    Ok(Answered {
        answer: answer_from_wire(answer, ids_wanted).map_err(|error| malformed(error.to_string()))?,
        complete: reply.complete,
        missing_partitions: reply.missing_partitions,
        served: reply.served.into_iter().map(|served| (served.name, served.version)).collect(),
        profile: reply.profile,
    })
}

/// Whether the answer can be too large for one message.
fn wants_ids(operand: &Operand) -> bool {
    match operand {
        Operand::Network { want, .. } | Operand::Common { want, .. } => *want == Want::Ids,
        Operand::Connections { .. } | Operand::Entities { .. } | Operand::Members { .. } => true,
        Operand::Distance { .. } | Operand::Path { .. } | Operand::Suggest { .. } => false,
    }
}

/// How long the router may take: it tells by itself when a query's own deadline has passed.
fn frame_deadline(options: Option<&v1::QueryOptions>) -> Option<Duration> {
    let millis = options.map_or(0, |options| options.deadline_ms);
    (0 < millis).then(|| Duration::from_millis(millis.into()) + DEADLINE_GRACE)
}

/// The reply that arrived in `pieces`.
fn joined(
    pieces: impl IntoIterator<Item = Result<v1::QueryReply, Status>>,
) -> Result<v1::QueryReply, Status> {
    let mut pieces = pieces.into_iter();
    let mut whole = pieces
        .next()
        .unwrap_or_else(|| Err(Status::data_loss("the router's stream ended before its first message")))?;
    for piece in pieces {
        join(&mut whole, piece?);
    }
    Ok(whole)
}

fn join(whole: &mut v1::QueryReply, piece: v1::QueryReply) {
    match (&mut whole.answer, piece.answer) {
        (Some(Answer::Ids(into)), Some(Answer::Ids(from))) => into.ids.extend(from.ids),
        (Some(Answer::Network(into)), Some(Answer::Network(from))) => {
            into.first.extend(from.first);
            into.second.extend(from.second);
            into.fof_near.extend(from.fof_near);
        }
        (Some(Answer::Common(into)), Some(Answer::Common(from))) => {
            if let (Some(v1::common_reply::Result::Ids(into)), Some(v1::common_reply::Result::Ids(from))) =
                (&mut into.result, from.result)
            {
                into.ids.extend(from.ids);
            }
        }
        _ => {}
    }
    if piece.profile.is_some() {
        whole.profile = piece.profile;
    }
}

/// A router that cannot be spoken to: over TLS, or at all.
fn unreachable(dialer: &Dialer, addr: &str, reason: &str) -> QueryError {
    let addr = addr.to_owned();
    match dialer.failure_at(&addr) {
        Some(TlsFailure { reason, help }) => QueryError::Tls { addr, reason, help },
        None => QueryError::Unreachable { addr, reason: reason.to_owned() },
    }
}
