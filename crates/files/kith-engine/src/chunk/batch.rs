//! Batch lookup: a group of keys goes through each step together, so that the cache misses of one step
//! overlap.

use super::found::FoundRecord;
use super::one_set::OneSet;
use super::probe::KeyProbe;
use super::reader::ChunkSetReader;
use crate::errors::{Damage, ReadError};
use crate::files::FileId;
use std::ops::ControlFlow;

/// The number of keys that are in flight at a time. A core overlaps 10 to 16 misses; more keys would only need more
/// stack.
const GROUP: usize = u32::BITS as usize;
/// The distance, in records, at which a record is prefetched as a whole before it is used. Two records of a kibibyte
/// have as many cache lines as a core can await at once.
const RECORDS_AHEAD: usize = 2;

impl ChunkSetReader {
    /// The value of a key. `None` is a proven absence.
    ///
    /// # Errors
    /// If a byte that the answer depends on is damaged.
    pub fn get(&self, key: &[u8]) -> Result<Option<&[u8]>, ReadError> {
        let mut answer = None;
        self.get_many(&[key], |_, value| {
            answer = value;
            ControlFlow::Continue(())
        })?;
        Ok(answer)
    }

    /// Calls `each(index, value)` once per key, in order; `Break` ends the reading early. The lookup works in batches:
    /// positions, index lines and records of a group of keys are loaded while others are awaited. No allocation.
    ///
    /// # Errors
    /// If a byte that an answer depends on is damaged. `each` was called for the keys before it.
    pub fn get_many<'a, K: AsRef<[u8]>>(
        &'a self,
        keys: &[K],
        mut each: impl FnMut(usize, Option<&'a [u8]>) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        find_many(
            keys.len(),
            |index| (self, keys[index].as_ref()),
            |index, found| {
                if let Some(found) = &found {
                    found.prove()?;
                }
                Ok::<_, ReadError>(each(index, found.map(|found| found.value())))
            },
        )
    }

    /// Looks keys up in the index alone, without reading records. Calls `each(index, place)` once per key, in order, with
    /// the data file and the offset at which the key's record begins. If there is no such key, the place is that of another
    /// key's record, or `None`. The places are unproven hints; [`ChunkSetReader::get_many`] gives proven answers. Keys go
    /// through the index in the same groups as there. No allocation.
    pub fn candidates<K: AsRef<[u8]>>(&self, keys: &[K], mut each: impl FnMut(usize, Option<(FileId, u64)>)) {
        candidate_each(
            keys.len(),
            |index| (self, keys[index].as_ref()),
            |index, candidate| each(index, candidate.map(|(set, offset)| (set.data().id(), offset))),
        );
    }
}

/// Finds `count` keys, each in the reader that `item` names, and calls `each` once per key, in order. `None` is a proven
/// absence.
///
/// # Errors
/// The first damage that is met, or an error that `each` returns.
pub fn find_many<'a, 'k, E: From<ReadError>>(
    count: usize,
    item: impl Fn(usize) -> (&'a ChunkSetReader, &'k [u8]),
    mut each: impl FnMut(usize, Option<FoundRecord<'a>>) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    let mut broke = Ok(());
    find_each(
        count,
        |index| Some(item(index)),
        |index, found| {
            let flow = found.map_err(|damage| ReadError::from(damage).into());
            flow.and_then(|found| each(index, found)).unwrap_or_else(|error| {
                broke = Err(error);
                ControlFlow::Break(())
            })
        },
    );
    broke
}

/// The lookup of one key.
#[derive(Clone, Copy)]
struct Slot<'a> {
    set: &'a OneSet,
    probe: KeyProbe,
}

impl<'a> Slot<'a> {
    #[inline]
    fn read_ahead(&self) {
        self.set.read_ahead(&self.probe);
    }

