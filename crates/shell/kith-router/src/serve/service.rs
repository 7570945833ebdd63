//! The router as a [`Service`], to which every door sends its queries. Every query passes the [`Pipeline`].

use super::{forward::Forwarder, pipeline::Pipeline};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use kith_net::{Share, Slot, WorkKind, in_turns, in_turns_once_long, slot};
use kith_query::{BatchStream, Effort, QueryError, Question, Reply, Request, Service};
use kith_session::{Session, carried_out};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// Requests for more keys take turns in computing. A few of the longest would otherwise keep all others waiting.
const KEYS_WITHOUT_TURNS_MAX: usize = 4_096;

/// The time after its deadline in which work that has a turn ends by itself.
const DEADLINE_GRACE: Duration = Duration::from_millis(50);

/// Answers requests: from its caches, from the nodes, or through the router that owns the member.
#[derive(Clone)]
pub(crate) struct GraphServer {
    pub session: Session,
    pub forwarder: Arc<Forwarder>,
    pub pipeline: Arc<Pipeline>,
}

impl GraphServer {
    /// Answers a request. The caller keeps the slot until it has encoded the reply, because the answer is in memory until then.
    pub async fn answer(&self, request: Arc<Request>) -> Result<HeldReply, QueryError> {
        if matches!(request.question, Question::Shape { .. } | Question::Schema { .. }) {
            // A question about the store, not about its data, is neither a query nor part of the load.
            return Ok((self.session.call(request).await?, None));
        }
        if !request.question.is_idempotent() {
            return self.finish_always(request).await;
        }
        self.pass(request).await
    }

    /// Carries a request out to its end, whether or not anybody still waits for the answer. A traversal ends after the write
    /// that is under way when its caller leaves.
    async fn finish_always(&self, request: Arc<Request>) -> Result<HeldReply, QueryError> {
        let (server, share) = (self.clone(), Share::here());
        let gone = CancellationToken::new();
        let _leaving = gone.clone().drop_guard();
        let work = carried_out(gone, async move { server.pass(request).await });
        tokio::spawn(async move { share.scope(work).await }).await.unwrap_or_else(|error| {
            let detail = format!("the write ended unexpectedly: {error}");
            Err(QueryError::OutcomeUnknown { detail })
        })
    }

    async fn pass(&self, request: Arc<Request>) -> Result<HeldReply, QueryError> {
        let entered = self.pipeline.enter(self.session.topology(), Arc::clone(&request))?;
        let passage = entered.begin(request.question.name(), |keys| self.session.check_batch(keys))?;
        // The router that owns the member notes the query, so this one does not.
        if let Some(reply) = self.forwarder.forward(&request).await {
            return Ok((reply?, None));
        }
        let allowed = self.session.timeout(&request.options);
        let work = self.session.call(Arc::clone(&request));
        let started = passage.started();
        let held = match effort(&request) {
            None => work.await.map(|reply| (reply, None)),
            Some(Effort::OfAnswers) => {
                until(started, allowed, in_turns_once_long(work)).await.map(|reply| (reply, None))
            }
            Some(Effort::LongAnswer) => until(started, allowed, in_a_slot(in_turns_once_long(work))).await,
            Some(Effort::LongWork) => until(started, allowed, in_a_slot(in_turns(work))).await,
        };
        match held {
            Ok((reply, slot)) => Ok((passage.end(Ok(reply))?, slot)),
            Err(error) => Ok((passage.end(Err(error))?, None)),
        }
    }
}

/// A reply, and the slot of what it keeps in memory until it is encoded.
pub(crate) type HeldReply = (Reply, Option<Slot>);

/// Begins only when few enough other requests that keep much in memory are under way.
async fn in_a_slot(
    work: impl Future<Output = Result<Reply, QueryError>> + Send,
) -> Result<HeldReply, QueryError> {
    let slot = slot(WorkKind::LongQueries).await;
    Ok((work.await?, Some(slot)))
}

/// Ends work that takes turns when its time has passed. It observes its deadline itself, and may answer with what it has by then,
/// but not while it waits for a turn.
async fn until<T>(
    started: Instant,
    allowed: Duration,
    work: impl Future<Output = Result<T, QueryError>>,
) -> Result<T, QueryError> {
    let end = started + allowed + DEADLINE_GRACE;
    tokio::time::timeout_at(end.into(), work).await.unwrap_or_else(|_| {
        Err(QueryError::DeadlineExceeded { deadline_ms: allowed.as_millis().try_into().unwrap_or(u64::MAX) })
    })
}

/// How much a request computes in this process, and keeps in memory; `None` if little, or if its parts take turns by themselves.
fn effort(request: &Request) -> Option<Effort> {
    match &request.question {
        Question::Graph { query, .. } => Some(query.operation.effort()),
        question => {
            let is_long = question.keys().is_some_and(|keys| KEYS_WITHOUT_TURNS_MAX < keys.len());
            is_long.then_some(Effort::LongWork)
        }
    }
}

impl Service for GraphServer {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        async { Ok(self.answer(request).await?.0) }.boxed()
    }

    fn stream(&self, request: Arc<Request>) -> BatchStream<'_> {
        match self.begin_stream(request, |item| item) {
            Ok(items) => items.boxed(),
            Err(error) => futures::stream::once(futures::future::ready(Err(error))).boxed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_never_gets_a_turn_ends_after_its_deadline() {
        let allowed = Duration::from_millis(7);
        let ended = until(Instant::now(), allowed, std::future::pending::<Result<Reply, QueryError>>()).await;
        assert!(matches!(ended, Err(QueryError::DeadlineExceeded { deadline_ms: 7 })), "{ended:?}");
    }
}
