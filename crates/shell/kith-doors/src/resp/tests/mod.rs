//! Tests of whole connections over a pair of streams in memory, with stores that need no cluster.

mod identity;
mod properties;
mod reads;
mod session;

use super::{connection, endpoint::Endpoint, resp_rights::RespRights};
use crate::Backend;
use futures::{FutureExt, future::BoxFuture};
use kith_net::server::{
    connections::{
        OpenConnection,
        testing::{known, known_hasty, known_within},
    },
    security::{Caller, CallerIdentity, testing::gate},
};
use kith_operators::{RecordError, RecordsBuilder};
use kith_query::{
    BatchAnswer, BatchKeys, BatchStream, QueryError, Question, Reply, Request, Service, StoreShape,
};
use kith_schema::{KeyType, RecordWriter, Scalar, Schema, ValueType};
use kith_wire::LookupError;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// The key of a damaged value, and the key of a value that no replica answers for.
const DAMAGED: u64 = 13;
const UNANSWERED: u64 = 14;
const UNANSWERED_REPLY: &str = "-ERR partitions_unavailable: no replica of partition 5 answered in time (look at `kith cluster status`)\r\n";
const SCHEMA: &str = r#"{"fields":[{"name":"n","type":"u64"}]}"#;

/// A backend with test stores. `ids` and `texts` have a value for every key that is not a multiple of ten; `people` has
/// records; `large` has long values; an answer has room for two values of `huge`.
struct Stores {
    reads: AtomicU64,
    /// One permit is needed for each read.
    gate: Semaphore,
    /// The version of the store `ids`.
    version: AtomicU64,
}

impl Stores {
    fn new(reads: usize) -> Arc<Self> {
        Arc::new(Self { reads: AtomicU64::new(0), gate: Semaphore::new(reads), version: AtomicU64::new(3) })
    }

    fn open() -> Arc<Self> {
        Self::new(Semaphore::MAX_PERMITS)
    }
}

impl Backend for Stores {
    fn role(&self) -> &'static str {
        "router"
    }

    fn stores(&self) -> Vec<(String, u64)> {
        vec![("ids".to_owned(), self.version.load(Ordering::Relaxed))]
    }

    fn shape_of(&self, store: &str) -> Result<StoreShape, QueryError> {
        let value = if store == "people" { ValueType::Record } else { ValueType::Bytes };
        let key = match store {
            "ids" | "people" | "large" | "huge" => KeyType::Id,
            "texts" => KeyType::String,
            name => {
                let known = vec!["ids".to_owned()];
                return Err(LookupError::UnknownStore { name: name.to_owned(), known }.into());
            }
        };
        Ok(StoreShape { key, value })
    }

    fn fans_out(&self) -> bool {
        false
    }
}

impl Service for Stores {
    fn call(&self, request: Arc<Request>) -> BoxFuture<'_, Result<Reply, QueryError>> {
        async move {
            match &request.question {
                Question::Values { store, keys } => {
                    assert!(request.options.partial && request.options.door == Some("resp"));
                    self.values(store, keys).await
                }
                Question::Schema { store, .. } if store == "people" => Ok(Reply::Schema(schema())),
                other => panic!("RESP asks no {other:?}"),
            }
        }
        .boxed()
    }

    fn stream(&self, _: Arc<Request>) -> BatchStream<'_> {
        panic!("RESP streams nothing")
    }
}

impl Stores {
    async fn values(&self, store: &str, keys: &BatchKeys) -> Result<Reply, QueryError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.gate.acquire().await.expect("never closed").forget();
        if store == "huge" && 2 < keys.len() {
            return Err(QueryError::TooLarge { max: 2 });
        }
        let schema = (store == "people").then(schema);
        let mut records = RecordsBuilder::with_capacity(0);
        for index in 0..keys.len() {
            let key = match keys {
                BatchKeys::Ids(ids) => ids[index],
                BatchKeys::Bytes(keys) => keys.get(index).len() as u64,
            };
            match key {
                DAMAGED => records.error(RecordError::Damaged),
                UNANSWERED => records.unanswered(),
                key if key % 10 == 0 => records.absent(),
                key => assert!(records.found(&value(store, key, schema.as_ref()))),
            }
        }
        let records = records.finish();
        let missing_partitions = if records.counts().unanswered == 0 { vec![] } else { vec![5] };
        let served = vec![(store.to_owned(), 3)];
        let schema = schema.map(|schema| schema.id());
        Ok(Reply::Values(BatchAnswer { records, missing_partitions, served, profile: None, schema }))
    }
}

fn schema() -> Schema {
    SCHEMA.parse().expect("a schema")
}

fn value(store: &str, key: u64, schema: Option<&Schema>) -> Vec<u8> {
    match schema {
        Some(schema) => {
            let mut writer = RecordWriter::new(schema);
            writer.set(0, Scalar::U64(key)).expect("a number");
            let mut record = Vec::new();
            writer.finish(&mut record).expect("a record");
            record
        }
        None if store == "large" => vec![b'x'; 20_000],
        None => format!("v{key}").into_bytes(),
    }
}

/// A connection: the peer's end of it, and the task that serves it.
struct Conversation {
    peer: DuplexStream,
    stop: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
}

impl Conversation {
    fn with(stores: &Arc<Stores>, buffer_bytes: usize) -> Self {
        Self::of(RespRights::anybody(), stores, buffer_bytes)
    }

    fn of(rights: RespRights, stores: &Arc<Stores>, buffer_bytes: usize) -> Self {
        Self::at(rights, known(), stores, buffer_bytes)
    }

    fn at(
        rights: RespRights,
        connected: Arc<OpenConnection>,
        stores: &Arc<Stores>,
        buffer_bytes: usize,
    ) -> Self {
        let (peer, stream) = duplex(buffer_bytes);
        let addr = SocketAddr::from(([127, 0, 0, 1], 7));
        let endpoint = Endpoint::new(Arc::clone(stores) as Arc<dyn Backend>, addr);
        let listed = endpoint.connect(addr);
        let stop = CancellationToken::new();
        let served =
            tokio::spawn(connection::serve(stream, listed, connected, endpoint, rights, stop.clone()));
        Self { peer, stop, served }
    }

    fn start() -> Self {
        Self::with(&Stores::open(), 1 << 20)
    }

    /// Sends these pieces, then closes the sending side. Returns all replies.
    async fn exchange(self, pieces: &[&[u8]]) -> Vec<u8> {
        let (mut reader, mut writer) = tokio::io::split(self.peer);
        let write = async {
            for piece in pieces {
                // The server may have closed the connection.
                if writer.write_all(piece).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let _ = writer.shutdown().await;
        };
        let mut replies = Vec::new();
        let (_, read) = tokio::join!(write, reader.read_to_end(&mut replies));
        read.expect("replies can be read");
        self.served.await.expect("no panic").expect("no failure of the stream");
        replies
    }

    /// Sends lines as inline commands. Returns the replies as text.
    async fn say(self, lines: &str) -> String {
        String::from_utf8(self.exchange(&[lines.as_bytes()]).await).expect("text")
    }
}

async fn said(lines: &str) -> String {
    Conversation::start().say(lines).await
}

fn get(key: &str) -> Vec<u8> {
    format!("*2\r\n$3\r\nGET\r\n${}\r\n{key}\r\n", key.len()).into_bytes()
}
