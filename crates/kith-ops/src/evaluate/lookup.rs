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

impl LookupKeys<'_> {
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
    let mut watch = Watch::new(cancelled);
    watch.look()?;
    let mut records = RecordsBuilder::with_capacity(keys.len());
    let mut stopped = None;
    source.values(keys, &mut |_, value| {
        let taken = match value {
            Ok(Some(value)) if bytes_max - records.value_bytes() < value.len() => {
                Err(EvaluateError::TooLarge { max: bytes_max })
            }
            Ok(Some(value)) if !records.found(value) => Err(EvaluateError::TooLarge { max: bytes_max }),
            Ok(Some(value)) => watch.list(value.len() / VALUE_BYTES_PER_ID),
            Ok(None) => {
                records.absent();
                watch.list(1)
            }
            Err(SourceError::Damaged { .. }) => {
                records.error(RecordError::Damaged);
                Ok(())
            }
            Err(error) => Err(error.into()),
        };
        match taken {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                stopped = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    match stopped {
        Some(error) => Err(error),
        None => Ok(records.finish()),
    }
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
