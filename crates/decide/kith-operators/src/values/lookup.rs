//! A batch read on one node: copies the values of its share of the keys once.

use super::watch::Watch;
use crate::records::RecordsBuilder;
use crate::{EvaluateError, RecordError, Records};
use kith_schema::{LookupKeys, SourceError, SourceValue, ValueSource};
use kith_types::ValueProof;
use std::ops::ControlFlow;

/// The limits of an answer, in bytes of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The greatest size. A larger answer is an error.
    pub bytes_max: usize,
    /// The size at which reading stops. Later keys are not read, and the answer covers only the first keys.
    pub enough: usize,
}

impl Room {
    /// The room for an answer to all keys of at most this size.
    pub fn for_all(bytes_max: usize) -> Self {
        Self { bytes_max, enough: usize::MAX }
    }

    pub(super) fn after(&self, bytes: usize) -> ControlFlow<()> {
        if bytes < self.enough { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// One node's part of a batch read.
#[derive(Clone, Copy, Debug)]
pub struct BatchRead<'a> {
    /// The keys to read.
    pub keys: LookupKeys<'a>,
    /// The limits of the answer.
    pub room: Room,
    /// Whether each value comes with its proof.
    pub proofs: bool,
}

/// Reads the values of the keys of `asked`. A damaged record is an error of its key alone, so that another replica is asked
/// for that key only. With proofs, values whose proof the source can pass on are checked by the caller and not here.
/// Absence is always proven here. `cancelled` is called every few thousand keys.
///
/// # Errors
/// [`EvaluateError::Cancelled`]; [`EvaluateError::TooLarge`] if there is no room for the values; the errors of the source.
pub fn lookup(
    asked: &BatchRead<'_>,
    source: &dyn ValueSource,
    cancelled: &dyn Fn() -> bool,
) -> Result<Records, EvaluateError> {
    let BatchRead { keys, room, proofs } = *asked;
    let too_large = || EvaluateError::TooLarge { max: room.bytes_max };
    let mut records = RecordsBuilder::with_room(keys.len(), room.enough);
    read(keys, source, proofs, cancelled, &mut |index, value| {
        match value {
            ReadOutcome::Found(value) => {
                let SourceValue { bytes, proof } = value;
                let proof = match proofs {
                    true => Some(proof.unwrap_or_else(|| ValueProof::of(keys.key(index), bytes))),
                    false => None,
                };
                let has_room = bytes.len() <= room.bytes_max - records.value_bytes();
                if !(has_room && records.found_with(bytes, proof)) {
                    return Err(too_large());
                }
            }
            ReadOutcome::Absent => records.absent(),
            ReadOutcome::Damaged => records.error(RecordError::Damaged),
        }
        Ok(room.after(records.value_bytes()))
    })?;
    Ok(records.finish())
}

/// The outcome of reading one key from a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome<'a> {
    Found(SourceValue<'a>),
    Absent,
    Damaged,
}

/// The consumer of values.
pub(super) type Each<'a> = dyn FnMut(usize, ReadOutcome<'_>) -> Result<ControlFlow<()>, EvaluateError> + 'a;

/// Calls `each(index, value)` once per key, in order, until it breaks or fails, the source fails, or the evaluation is
/// cancelled.
pub(super) fn read(
    keys: LookupKeys<'_>,
    source: &dyn ValueSource,
    proofs: bool,
    cancelled: &dyn Fn() -> bool,
    each: &mut Each<'_>,
) -> Result<(), EvaluateError> {
    let mut watch = Watch::new(cancelled);
    watch.look()?;
    let mut stopped = None;
    let mut on = |index, value: Result<Option<SourceValue<'_>>, SourceError>| {
        let (value, cost) = match value {
            Ok(Some(value)) => (Ok(ReadOutcome::Found(value)), value.bytes.len() / VALUE_BYTES_PER_ID),
            Ok(None) => (Ok(ReadOutcome::Absent), 1),
            Err(SourceError::Damaged { .. }) => (Ok(ReadOutcome::Damaged), 0),
            Err(error) => (Err(error.into()), 0),
        };
        let next = value.and_then(|value| each(index, value));
        match next.and_then(|next| watch.list(cost).map(|()| next)) {
            Ok(next) => next,
            Err(error) => {
                stopped = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    match proofs {
        true => source.values_with_proofs(keys, &mut on)?,
        false => source.values(keys, &mut |index, value| on(index, value.map(SourceValue::proven)))?,
    }
    stopped.map_or(Ok(()), Err)
}

/// Copying this many bytes costs about as much as one id of a list. Determines how often cancellation is checked.
const VALUE_BYTES_PER_ID: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Record;
    use std::collections::BTreeMap;

    /// Holds values by key. The value of key 13 is damaged.
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

    fn read(ids: &[u64], room: Room) -> Result<Records, EvaluateError> {
        let asked = BatchRead { keys: LookupKeys::Ids(ids), room, proofs: false };
        lookup(&asked, &source(), &|| false)
    }

    #[test]
    fn each_key_has_its_own_state() {
        let records = read(&[2, 9, 13, 1], Room::for_all(1_000)).unwrap();
        let expected =
            [Record::Found(b""), Record::Absent, Record::Error(RecordError::Damaged), Record::Found(b"one")];
        assert_eq!(records.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn an_answer_that_is_too_large_is_an_error_not_a_part() {
        let got = read(&[3, 3], Room::for_all(150));
        assert_eq!(got, Err(EvaluateError::TooLarge { max: 150 }));
        assert!(read(&[3], Room::for_all(100)).is_ok());
    }

    #[test]
    fn what_is_enough_ends_with_the_value_that_makes_it_so() {
        let first = |enough| read(&[9, 1, 2, 3, 1], Room { bytes_max: 1_000, enough }).unwrap().len();
        assert_eq!([0, 1, 3, 4, 103, 104, 106, 107].map(first), [1, 2, 2, 4, 4, 5, 5, 5]);
    }

    #[test]
    fn a_caller_that_went_away_stops_it() {
        let asked = BatchRead { keys: LookupKeys::Ids(&[1]), room: Room::for_all(100), proofs: false };
        let got = lookup(&asked, &source(), &|| true);
        assert_eq!(got, Err(EvaluateError::Cancelled));
    }
}
