//! Batch reads of a store of values: one fan-out, every key accounted for.

use super::{
    error::{KEY_COUNT, QueryError},
    limits::ANSWER_BYTES_MAX,
};
use kith_operators::{RecordCounts, Records};
use kith_schema::{KEY_BYTES_MAX, KeyType, LookupKeys, SchemaId, ValueType};
use kith_types::ByteKeys;
use kith_wire::{BATCH_KEYS_MAX, v1};

/// The types of a store's keys and values, which are fixed when the store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreShape {
    /// The type of its keys.
    pub key: KeyType,
    /// The type of its values.
    pub value: ValueType,
}

/// The keys of a batch. A key that is repeated is answered each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchKeys {
    /// Keys of a store whose keys are ids.
    Ids(Vec<u64>),
    /// Keys of a store whose keys are strings or bytes.
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
    /// The number of keys.
    pub fn len(&self) -> usize {
        match self {
            BatchKeys::Ids(ids) => ids.len(),
            BatchKeys::Bytes(keys) => keys.len(),
        }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys at these indexes.
    ///
    /// # Panics
    /// If a place is beyond the last key.
    pub fn select(&self, indexes: impl IntoIterator<Item = usize>) -> BatchKeys {
        let indexes = indexes.into_iter();
        match self {
            BatchKeys::Ids(ids) => BatchKeys::Ids(indexes.map(|index| ids[index]).collect()),
            BatchKeys::Bytes(keys) => BatchKeys::Bytes(indexes.map(|index| keys.get(index)).collect()),
        }
    }

    /// Refuses more than `max` keys.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`] if there are more.
    pub fn check_count(&self, max: usize) -> Result<(), QueryError> {
        bounded(KEY_COUNT, self.len(), max)
    }

    /// Refuses a batch that exceeds the limits of every store.
    ///
    /// # Errors
    /// [`QueryError::BatchTooLarge`] if there are too many keys, or they are too long.
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
    /// [`QueryError::WrongKeys`] if the types differ.
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

    /// Borrows the keys for an evaluation.
    pub fn lookup(&self) -> LookupKeys<'_> {
        match self {
            BatchKeys::Ids(ids) => LookupKeys::Ids(ids),
            BatchKeys::Bytes(keys) => LookupKeys::Bytes(keys),
        }
    }
}

fn bounded(what: &'static str, got: usize, max: usize) -> Result<(), QueryError> {
    match got <= max {
        true => Ok(()),
        false => Err(QueryError::BatchTooLarge { what, got: got as u64, max: max as u64 }),
    }
}

/// The outcome of each key of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchAnswer {
    /// One record per key, in the order of the keys.
    pub records: Records,
    /// The partitions that did not answer for all of their keys, ascending; only in partial answers.
    pub missing_partitions: Vec<u32>,
    /// The name and version of the store that answered.
    pub served: Vec<(String, u64)>,
    /// The plan and its timings, if requested.
    pub profile: Option<v1::Profile>,
    /// For records: the schema of the version that answered, for [`crate::Service::schema`].
    pub schema: Option<SchemaId>,
}

impl BatchAnswer {
    /// The number of keys with each outcome. The four counts sum to the number of keys.
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
