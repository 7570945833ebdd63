//! Keeps account of a batch read whose records are handed on as they arrive: each key once, and all keys in the end
//! (`docs/design/0010-streaming.md`). Both ends of a stream use it.

use crate::{MergeError, Record, RecordCounts, Records};

/// The records that were handed on so far.
#[derive(Clone, Debug)]
pub struct Deliveries {
    /// Whether each key was handed on.
    is_delivered: Vec<bool>,
    /// The counts of the keys that were handed on.
    counts: RecordCounts,
    value_bytes: u64,
}

impl Deliveries {
    /// Creates the account of this many keys, none of which was handed on yet.
    pub fn new(keys: usize) -> Self {
        Self { is_delivered: vec![false; keys], counts: RecordCounts::default(), value_bytes: 0 }
    }

    /// Notes records that are handed on; `positions` are the places of their keys. O(positions).
    ///
    /// # Errors
    /// [`MergeError::Position`] if a position is beyond the last key or was handed on before; [`MergeError::WrongValue`] if
    /// there is not one record per position. Do not use the account after an error.
    pub fn note(&mut self, positions: &[u32], records: &Records) -> Result<(), MergeError> {
        if positions.len() != records.len() {
            let got = "another number of records";
            return Err(MergeError::WrongValue { expected: "one record per position", got });
        }
        let expected = self.is_delivered.len();
        for (&position, record) in positions.iter().zip(records.iter()) {
            match self.is_delivered.get_mut(position as usize) {
                Some(delivered @ false) => *delivered = true,
                _ => return Err(MergeError::Position { position, expected }),
            }
            if let Record::Found(value) = record {
                self.value_bytes += value.len() as u64;
            }
        }
        let RecordCounts { found, absent, error, unanswered } = records.counts();
        self.counts.found += found;
        self.counts.absent += absent;
        self.counts.error += error;
        self.counts.unanswered += unanswered;
        Ok(())
    }

    /// The places of the remaining keys, ascending.
    pub fn rest(&self) -> Vec<u32> {
        let left = self.is_delivered.iter().enumerate().filter(|(_, delivered)| !**delivered);
        left.map(|(index, _)| index as u32).collect()
    }

    /// Whether nothing was handed on yet.
    pub fn is_empty(&self) -> bool {
        self.delivered() == 0
    }

    /// The number of keys that were handed on.
    pub fn delivered(&self) -> u64 {
        let RecordCounts { found, absent, error, unanswered } = self.counts;
        found + absent + error + unanswered
    }

    /// The counts of the keys that were handed on. Once all were, the four counts sum to the number of keys.
    pub fn counts(&self) -> RecordCounts {
        self.counts
    }

    /// The total size in bytes of the values that were handed on.
    pub fn value_bytes(&self) -> u64 {
        self.value_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordError, RecordsBuilder};

    fn records(values: &[Option<&[u8]>]) -> Records {
        let mut records = RecordsBuilder::with_capacity(0);
        for value in values {
            match value {
                Some(value) => assert!(records.found(value)),
                None => records.absent(),
            }
        }
        records.finish()
    }

    #[test]
    fn counts_sum_to_the_keys_once_all_are_handed_on() {
        let mut books = Deliveries::new(5);
        assert!(books.is_empty());
        books.note(&[4, 0], &records(&[Some(b"four"), None])).unwrap();
        books.note(&[], &records(&[])).unwrap();
        assert_eq!((books.rest(), books.delivered(), books.value_bytes()), (vec![1, 2, 3], 2, 4));
        let mut rest = Records::unanswered(3);
        rest.fail(1, RecordError::Damaged);
        books.note(&books.rest(), &rest).unwrap();
        let expected = RecordCounts { found: 1, absent: 1, error: 1, unanswered: 2 };
        assert_eq!((books.counts(), books.delivered(), books.rest()), (expected, 5, vec![]));
    }

    #[test]
    fn a_key_twice_or_beyond_the_last_is_an_error() {
        let mut books = Deliveries::new(2);
        books.note(&[1], &records(&[None])).unwrap();
        let again = books.clone().note(&[1], &records(&[None]));
        assert_eq!(again, Err(MergeError::Position { position: 1, expected: 2 }));
        let beyond = books.clone().note(&[2], &records(&[None]));
        assert_eq!(beyond, Err(MergeError::Position { position: 2, expected: 2 }));
        assert!(matches!(books.note(&[0], &records(&[])), Err(MergeError::WrongValue { .. })));
    }
}
