//! Streams of records. Each is a task of its own, at most one item ahead of its reader, and ends at its deadline whether it is
//! read or not (`docs/design/0010-streaming.md`).

use super::{pipeline::Passage, service::GraphServer};
use futures::{Stream, StreamExt};
use kith_query::{QueryError, Question, Request, Service, StreamItem, too_slow};
use metrics::Gauge;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// The time after the deadline for which a reader may still take items that arrived before it. This is less than the
/// half second that the connection waits, so that the router ends the stream first and knows the reason.
const READ_GRACE: Duration = Duration::from_millis(250);

/// Counts a stream under way in the metrics until it is dropped.
struct OpenStream(Gauge);

impl OpenStream {
    fn new() -> Self {
        let streams = metrics::gauge!("kith_router_streams");
        streams.increment(1.0);
        Self(streams)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// An item of a stream as the door sends it, and whether it is the footer.
struct Sent<T> {
    item: T,
    is_footer: bool,
}

impl GraphServer {
    /// Begins a stream; `write` turns each item into what the door sends. It ends with the footer or an error.
    ///
    /// # Errors
    /// If the request is not valid or cannot be streamed, too many requests are in flight, or the store's quota is used up.
    pub fn begin_stream<T: Send + 'static>(
        &self,
        request: Arc<Request>,
        write: impl FnMut(StreamItem) -> T + Send + 'static,
    ) -> Result<Items<T>, QueryError> {
        request.question.check_stream()?;
        let op = match request.question {
            Question::Compute { .. } => "compute_stream",
            _ => "mget_stream",
        };
        let timeout = self.session.timeout(&request.options);
        let entered = self.pipeline.enter(self.session.topology(), request)?;
        let passage = entered.begin(op, |keys| self.session.check_batch(keys))?;
        let open = OpenStream::new();
        let cut = passage.started() + timeout + READ_GRACE;
        let (sender, items) = mpsc::channel(1);
        let server = self.clone();
        let task = tokio::spawn(async move {
            let _open = open;
            let work = server.stream_into(&passage, write, &sender);
            if tokio::time::timeout_at(cut.into(), work).await.is_err() {
                metrics::counter!("kith_router_streams_cut_total").increment(1);
                passage.cut_stream();
            }
        });
        Ok(Items { items, is_over: false, _task: AbortOnDropHandle::new(task) })
    }

    async fn stream_into<T>(
        &self,
        passage: &Passage,
        mut write: impl FnMut(StreamItem) -> T,
        sender: &mpsc::Sender<Result<Sent<T>, QueryError>>,
    ) {
        let mut items = self.session.stream(Arc::clone(passage.request()));
        while let Some(item) = items.next().await {
            let sent = match item {
                Ok(StreamItem::Footer(mut footer)) => {
                    passage.end_stream(&mut footer);
                    Ok(Sent { item: write(StreamItem::Footer(footer)), is_footer: true })
                }
                Ok(StreamItem::Piece(piece)) => {
                    passage.charge(piece.records.value_bytes());
                    Ok(Sent { item: write(StreamItem::Piece(piece)), is_footer: false })
                }
                Err(error) => Err(passage.fail_stream(error)),
            };
            if sender.send(sent).await.is_err() {
                return;
            }
        }
    }
}

/// The items of a stream; dropping them ends the stream.
pub(crate) struct Items<T> {
    items: mpsc::Receiver<Result<Sent<T>, QueryError>>,
    /// Whether the footer or an error has arrived.
    is_over: bool,
    _task: AbortOnDropHandle<()>,
}

impl<T> Stream for Items<T> {
    type Item = Result<T, QueryError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // The sender ends before the last item only if the stream was cut.
        let cut = || Err(QueryError::from_status(&too_slow()));
        let sent = std::task::ready!(self.items.poll_recv(cx)).unwrap_or_else(cut);
        self.is_over = sent.as_ref().map_or(true, |sent| sent.is_footer);
        Poll::Ready(Some(sent.map(|sent| sent.item)))
    }
}
