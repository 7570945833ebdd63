//! Batch reads of a store of values: one fan-out, every key accounted for (architecture D8).

use crate::{
    AggregateAnswer, AggregateQuery, BatchStream, ComputeAnswer, ComputeQuery, QueryError, QueryOptions,
};
use futures::future::BoxFuture;
use kith_ops::{LookupKeys, RecordCounts, Records, Scope};
use kith_schema::{KEY_BYTES_MAX, KeyType, Schema, SchemaId, ValueType};
use kith_types::ByteKeys;
use kith_wire::{BATCH_KEYS_MAX, v1};

/// The most bytes of the values of one node's share of an answer, and of all of it unless a session's settings say otherwise
/// (`answer-bytes-max`); of all keys of a batch together as well.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Reads values by key, through a router or directly from the nodes.
pub trait StoreService: Send + Sync + 'static {
    /// Reads the values of `keys`, all of one version. One record per key in the order of the keys, repeats included.
    ///
    /// # Errors
    /// Without [`QueryOptions::partial`] a key that has no proven answer fails the batch; with it, it is one of the
    /// answer's. What makes no sense is refused before anything is asked.
    fn multi_get<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<BatchAnswer, QueryError>>;

    /// Reads as [`StoreService::multi_get`] does, and hands records on as they arrive; then a footer that accounts for every key.
    ///
    /// # Errors
    /// Those of [`StoreService::multi_get`], as the last item; with [`QueryOptions::partial`] only if nothing at all was answered.
    fn multi_get_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        options: &'a QueryOptions,
    ) -> BatchStream<'a>;

    /// What a plan makes of the records of `keys`, all of one version. A plan that does not fit the records is refused before any node is asked.
    ///
    /// # Errors
    /// As [`StoreService::multi_get`]; [`QueryError::Compute`], [`QueryError::NotRecords`].
    fn read_compute<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<ComputeAnswer, QueryError>>;

    /// What a plan without `top_k` makes of the records of `keys`, handed on as it arrives: as [`StoreService::multi_get_stream`]. Pieces name the
    /// schema of the results.
    ///
    /// # Errors
    /// Those of [`StoreService::read_compute`], as the last item; [`QueryError::BadRequest`] of a plan with `top_k`.
    fn read_compute_stream<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a ComputeQuery,
        options: &'a QueryOptions,
    ) -> BatchStream<'a>;

    /// Counts the values of a field over the records of `keys`, all of one version.
    ///
    /// # Errors
    /// As [`StoreService::read_compute`].
    fn read_aggregate<'a>(
        &'a self,
        store: &'a str,
        keys: &'a BatchKeys,
        query: &'a AggregateQuery,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<AggregateAnswer, QueryError>>;

    /// What the store's keys and values are.
    ///
    /// # Errors
    /// If there is no such store of values, or nobody answers.
    fn shape<'a>(&'a self, store: &'a str) -> BoxFuture<'a, Result<StoreShape, QueryError>>;

    /// The schema that the records of a version are written under; `id` as an answer of that version names it. Asks
    /// nobody for one that is known already: the same schema is fetched once, whichever versions and stores have it.
    ///
    /// # Errors
    /// [`QueryError::SchemaUnavailable`] if nobody who answers has it.
    fn schema<'a>(
        &'a self,
        store: &'a str,
        version: u64,
        id: SchemaId,
    ) -> BoxFuture<'a, Result<Schema, QueryError>>;
}

/// What the keys and values of a store are: fixed when it is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreShape {
    /// Its keys.
    pub key: KeyType,
    /// Its values.
    pub value: ValueType,
}

/// The keys of a batch; repeats are answered each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchKeys {
    /// Of a store whose keys are ids.
    Ids(Vec<u64>),
    /// Of a store whose keys are strings or bytes.
    Bytes(ByteKeys),
}

impl From<Vec<u64>> for BatchKeys {
    fn from(ids: Vec<u64>) -> Self {
        BatchKeys::Ids(ids)
    }
}

impl From<ByteKeys> for BatchKeys {
    fn from(keys: ByteKeys) -> Self {
        BatchKeys::Bytes(keys)
    }
}

impl BatchKeys {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            BatchKeys::Ids(ids) => ids.len(),
            BatchKeys::Bytes(keys) => keys.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those at these places.
    ///
    /// # Panics
    /// Beyond the last.
    pub fn select(&self, places: impl IntoIterator<Item = usize>) -> BatchKeys {
        let places = places.into_iter();
        match self {
            BatchKeys::Ids(ids) => BatchKeys::Ids(places.map(|place| ids[place]).collect()),
            BatchKeys::Bytes(keys) => BatchKeys::Bytes(places.map(|place| keys.get(place)).collect()),
        }
    }

    /// Refuses more than `max` of them.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`].
    pub fn check_count(&self, max: usize) -> Result<(), QueryError> {
        bounded(KEY_COUNT, self.len(), max)
    }

