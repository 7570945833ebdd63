//! Streams of a store of values, asked as a program asks them, and judged.

use super::{cluster::Cluster, values::push};
use futures::StreamExt;
use kith_client::{
    BatchKeys, BatchStream, QueryError, QueryOptions, RouterClient, Service, StreamFooter, StreamItem,
};
use kith_engine::{KeyType, ValueType};
use kith_operators::{Record, RecordCounts};

pub const TYPES: (KeyType, ValueType) = (KeyType::Id, ValueType::Bytes);

/// A kibibyte that says of which key and version it is.
pub fn value(key: u64, version: u64) -> Vec<u8> {
    format!("{key} of {version},").into_bytes().into_iter().cycle().take(1_024).collect()
}

/// Makes version `version` of `store`, of so many keys from 0 on, the one that is served.
pub fn push_version(cluster: &Cluster, store: &str, keys: u64, version: u64) {
    let rows = (0..keys).map(|key| (key.to_le_bytes().to_vec(), value(key, version)));
    push(cluster, store, TYPES, version, rows);
}

/// The router.
pub async fn connect(cluster: &Cluster) -> RouterClient {
    let addr = cluster.ready()["router"].as_str().expect("an address").to_owned();
    RouterClient::connect(&[addr]).await.expect("the router answers")
}

/// The records of a stream so far; panics if a key comes twice or has another value than it should.
#[derive(Debug, Default)]
pub struct ReceivedStream {
    /// Per key.
    is_seen: Vec<bool>,
    pub counts: RecordCounts,
    pub versions: Vec<u64>,
    pub footer: Option<StreamFooter>,
    pub error: Option<QueryError>,
}

impl ReceivedStream {
    /// Of a stream that asks for keys from 0 on.
    pub fn new(keys: u64) -> Self {
        Self { is_seen: vec![false; keys as usize], ..Self::default() }
    }

    /// Takes the next item in; whether there was one. Of `known` keys the store has values.
    pub async fn next(&mut self, stream: &mut BatchStream<'_>, known: u64) -> bool {
        let piece = match stream.next().await {
            Some(Ok(StreamItem::Piece(piece))) => piece,
            Some(Ok(StreamItem::Footer(footer))) => {
                self.footer = Some(*footer);
                return true;
            }
            Some(Err(error)) => {
                self.error = Some(error);
                return true;
            }
            None => return false,
        };
        assert!(self.footer.is_none() && self.error.is_none(), "a piece follows the end");
        if !self.versions.contains(&piece.version) {
            self.versions.push(piece.version);
        }
        assert!(piece.positions.is_sorted(), "places are ascending");
        for (position, record) in piece.positions.iter().zip(piece.records.iter()) {
            let key = u64::from(*position);
            assert!(!std::mem::replace(&mut self.is_seen[key as usize], true), "key {key} came twice");
            match record {
                Record::Found(found) => {
                    assert!(key < known && found == value(key, piece.version), "key {key} is wrong");
                    self.counts.found += 1;
                }
                Record::Absent => {
                    assert!(known <= key, "key {key} is there");
                    self.counts.absent += 1;
                }
                Record::Error(_) => self.counts.error += 1,
                Record::Unanswered => self.counts.unanswered += 1,
                Record::Unsent => panic!("key {key} was asked for"),
            }
        }
        true
    }

    /// Takes the rest in.
    pub async fn finish(mut self, stream: &mut BatchStream<'_>, known: u64) -> Self {
        while self.next(stream, known).await {}
        self
    }

    /// Panics unless every key came, and the footer says what came.
    pub fn assert_accounted(&self) {
        let footer = self.footer.as_ref().unwrap_or_else(|| panic!("no footer: {:?}", self.error));
        assert!(self.is_seen.iter().all(|seen| *seen), "a key did not come");
        assert_eq!(footer.counts, self.counts);
        assert_eq!(self.versions, [footer.version]);
        let missing: u64 = footer.failures.iter().map(|failure| failure.keys).sum();
        assert_eq!(missing, self.counts.error + self.counts.unanswered, "{:?}", footer.failures);
    }
}

/// Keys from 0 on.
pub fn keys(count: u64) -> BatchKeys {
    BatchKeys::Ids((0..count).collect())
}

/// Reads a whole stream.
pub async fn read(
    service: &dyn Service,
    store: &str,
    count: u64,
    known: u64,
    options: &QueryOptions,
) -> ReceivedStream {
    let keys = keys(count);
    let mut stream = service.multi_get_stream(store, &keys, options);
    ReceivedStream::new(count).finish(&mut stream, known).await
}

/// Begins to read a stream: the stream, and what came of it with its first piece, after which there is more.
pub async fn begun<'a>(
    service: &'a dyn Service,
    store: &str,
    count: u64,
    known: u64,
    options: &QueryOptions,
) -> (BatchStream<'a>, ReceivedStream) {
    let mut stream = service.multi_get_stream(store, &keys(count), options);
    let mut seen = ReceivedStream::new(count);
    assert!(seen.next(&mut stream, known).await && seen.footer.is_none(), "it has only begun");
    (stream, seen)
}
