//! One request, from what it asks to its last answer.

use super::{
    QUEUE_TIMEOUT,
    failure::too_many,
    incoming::{ReceivedRequest, RequestGoal},
    outbox::{AnswerCoding, ConnectionEnded, MemoryClaim, Outbox},
    question::GraphQuestion,
    results::{self, Form},
};
use crate::{ChargedReply, DoorCaller};
use bytes::Bytes;
use kith_gremlin::{message::Response, value::Value};
use kith_net::{give_way, in_turns};
use kith_query::{EarlyResults, GremlinAnswer, QueryError, QueryOptions, Reply};
use std::{mem, num::NonZeroU64, sync::Arc};
use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The most results in one message, unless the request has another number. Gremlin Server has the same default.
const BATCH_SIZE: usize = 64;
/// The size in bytes at which a message of results is sent. Drivers refuse messages of more than 10 MiB by default.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// The name of the status attribute with the ticket of a live graph: a read with this ticket shows nothing older.
const TICKET: &str = "kith.ticket";
/// The name of the status attribute that says what a traversal did otherwise than it says.
const WARNING: &str = "kith.warning";

/// Why a request is not answered any further.
enum Stop {
    /// It failed.
    Failed(QueryError),
    /// It was answered with an error, or nobody wants an answer.
    Ended,
}

impl From<QueryError> for Stop {
    fn from(error: QueryError) -> Self {
        Self::Failed(error)
    }
}

impl From<ConnectionEnded> for Stop {
    fn from(ConnectionEnded: ConnectionEnded) -> Self {
        Self::Ended
    }
}

/// Answers a request of `caller`, once one of the `places` of its connection is free.
pub(super) async fn answer(
    caller: Arc<DoorCaller>,
    incoming: ReceivedRequest,
    outbox: Outbox,
    permits: Arc<Semaphore>,
) {
    let _under_way = caller.connected().request();
    let (id, coding) = (incoming.id, incoming.coding);
    let Ok(Ok(_permit)) = timeout(QUEUE_TIMEOUT, permits.acquire()).await else {
        // If the connection has ended, nobody wants the answer.
        let _ = outbox.fail(id, &too_many(), coding).await;
        return;
    };
    if let Err(Stop::Failed(error)) =
        caller.connected().share().scope(served(&caller, incoming, &outbox)).await
    {
        // If the connection has ended, nobody wants the answer.
        let _ = outbox.fail(id, &error, coding).await;
    }
}

async fn served(caller: &DoorCaller, incoming: ReceivedRequest, outbox: &Outbox) -> Result<(), Stop> {
    let RequestGoal::Results(asked) = &incoming.wants else { return Ok(()) };
    let asked: &GraphQuestion = match &**asked {
        Ok(asked) => asked,
        Err(error) => return Err(error.clone().into()),
    };
    let batch = batch_size(incoming.batch_size);
    let mut answer = Answer::new(incoming.id, incoming.coding, asked.form, batch, outbox);
    let (early, mut parts) = EarlyResults::channel(batch);
    // If results cannot be sent, the traversal is given up, and a traversal that writes must not be.
    let early = (asked.form.sends_early() && !asked.query.writes).then_some(early);
    let options = QueryOptions { early, ..asked.options.clone() };
    let ended = CancellationToken::new();
    let asking = async {
        let reply = caller.call(asked.question(), options).await;
        ended.cancel();
        Ok::<_, Stop>(reply)
    };
    // The evaluation goes on while its first results are sent. If it fails, they are sent before the error.
    let sending = async {
        while let Some(part) = next(&mut parts, &ended).await {
            let bytes = part.len();
            in_turns(answer.add(Arc::new(caller.charge(part, bytes)?))).await?;
        }
        Ok(())
    };
    let (reply, ()) = tokio::try_join!(asking, sending)?;
    in_turns(answer.finish(Arc::new(reply?))).await
}