    /// Refuses what no store answers.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`].
    pub fn check(&self) -> Result<(), QueryError> {
        self.check_count(BATCH_KEYS_MAX)?;
        let BatchKeys::Bytes(keys) = self else { return Ok(()) };
        bounded("the length of all keys in bytes", keys.byte_count(), ANSWER_BYTES_MAX)?;
        let longest = keys.iter().map(<[u8]>::len).max().unwrap_or(0);
        bounded("the length of a key in bytes", longest, KEY_BYTES_MAX)
    }

    /// Refuses keys of another type than the store's.
    ///
    /// # Errors
    /// [`QueryError::WrongKeys`].
    pub fn check_type(&self, store: &str, expected: KeyType) -> Result<(), QueryError> {
        let got = match (self, expected) {
            _ if self.is_empty() => return Ok(()),
            (BatchKeys::Ids(_), KeyType::Id) => return Ok(()),
            (BatchKeys::Bytes(_), KeyType::String | KeyType::Bytes) => return Ok(()),
            (BatchKeys::Ids(_), _) => "id",
            (BatchKeys::Bytes(_), _) => "string or bytes",
        };
        Err(QueryError::WrongKeys { store: store.to_owned(), expected, got })
    }

    /// As a fan-out has them.
    pub fn scope(&self) -> Scope {
        match self {
            BatchKeys::Ids(ids) => Scope::Keys(ids.clone()),
            BatchKeys::Bytes(keys) => Scope::ByteKeys(keys.clone()),
        }
    }

    /// As an evaluation looks them up.
    pub fn lookup(&self) -> LookupKeys<'_> {
        match self {
            BatchKeys::Ids(ids) => LookupKeys::Ids(ids),
            BatchKeys::Bytes(keys) => LookupKeys::Bytes(keys),
        }
    }
}

/// What a batch has too many of.
pub(crate) const KEY_COUNT: &str = "the number of keys";

fn bounded(what: &'static str, got: usize, max: usize) -> Result<(), QueryError> {
    match got <= max {
        true => Ok(()),
        false => Err(QueryError::BatchTooLarge { what, got: got as u64, max: max as u64 }),
    }
}

/// What became of each key of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchAnswer {
    /// One per key, in the order of the keys.
    pub records: Records,
    /// Partitions that did not answer for all of their keys, ascending; only of partial answers.
    pub missing_partitions: Vec<u32>,
    /// Name and version of what answered.
    pub served: Vec<(String, u64)>,
    /// The plan and its timings, if asked for.
    pub profile: Option<v1::Profile>,
    /// Of records: the schema of the version that answered, for [`StoreService::schema`].
    pub schema: Option<SchemaId>,
}

impl BatchAnswer {
    /// How many keys ended how; the four sum to the number of keys.
    pub fn counts(&self) -> RecordCounts {
        self.records.counts()
    }

    /// Whether every key has a proven answer: found or absent.
    pub fn is_complete(&self) -> bool {
        let counts = self.counts();
        counts.error == 0 && counts.unanswered == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_types::ErrorCode;

    #[test]
    fn a_batch_is_bounded_in_keys_and_bytes() {
        let code = |keys: BatchKeys| keys.check().map_err(|error| error.code());
        assert_eq!(code(BatchKeys::Ids(vec![7; BATCH_KEYS_MAX])), Ok(()));
        assert_eq!(code(BatchKeys::Ids(vec![7; BATCH_KEYS_MAX + 1])), Err(ErrorCode::OutOfRange));
        let key = |bytes: usize| BatchKeys::Bytes([vec![b'k'; bytes]].iter().collect());
        assert_eq!(code(key(KEY_BYTES_MAX)), Ok(()));
        assert_eq!(code(key(KEY_BYTES_MAX + 1)), Err(ErrorCode::OutOfRange));
        let many: ByteKeys = (0..=ANSWER_BYTES_MAX / KEY_BYTES_MAX).map(|_| vec![0; KEY_BYTES_MAX]).collect();
        assert_eq!(code(BatchKeys::Bytes(many)), Err(ErrorCode::OutOfRange));
    }

    #[test]
    fn keys_of_another_type_are_refused_unless_there_is_none() {
        let ids = BatchKeys::Ids(vec![1]);
        let bytes = BatchKeys::Bytes(["1"].iter().collect());
        assert!(ids.check_type("s", KeyType::Id).is_ok() && bytes.check_type("s", KeyType::String).is_ok());
        assert!(bytes.check_type("s", KeyType::Bytes).is_ok());
        assert_eq!(ids.check_type("s", KeyType::String).unwrap_err().code(), ErrorCode::WrongKeyType);
        assert_eq!(bytes.check_type("s", KeyType::Id).unwrap_err().code(), ErrorCode::WrongKeyType);
        assert!(BatchKeys::Ids(vec![]).check_type("s", KeyType::Bytes).is_ok());
    }
}