    #[inline]
    fn find_first(&self, key: &[u8]) -> Option<FoundRecord<'a>> {
        self.set.find_first(&self.probe, key).map(|record| FoundRecord::new(self.set, record))
    }

    #[inline(never)]
    fn find(&self, key: &[u8]) -> Result<Option<FoundRecord<'a>>, Damage> {
        let found = self.set.find(&self.probe, key);
        found.map(|record| record.map(|record| FoundRecord::new(self.set, record)))
    }
}

/// Finds keys like [`find_many`], but damage at one key is the answer of that key alone. A key for which `item` has no
/// reader is answered with `None`.
pub fn find_each<'a, 'k>(
    count: usize,
    item: impl Fn(usize) -> Option<(&'a ChunkSetReader, &'k [u8])>,
    mut each: impl FnMut(usize, Result<Option<FoundRecord<'a>>, Damage>) -> ControlFlow<()>,
) {
    let mut slots: [Option<Slot<'a>>; GROUP] = [None; GROUP];
    let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
    for start in (0..count).step_by(GROUP) {
        let slots = &mut slots[..GROUP.min(count - start)];
        locate(slots, &mut keys, |at| item(start + at), |slot| slot.set.load(&slot.probe));
        slots.iter().take(RECORDS_AHEAD).flatten().for_each(Slot::read_ahead);
        for ((slot, key), index) in slots.iter().zip(&keys).zip(start..) {
            if let Some(Some(ahead)) = slots.get(index - start + RECORDS_AHEAD) {
                ahead.read_ahead();
            }
            // Two calls, so that the path that nearly every key takes stays in registers.
            let first = slot.as_ref().and_then(|slot| slot.find_first(key));
            let flow = match first {
                Some(found) => each(index, Ok(Some(found))),
                None => each(index, slot.as_ref().map_or(Ok(None), |slot| slot.find(key))),
            };
            if flow.is_break() {
                return;
            }
        }
    }
}

/// Looks `count` keys up in the index alone. Calls `each` once per key, in order, with the place of the first record that
/// may be the key's. It is unproven, because the record is not read.
pub(super) fn candidate_each<'a, 'k>(
    count: usize,
    item: impl Fn(usize) -> (&'a ChunkSetReader, &'k [u8]),
    mut each: impl FnMut(usize, Option<(&'a OneSet, u64)>),
) {
    let mut slots: [Option<Slot<'a>>; GROUP] = [None; GROUP];
    let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
    for start in (0..count).step_by(GROUP) {
        let slots = &mut slots[..GROUP.min(count - start)];
        locate(slots, &mut keys, |at| Some(item(start + at)), |_| ());
        for (slot, index) in slots.iter().zip(start..) {
            each(index, slot.as_ref().and_then(|slot| Some((slot.set, slot.probe.candidate()?))));
        }
    }
}

/// Takes a group of keys through the index. When it returns, each slot has its candidate. `then` is called for a slot as
/// soon as it has one.
#[inline]
fn locate<'a, 'k>(
    slots: &mut [Option<Slot<'a>>],
    keys: &mut [&'k [u8]; GROUP],
    item: impl Fn(usize) -> Option<(&'a ChunkSetReader, &'k [u8])>,
    then: impl Fn(&Slot<'a>),
) {
    for ((slot, key), at) in slots.iter_mut().zip(keys).zip(0..) {
        *slot = item(at).and_then(|(reader, wanted)| {
            *key = wanted;
            let (set, position) = reader.route(wanted)?;
            Some(Slot { set, probe: set.locate(position)? })
        });
    }
    // One bit for each slot whose next line must be read too.
    let mut open = 0u32;
    for (at, slot) in slots.iter_mut().enumerate() {
        if let Some(slot) = slot {
            if slot.set.read_line(&mut slot.probe) {
                then(slot);
            } else {
                open |= 1 << at;
            }
        }
    }
    while open != 0 {
        if let Some(slot) = &mut slots[open.trailing_zeros() as usize] {
            slot.set.read_lines_behind(&mut slot.probe);
            then(slot);
        }
        open &= open - 1;
    }
}
