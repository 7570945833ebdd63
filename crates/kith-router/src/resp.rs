//! What Redis clients read through a router: batch reads of its session, those of one moment together.

use super::service::GraphServer;
use futures::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use kith_api::{BatchAnswer, BatchKeys, QueryError, QueryOptions, Question, Reply, Request, Service};
use kith_doors::resp::{Answer, Backend, Group, Values};
use kith_schema::{KeyType, ValueType};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::oneshot;

/// Reads of more keys go by themselves: they gain nothing, and would delay the others.
const KEYS_TOGETHER_MAX: usize = 64;
/// Keys of one fan-out that are read together.
const KEYS_OF_ALL_MAX: usize = 1_024;

/// Where one read's answer goes.
type Sender = oneshot::Sender<Result<Answer, QueryError>>;

/// Reads for Redis clients.
pub(crate) struct RespReads {
    server: Arc<GraphServer>,
    /// By store, reads that go together at the next turn of the scheduler. Locked for the time of adding a few keys.
    waiting: Mutex<BTreeMap<String, Together>>,
}

/// Reads of one store that go together.
#[derive(Debug)]
struct Together {
    keys: BatchKeys,
    asks: Vec<Ask>,
}

/// One of them.
#[derive(Debug)]
struct Ask {
    /// Where its keys begin, and how many they are.
    from: usize,
    count: usize,
    answer: Sender,
}

impl RespReads {
    /// Nobody waits yet.
    pub fn new(server: Arc<GraphServer>) -> Self {
        Self { server, waiting: Mutex::default() }
    }

    /// Has keys read with those of others.
    fn join(self: &Arc<Self>, group: Group) -> oneshot::Receiver<Result<Answer, QueryError>> {
        let Group { store, keys } = group;
        let (answer, answered) = oneshot::channel();
        let full = {
            let mut waiting = self.waiting.lock();
            match waiting.get_mut(&store) {
                None => {
                    tokio::spawn(Arc::clone(self).next_turn(store.clone()));
                    waiting.insert(store, Together::of(keys, answer));
                    return answered;
                }
                Some(together) => match together.add(keys, answer) {
                    Ok(()) => return answered,
                    Err((keys, answer)) => std::mem::replace(together, Together::of(keys, answer)),
                },
            }
        };
        tokio::spawn(Arc::clone(self).read_together(store, full));
        answered
    }

    /// Lets all tasks run that can run, which may have reads too; then reads what has come together.
    async fn next_turn(self: Arc<Self>, store: String) {
        tokio::task::yield_now().await;
        let together = self.waiting.lock().remove(&store);
        if let Some(together) = together {
            self.read_together(store, together).await;
        }
    }