/// The answer to a traversal.
///
/// # Errors
/// The reply is another one, which is a mistake of the service.
pub(super) fn of_traversal(reply: &Reply) -> Result<&GremlinAnswer, QueryError> {
    match reply {
        Reply::Gremlin(answer) => Ok(answer),
        _ => Err(QueryError::Internal { detail: "a traversal got a reply of another kind".to_owned() }),
    }
}

/// The last response to a request, with what is known at the end of the traversal and these results.
pub(super) fn last(id: Uuid, answer: &GremlinAnswer, results: Vec<Value>) -> Response {
    let mut last = match results.is_empty() {
        true => Response::no_content(id),
        false => Response::success(id, results),
    };
    if let Some(ticket) = answer.served.ticket() {
        last.attributes.insert(TICKET.into(), Value::text(ticket.to_string()));
    }
    if !answer.warnings.is_empty() {
        last.attributes.insert(WARNING.into(), Value::text(answer.warnings.join("; ")));
    }
    last
}

/// The next part. `None` if the traversal has ended and no part is left.
async fn next(parts: &mut mpsc::Receiver<Bytes>, ended: &CancellationToken) -> Option<Bytes> {
    tokio::select! {
        biased;
        Some(part) = parts.recv() => Some(part),
        () = ended.cancelled() => None,
    }
}

fn batch_size(asked: Option<NonZeroU64>) -> usize {
    asked.map_or(BATCH_SIZE, |size| usize::try_from(size.get()).unwrap_or(usize::MAX))
}

/// The answer to one request.
struct Answer<'a> {
    id: Uuid,
    coding: AnswerCoding,
    form: Form,
    /// The most results in one message.
    batch_max: usize,
    outbox: &'a Outbox,
    /// Results that wait for the message that they are sent in, and about how many bytes they take.
    batch: Vec<Value>,
    batch_bytes: usize,
    /// The claim on the memory of the last of them.
    held: Option<MemoryClaim>,
    /// How many plain values there were so far.
    plain: u64,
}

impl<'a> Answer<'a> {
    fn new(id: Uuid, coding: AnswerCoding, form: Form, batch_max: usize, outbox: &'a Outbox) -> Self {
        let (batch, batch_bytes, held, plain) = (Vec::new(), 0, None, 0);
        Self { id, coding, form, batch_max, outbox, batch, batch_bytes, held, plain }
    }

    /// Adds a part of the results, and sends the batches that are full.
    async fn add(&mut self, part: Arc<ChargedReply<Bytes>>) -> Result<(), Stop> {
        let held = Arc::clone(&part) as MemoryClaim;
        self.add_results(&part, held).await
    }

    /// Sends the results that are left, with what is known at the end.
    async fn finish(mut self, reply: Arc<ChargedReply>) -> Result<(), Stop> {
        let answer = of_traversal(&reply)?;
        self.add_results(&answer.results, Arc::clone(&reply) as MemoryClaim).await?;
        let last = last(self.id, answer, mem::take(&mut self.batch));
        self.put(last).await
    }

    async fn add_results(&mut self, results: &[u8], held: MemoryClaim) -> Result<(), Stop> {
        self.held = Some(held);
        for value in results::values(results, self.form, &mut self.plain)? {
            let (value, bytes) = value?;
            let batch_bytes = self.batch_bytes.saturating_add(bytes);
            let is_full = self.batch.len() == self.batch_max || BATCH_BYTES_MAX < batch_bytes;
            if is_full && !self.batch.is_empty() {
                let batch = Response::partial(self.id, mem::take(&mut self.batch));
                self.put(batch).await?;
                self.batch_bytes = 0;
            }
            self.batch.push(value);
            self.batch_bytes = self.batch_bytes.saturating_add(bytes);
        }
        Ok(())
    }

    async fn put(&mut self, response: Response) -> Result<(), Stop> {
        let is_coded = self.outbox.send(&response, self.coding, self.held.clone()).await?;
        give_way().await;
        if is_coded { Ok(()) } else { Err(Stop::Ended) }
    }
}
