//! One request, from what it asks to its last answer.

use super::{
    incoming::Incoming,
    outbox::{Coding, Ended, Outbox},
    question::Asked,
    results::{self, Form},
};
use crate::{Charged, Guest};
use kith_api::{QueryError, Reply};
use kith_gremlin::{
    message::{Request, Response},
    value::Value,
};
use std::{mem, num::NonZeroU64, sync::Arc};
use uuid::Uuid;

/// The most results in one message, unless the request has another number. Gremlin Server has the same default.
const BATCH_SIZE: usize = 64;
/// The size in bytes at which a message of results is sent. Drivers refuse messages of more than 10 MiB by default.
const BATCH_BYTES_MAX: usize = 1 << 20;
/// The name of the status attribute with the ticket of a live graph: a read with this ticket shows nothing older.
const TICKET: &str = "kith.ticket";

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

impl From<Ended> for Stop {
    fn from(Ended: Ended) -> Self {
        Self::Ended
    }
}

/// Answers a request of `guest`.
pub(super) async fn answer(guest: Arc<Guest>, incoming: Incoming, outbox: Outbox) {
    let _under_way = guest.place().request();
    let (id, coding) = (incoming.request.id, incoming.coding);
    let served = async {
        let (reply, form) = ask(&guest, &incoming.request).await?;
        let batch = batch_size(incoming.request.options.batch_size);
        Answer { id, coding, batch, outbox: &outbox, reply: Arc::new(reply) }.send(form).await
    };
    if let Err(Stop::Failed(error)) = served.await {
        // If the connection has ended, nobody wants the answer.
        let _ = outbox.fail(id, &error, coding).await;
    }
}

async fn ask(guest: &Guest, request: &Request) -> Result<(Charged, Form), QueryError> {
    let asked = Asked::new(&request.operation, &request.options)?;
    if asked.query.writes {
        guest.check_write(&asked.graph)?;
    }
    let form = asked.form;
    let reply = guest.call(asked.question(), asked.options).await?;
    Ok((reply, form))
}

fn batch_size(asked: Option<NonZeroU64>) -> usize {
    asked.map_or(BATCH_SIZE, |size| usize::try_from(size.get()).unwrap_or(usize::MAX))
}

/// The answer to one request.
struct Answer<'a> {
    id: Uuid,
    coding: Coding,
    /// The most results in one message.
    batch: usize,
    outbox: &'a Outbox,
    reply: Arc<Charged>,
}

impl Answer<'_> {
    /// Sends the results in batches.
    async fn send(&self, form: Form) -> Result<(), Stop> {
        let Reply::Gremlin(answer) = &**self.reply else {
            let detail = "a traversal got a reply of another kind".to_owned();
            return Err(QueryError::Internal { detail }.into());
        };
        let (mut batch, mut batch_bytes) = (Vec::new(), 0_usize);
        for value in results::values(&answer.results, form)? {
            let (value, bytes) = value?;
            batch_bytes = batch_bytes.saturating_add(bytes);
            if batch.len() == self.batch || (BATCH_BYTES_MAX < batch_bytes && !batch.is_empty()) {
                self.put(Response::partial(self.id, mem::take(&mut batch))).await?;
                batch_bytes = bytes;
            }
            batch.push(value);
        }
        let mut last = match batch.is_empty() {
            true => Response::no_content(self.id),
            false => Response::success(self.id, batch),
        };
        if let Some(ticket) = answer.served.ticket() {
            last.attributes.insert(TICKET.into(), Value::text(ticket.to_string()));
        }
        self.put(last).await
    }

    async fn put(&self, response: Response) -> Result<(), Stop> {
        match self.outbox.send(&response, self.coding, Some(Arc::clone(&self.reply))).await? {
            true => Ok(()),
            false => Err(Stop::Ended),
        }
    }
}
