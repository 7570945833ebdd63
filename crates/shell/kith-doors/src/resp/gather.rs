//! Reads of one store that are sent as one.

use super::answer::Answer;
use kith_query::{BatchKeys, QueryError};
use kith_schema::ValueType;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// The most keys that are read together in one fan-out.
const KEYS_OF_ALL_MAX: usize = 1_024;

/// Where the answer to one read goes.
type Sender = oneshot::Sender<Result<Answer, QueryError>>;

/// The reads that are being gathered, by store.
pub(super) type StoreReads = BTreeMap<String, JointRead>;

/// Reads of one store that are sent as one.
#[derive(Debug)]
pub(super) struct JointRead {
    pub keys: BatchKeys,
    /// The type of the store's values.
    pub value: ValueType,
    pub asks: Vec<KeyRead>,
}

/// One of the reads.
#[derive(Debug)]
pub(super) struct KeyRead {
    /// The range of its keys: the index of the first, and their number.
    pub from: usize,
    pub count: usize,
    pub answer: Sender,
}

impl JointRead {
    /// Begins with the first read.
    pub fn of(keys: BatchKeys, value: ValueType, answer: Sender) -> Self {
        let ask = KeyRead { from: 0, count: keys.len(), answer };
        Self { keys, value, asks: vec![ask] }
    }

    /// Adds a read.
    ///
    /// # Errors
    /// The read is given back if there are too many keys, or if its keys are of another type: the store was dropped and
    /// created again.
    pub fn add(&mut self, keys: BatchKeys, answer: Sender) -> Result<(), (BatchKeys, Sender)> {
        let (from, count) = (self.keys.len(), keys.len());
        if KEYS_OF_ALL_MAX < from + count {
            return Err((keys, answer));
        }
        match (&mut self.keys, keys) {
            (BatchKeys::Ids(all), BatchKeys::Ids(keys)) => all.extend(keys),
            (BatchKeys::Bytes(all), BatchKeys::Bytes(keys)) => keys.iter().for_each(|key| all.push(key)),
            (_, keys) => return Err((keys, answer)),
        }
        self.asks.push(KeyRead { from, count, answer });
        Ok(())
    }
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
        let mut together = JointRead::of(ids(0..1), ValueType::Text, sender());
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
        let mut together = JointRead::of(ids([1]), ValueType::Text, oneshot::channel().0);
        let keys = BatchKeys::Bytes(["a", "b"].iter().collect());
        assert!(together.add(keys.clone(), oneshot::channel().0).is_err());
        assert_eq!((together.keys.len(), together.asks.len()), (1, 1));
        assert_eq!(keys.select(1..2), BatchKeys::Bytes(["b"].iter().collect()));
    }
}
