//! Streams of records, over gRPC and in frames. Each is a task of its own, one message ahead of its reader, and ends with
//! its deadline whether it is read or not (`docs/design/0010-streaming.md`).

use super::{
    pipeline::Passage,
    query_json::{batch_json, compute_json},
    reads::summary,
    service::GraphServer,
};
use futures::{Stream, StreamExt, stream::BoxStream};
use kith_api::{
    BatchKeys, BatchStream, ComputeAt, ComputeQuery, Proofs, QueryError, QueryOptions, StoreService,
    StreamItem,
    convert::{StreamWriter, batch_from_wire, compute_from_wire},
    too_slow,
};
use kith_client::Session;
use kith_net::server::framed::{End, Piece, Pieces};
use kith_types::ErrorCode;
use kith_wire::{InSlices, v1};
use metrics::Gauge;
use serde_json::Value;
use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tonic::Status;

/// A reader that has not taken what came within the deadline has so much longer for it: less than the half second that its
/// connection waits, so that the router knows why it ended.
const READ_GRACE: Duration = Duration::from_millis(250);

type Message = Result<v1::MultiGetPiece, Status>;

/// A batch read whose records are sent as they come.
struct Asked {
    keys: BatchKeys,
    /// What is wanted of the records, if they are not wanted as they are.
    query: Option<ComputeQuery>,
    options: QueryOptions,
    passage: Passage,
    _counted: Counted,
}

/// A stream that is under way, in the metrics.
struct Counted(Gauge);

impl Counted {
    fn new() -> Self {
        let streams = metrics::gauge!("kith_router_streams");
        streams.increment(1.0);
        Self(streams)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

impl Asked {
    fn items<'a>(&'a self, session: &'a Session) -> BatchStream<'a> {
        let Self { keys, query, options, passage, .. } = self;
        let store = passage.of();
        match query {
            None => session.multi_get_stream(store, keys, options),
            Some(query) => session.read_compute_stream(store, keys, query, options),
        }
    }

    fn summary(&self) -> Value {
        summary(self.passage.op(), self.passage.of(), &self.keys)
    }
}

impl GraphServer {
    /// Begins a stream of values.
    fn begin_values(&self, request: v1::MultiGetRequest) -> Result<Messages, QueryError> {
        let entered = self.enter(&request.store)?;
        let (store, keys, options) = batch_from_wire(request)?;
        let line = || batch_json(&store, &keys, &options);
        let passage = self.begin_read(entered, "mget_stream", &keys, line)?;
        Ok(self.begin(Asked { keys, query: None, options, passage, _counted: Counted::new() }))
    }

    /// Begins a stream of results.
    fn begin_compute(&self, request: v1::ComputeRequest) -> Result<Messages, QueryError> {
        let entered = self.enter(&request.store)?;
        let (store, keys, plan, options) = compute_from_wire(request)?;
        let query = ComputeQuery { plan, at: ComputeAt::Nodes };
        query.check_stream()?;
        let line = || compute_json(&store, &keys, &query.plan, &options);
        let passage = self.begin_read(entered, "compute_stream", &keys, line)?;
        Ok(self.begin(Asked { keys, query: Some(query), options, passage, _counted: Counted::new() }))
    }

    /// Begins what was let in. It ends with a footer or an error.
    fn begin(&self, asked: Asked) -> Messages {
        let cut = asked.passage.started() + self.session.patience(&asked.options) + READ_GRACE;
        let (sender, messages) = mpsc::channel(1);
        let server = self.clone();
        let task = tokio::spawn(async move {
            let work = server.stream_into(&asked, &sender);
            if tokio::time::timeout_at(cut.into(), work).await.is_err() {
                metrics::counter!("kith_router_streams_cut_total").increment(1);
                asked.passage.cut_stream(&|| asked.summary());
            }
        });
        Messages { messages, is_over: false, _task: AbortOnDropHandle::new(task) }
    }

    async fn stream_into(&self, asked: &Asked, sender: &mpsc::Sender<Message>) {
        let mut items = asked.items(&self.session);
        let mut writer = StreamWriter::new(asked.passage.of().to_owned());
        while let Some(item) = items.next().await {
            let message = match item {
                Ok(StreamItem::Footer(mut footer)) => {
                    asked.passage.end_stream(&mut footer, asked.options.profile, &|| asked.summary());
                    Ok(writer.message(StreamItem::Footer(footer)))
                }
                Ok(StreamItem::Piece(mut piece)) => {
                    if asked.options.proofs == Proofs::Here {
                        piece.records.drop_proofs();
                    }
                    asked.passage.charge(piece.records.value_bytes());
                    Ok(writer.message(StreamItem::Piece(piece)))
                }
                Err(error) => Err(asked.passage.fail_stream(error, &|| asked.summary()).to_status()),
            };
            if sender.send(message).await.is_err() {
                return;
            }
        }
    }

    /// Values as they go over gRPC.
    ///
    /// # Errors
    /// If the request makes no sense, too many are under way, or the store's quota is used up.
    pub fn multi_get_stream(
        &self,
        request: v1::MultiGetRequest,
    ) -> Result<BoxStream<'static, Message>, Status> {
        Ok(self.begin_values(request).map_err(|error| error.to_status())?.boxed())
    }

    /// Results as they go over gRPC.
    ///
    /// # Errors
    /// As [`GraphServer::multi_get_stream`]; of a plan that has no stream.
    pub fn compute_stream(&self, request: v1::ComputeRequest) -> Result<BoxStream<'static, Message>, Status> {
        Ok(self.begin_compute(request).map_err(|error| error.to_status())?.boxed())
    }

    /// Values as they go in frames.
    ///
    /// # Errors
    /// As [`GraphServer::multi_get_stream`].
    pub fn multi_get_pieces(&self, request: v1::MultiGetRequest) -> Result<Pieces, Status> {
        Ok(self.begin_values(request).map_err(|error| error.to_status())?.into_pieces())
    }

    /// Results as they go in frames.
    ///
    /// # Errors
    /// As [`GraphServer::compute_stream`].
    pub fn compute_pieces(&self, request: v1::ComputeRequest) -> Result<Pieces, Status> {
        Ok(self.begin_compute(request).map_err(|error| error.to_status())?.into_pieces())
    }
}

/// The messages of a stream; dropped, it ends.
struct Messages {
    messages: mpsc::Receiver<Message>,
    /// Whether its footer or an error has come.
    is_over: bool,
    _task: AbortOnDropHandle<()>,
}

impl Messages {
    fn into_pieces(self) -> Pieces {
        let piece = |message: v1::MultiGetPiece| {
            let end = End::of_message(message.footer.is_some());
            Piece { body: message.into_slices(), end }
        };
        self.map(move |message| message.map(piece)).boxed()
    }
}

impl Stream for Messages {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // Whoever sends ends before its last message only if it was cut.
        let message = std::task::ready!(self.messages.poll_recv(cx)).unwrap_or_else(|| Err(too_slow()));
        self.is_over = message.as_ref().map_or(true, |message| message.footer.is_some());
        Poll::Ready(Some(message))
    }
}

/// What the answer to a request that must be credited is, if it is not.
pub(super) fn uncredited() -> Status {
    let message = "a stream is sent as its reader gives credit: the request must be flagged so";
    let help = "use a client of this release";
    kith_wire::status(ErrorCode::BadRequest, message, help)
}
