//! Reads for Redis clients. Where each read costs a fan-out, reads of the same store that arrive together are sent as one.

use super::{
    answer::{Answer, Values, refusal},
    gather::{JointRead, KeyRead, StoreReads},
    keys::Group,
};
use crate::Backend;
use futures::future::join_all;
use kith_query::{BatchAnswer, BatchKeys, QueryError, QueryOptions, Question, Reply, Request};
use kith_schema::{Schema, SchemaId, ValueType};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// A read of more keys is sent alone: it would gain nothing from others, and would delay them.
const KEYS_TOGETHER_MAX: usize = 64;

/// Sends reads to the backend.
pub(super) struct Reads {
    backend: Arc<dyn Backend>,
    is_gathering: bool,
    /// Reads that will be sent together at the next turn of the scheduler. Locked while a few keys are added.
    waiting: Mutex<StoreReads>,
    /// The schema that each store used last. Locked for a lookup.
    schemas: Mutex<BTreeMap<String, Schema>>,
}

impl Reads {
    /// Returns a queue in which no read waits.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        let is_gathering = backend.fans_out();
        Self { backend, is_gathering, waiting: Mutex::default(), schemas: Mutex::default() }
    }

    /// Reads keys of one store, all from the same version.
    pub async fn read(self: &Arc<Self>, group: Group) -> Result<Answer, QueryError> {
        if !self.is_gathering || KEYS_TOGETHER_MAX < group.keys.len() {
            return self.alone(group).await;
        }
        let lost = |_| QueryError::Internal { detail: "a read ended without an answer".to_owned() };
        self.join(group).await.map_err(lost)?
    }

    /// Adds keys to the read that is being gathered for their store.
    fn join(self: &Arc<Self>, group: Group) -> oneshot::Receiver<Result<Answer, QueryError>> {
        let Group { store, keys, value } = group;
        let (answer, answered) = oneshot::channel();
        let full = {
            let mut waiting = self.waiting.lock();
            match waiting.get_mut(&store) {
                None => {
                    tokio::spawn(Arc::clone(self).next_turn(store.clone()));
                    waiting.insert(store, JointRead::of(keys, value, answer));
                    return answered;
                }
                Some(together) => match together.add(keys, answer) {
                    Ok(()) => return answered,
                    Err((keys, answer)) => std::mem::replace(together, JointRead::of(keys, value, answer)),
                },
            }
        };
        tokio::spawn(Arc::clone(self).read_together(store, full));
        answered
    }

    /// Lets every ready task run first, because it may add reads, and then sends the gathered read.
    async fn next_turn(self: Arc<Self>, store: String) {
        tokio::task::yield_now().await;
        let together = self.waiting.lock().remove(&store);
        if let Some(together) = together {
            self.read_together(store, together).await;
        }
    }

    async fn read_together(self: Arc<Self>, store: String, together: JointRead) {
        let JointRead { keys, value, asks } = together;
        let request = read_of(store, keys);
        match self.values(Arc::clone(&request), value).await {
            Ok(values) => {
                for KeyRead { from, count, answer } in asks {
                    // The connection may have been closed meanwhile.
                    let _ = answer.send(Ok(Answer::new(Arc::clone(&values), from..from + count)));
                }
            }
            // The answers are too large together; each alone may be small enough.
            Err(QueryError::TooLarge { .. }) if 1 < asks.len() => {
                let Some(keys) = request.question.keys() else { return };
                let alone = asks.into_iter().map(async |ask| {
                    let keys = keys.select(ask.from..ask.from + ask.count);
                    let store = request.question.of().to_owned();
                    let _ = ask.answer.send(self.alone(Group { store, keys, value }).await);
                });
                join_all(alone).await;
            }
            Err(error) => {
                for ask in asks {
                    let _ = ask.answer.send(Err(error.clone()));
                }
            }
        }
    }

    async fn alone(&self, group: Group) -> Result<Answer, QueryError> {
        let Group { store, keys, value } = group;
        let count = keys.len();
        Ok(Answer::new(self.values(read_of(store, keys), value).await?, 0..count))
    }

    /// Sends one read. A key that fails does not fail the other keys of the read.
    async fn values(&self, request: Arc<Request>, value: ValueType) -> Result<Arc<Values>, QueryError> {
        match self.backend.call(Arc::clone(&request)).await? {
            Reply::Values(answer) => self.readable(request.question.of(), value, answer).await,
            other => Err(QueryError::Internal { detail: format!("a read was answered by {other:.60?}") }),
        }
    }

    /// An answer with the schema that turns its records into JSON.
    async fn readable(
        &self,
        store: &str,
        value: ValueType,
        answer: BatchAnswer,
    ) -> Result<Arc<Values>, QueryError> {
        let version = answer.served.first().map_or(0, |(_, version)| *version);
        let schema = match (value, answer.schema) {
            // The answer has records, whatever type the store had before.
            (_, Some(id)) => Some(self.schema(store, version, id).await?),
            (ValueType::Record, None) => {
                let reason = "the answer names none".to_owned();
                return Err(QueryError::SchemaUnavailable { store: store.to_owned(), version, reason });
            }
            (ValueType::Text | ValueType::Bytes | ValueType::Json, None) => None,
        };
        let unanswered = match answer.missing_partitions.as_slice() {
            [] => String::new(),
            partitions => refusal(&self.backend.unanswered(partitions)),
        };
        Ok(Arc::new(Values { store: store.to_owned(), unanswered, records: answer.records, schema }))
    }

    /// The schema with this id. The backend is asked only if the store had another schema before.
    async fn schema(&self, store: &str, version: u64, id: SchemaId) -> Result<Schema, QueryError> {
        if let Some(known) = self.schemas.lock().get(store).filter(|known| known.id() == id) {
            return Ok(known.clone());
        }
        let schema = self.backend.schema(store, version, id).await?;
        self.schemas.lock().insert(store.to_owned(), schema.clone());
        Ok(schema)
    }
}

/// A read in which each key succeeds or fails on its own.
fn read_of(store: String, keys: BatchKeys) -> Arc<Request> {
    let options = QueryOptions { partial: true, door: Some(super::WORDS.name), ..QueryOptions::default() };
    Arc::new(Request { question: Question::Values { store, keys }, options })
}