    async fn read_together(self: Arc<Self>, store: String, together: Together) {
        let Together { keys, asks } = together;
        let request = read_of(store, keys);
        match self.values(Arc::clone(&request)).await {
            Ok(values) => {
                for ask in asks {
                    let own = Answer::new(Arc::clone(&values), ask.from..ask.from + ask.count);
                    // Its connection may be gone meanwhile.
                    let _ = ask.answer.send(Ok(own));
                }
            }
            // Too large together: each may be small enough.
            Err(QueryError::TooLarge { .. }) if 1 < asks.len() => {
                let Some(keys) = request.question.keys() else { return };
                let alone = asks.into_iter().map(async |ask| {
                    let keys = keys.select(ask.from..ask.from + ask.count);
                    let _ = ask.answer.send(self.alone(request.question.of().to_owned(), keys).await);
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

    async fn alone(&self, store: String, keys: BatchKeys) -> Result<Answer, QueryError> {
        let count = keys.len();
        Ok(Answer::new(self.values(read_of(store, keys)).await?, 0..count))
    }

    /// One fan-out. Keys fail by themselves, so that those that were read with them do not.
    async fn values(&self, request: Arc<Request>) -> Result<Arc<Values>, QueryError> {
        match self.server.call(Arc::clone(&request)).await? {
            Reply::Values(answer) => self.readable(request.question.of(), answer).await,
            other => Err(QueryError::Internal { detail: format!("a read was answered by {other:.60?}") }),
        }
    }

    /// An answer with what is needed to make text of its records.
    async fn readable(&self, store: &str, answer: BatchAnswer) -> Result<Arc<Values>, QueryError> {
        let session = &self.server.session;
        let version = answer.served.first().map_or(0, |(_, version)| *version);
        let schema = match (session.topology().store(store)?.value, answer.schema) {
            (ValueType::Record, Some(id)) => Some(session.schema(store, version, id).await?),
            (ValueType::Record, None) => {
                let reason = "the answer names none".to_owned();
                return Err(QueryError::SchemaUnavailable { store: store.to_owned(), version, reason });
            }
            (ValueType::Text | ValueType::Bytes | ValueType::Json, _) => None,
        };
        Ok(Arc::new(Values {
            store: store.to_owned(),
            unanswered: unanswered(&answer.missing_partitions),
            records: answer.records,
            schema,
        }))
    }
}

impl Backend for RespReads {
    fn role(&self) -> &'static str {
        "router"
    }

    fn stores(&self) -> Vec<(String, u64)> {
        let topology = self.server.session.topology();
        let stores = topology.stores.iter();
        stores.map(|(name, store)| (name.clone(), store.pinned.version)).collect()
    }

    fn keys_of(&self, store: &str) -> Result<KeyType, QueryError> {
        Ok(self.server.session.topology().store(store)?.key)
    }

    fn read(self: Arc<Self>, group: Group) -> BoxFuture<'static, Result<Answer, QueryError>> {
        async move {
            if KEYS_TOGETHER_MAX < group.keys.len() {
                return self.alone(group.store, group.keys).await;
            }
            let lost = |_| QueryError::Internal { detail: "a read ended without an answer".to_owned() };
            self.join(group).await.map_err(lost)?
        }
        .boxed()
    }
}

impl Together {
    fn of(keys: BatchKeys, answer: Sender) -> Self {
        let ask = Ask { from: 0, count: keys.len(), answer };
        Self { keys, asks: vec![ask] }
    }

    /// Adds a read.
    ///
    /// # Errors
    /// The read, if there are too many already, or its keys are of another type: a store of that name was made anew.
    fn add(&mut self, keys: BatchKeys, answer: Sender) -> Result<(), (BatchKeys, Sender)> {
        let (from, count) = (self.keys.len(), keys.len());
        if KEYS_OF_ALL_MAX < from + count {
            return Err((keys, answer));
        }
        match (&mut self.keys, keys) {
            (BatchKeys::Ids(all), BatchKeys::Ids(keys)) => all.extend(keys),
            (BatchKeys::Bytes(all), BatchKeys::Bytes(keys)) => keys.iter().for_each(|key| all.push(key)),
            (_, keys) => return Err((keys, answer)),
        }
        self.asks.push(Ask { from, count, answer });
        Ok(())
    }
}

/// A read of keys that fail by themselves.
fn read_of(store: String, keys: BatchKeys) -> Arc<Request> {
    let options = QueryOptions { partial: true, door: Some("resp"), ..QueryOptions::default() };
    Arc::new(Request { question: Question::Values { store, keys }, options })
}

/// The error of keys that nobody answered for.
fn unanswered(partitions: &[u32]) -> String {
    let partitions: Vec<String> = partitions.iter().map(u32::to_string).collect();
    format!(
        "ERR partitions_unavailable: no replica of partition {} answered in time (look at `kith cluster status`)",
        partitions.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(ids: impl IntoIterator<Item = u64>) -> BatchKeys {
        BatchKeys::Ids(ids.into_iter().collect())
    }

    #[test]
    fn reads_of_one_store_go_together_until_they_are_many() {
        let sender = || oneshot::channel().0;
        let mut together = Together::of(ids(0..1), sender());
        for read in 0..KEYS_OF_ALL_MAX as u64 - 1 {
            assert!(together.add(ids([read + 1]), sender()).is_ok());
        }
        let (one_more, _) = together.add(ids([9]), sender()).unwrap_err();
        assert_eq!(one_more, ids([9]));
        assert_eq!(together.keys, ids(0..KEYS_OF_ALL_MAX as u64));
        let begins: Vec<usize> = together.asks.iter().map(|ask| ask.from).collect();
        assert_eq!(begins, (0..KEYS_OF_ALL_MAX).collect::<Vec<_>>());
    }

    #[test]
    fn keys_of_another_type_do_not_join() {
        let mut together = Together::of(ids([1]), oneshot::channel().0);
        let keys = BatchKeys::Bytes(["a", "b"].iter().collect());
        assert!(together.add(keys.clone(), oneshot::channel().0).is_err());
        assert_eq!((together.keys.len(), together.asks.len()), (1, 1));
        assert_eq!(keys.select(1..2), BatchKeys::Bytes(["b"].iter().collect()));
    }
}
