//! A batch read on one node: the values of its share of the keys, copied once.

use super::watch::Watch;
use crate::records::RecordsBuilder;
use crate::{EvaluateError, RecordError, Records, SourceError, ValueSource};
use kith_types::ByteKeys;
use std::ops::ControlFlow;

/// The keys of a batch read, as a request carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupKeys<'a> {
    /// Of a store whose keys are ids.
    Ids(&'a [u64]),
    /// Of a store whose keys are strings or bytes.
    Bytes(&'a ByteKeys),
}

/// A key, in the order of keys: ids as numbers, bytes as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyRef<'a> {
    Id(u64),
    Bytes(&'a [u8]),
}

impl<'a> LookupKeys<'a> {
    /// The key at an index.
    ///
    /// # Panics
    /// Beyond the last.
    pub(super) fn key(&self, index: usize) -> KeyRef<'a> {
        match self {
            LookupKeys::Ids(ids) => KeyRef::Id(ids[index]),
            LookupKeys::Bytes(keys) => KeyRef::Bytes(keys.get(index)),
        }
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        match self {
            LookupKeys::Ids(ids) => ids.len(),
            LookupKeys::Bytes(keys) => keys.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Reads the values of `keys`. A damaged record is an error of its key alone, so that another replica is asked for it
/// and for nothing else. `cancelled` is asked every few thousand keys.
///
/// # Errors
/// [`EvaluateError::Cancelled`]; [`EvaluateError::TooLarge`] if the values are more than `bytes_max` in all; what the source fails with.
pub fn lookup(
    keys: LookupKeys<'_>,
    source: &dyn ValueSource,
    bytes_max: usize,
    cancelled: &dyn Fn() -> bool,
) -> Result<Records, EvaluateError> {
    let mut records = RecordsBuilder::with_capacity(keys.len());
    read(keys, source, cancelled, &mut |_, value| {
        match value {
            Read::Found(value) if bytes_max - records.value_bytes() < value.len() => {
                return Err(EvaluateError::TooLarge { max: bytes_max });
            }
            Read::Found(value) if records.found(value) => {}
            Read::Found(_) => return Err(EvaluateError::TooLarge { max: bytes_max }),
            Read::Absent => records.absent(),
            Read::Damaged => records.error(RecordError::Damaged),
        }
        Ok(())
    })?;
    Ok(records.finish())
}

/// What a source has of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    Found(&'a [u8]),
    Absent,
    Damaged,
}

/// Calls `each(index, value)` once per key, in order, until it or the source fails or nobody waits any more.
pub(super) fn read(
    keys: LookupKeys<'_>,
    source: &dyn ValueSource,
    cancelled: &dyn Fn() -> bool,
    each: &mut dyn FnMut(usize, Read<'_>) -> Result<(), EvaluateError>,
) -> Result<(), EvaluateError> {
    let mut watch = Watch::new(cancelled);
    watch.look()?;
    let mut stopped = None;
    source.values(keys, &mut |index, value| {
        let (value, cost) = match value {
            Ok(Some(value)) => (Ok(Read::Found(value)), value.len() / VALUE_BYTES_PER_ID),
            Ok(None) => (Ok(Read::Absent), 1),
            Err(SourceError::Damaged { .. }) => (Ok(Read::Damaged), 0),
            Err(error) => (Err(error.into()), 0),
        };
        match value.and_then(|value| each(index, value)).and_then(|()| watch.list(cost)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                stopped = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    stopped.map_or(Ok(()), Err)
}

/// Copying so many bytes costs about what an id of a list costs: how often cancellation is looked at.
const VALUE_BYTES_PER_ID: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use std::collections::BTreeMap;

    /// Holds `key → value`; key 13 is damaged.
    struct Source(BTreeMap<u64, Vec<u8>>);

    impl ValueSource for Source {
        fn values(
            &self,
            keys: LookupKeys<'_>,
            each: &mut dyn FnMut(usize, Result<Option<&[u8]>, SourceError>) -> ControlFlow<()>,
        ) -> Result<(), SourceError> {
            let LookupKeys::Ids(ids) = keys else { panic!("ids") };
            for (index, id) in ids.iter().enumerate() {
                let value = match id {
                    13 => Err(SourceError::Damaged { file: "f".into(), detail: "d".into() }),
                    _ => Ok(self.0.get(id).map(Vec::as_slice)),
                };
                if each(index, value).is_break() {
                    break;
                }
            }
            Ok(())
        }
    }

    fn source() -> Source {
        Source([(1, b"one".to_vec()), (2, vec![]), (3, vec![7; 100])].into())
    }

    #[test]
    fn each_key_has_its_own_state() {
        let records = lookup(LookupKeys::Ids(&[2, 9, 13, 1]), &source(), 1_000, &|| false).unwrap();
        let expected =
            [Record::Found(b""), Record::Absent, Record::Error(RecordError::Damaged), Record::Found(b"one")];
        assert_eq!(records.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_answer_that_is_too_large_is_an_error_not_a_part() {
        let got = lookup(LookupKeys::Ids(&[3, 3]), &source(), 150, &|| false);
        assert_eq!(got, Err(EvaluateError::TooLarge { max: 150 }));
        assert!(lookup(LookupKeys::Ids(&[3]), &source(), 100, &|| false).is_ok());
    }

    #[test]
    fn a_caller_that_went_away_stops_it() {
        let got = lookup(LookupKeys::Ids(&[1]), &source(), 100, &|| true);
        assert_eq!(got, Err(EvaluateError::Cancelled));
    }
}
