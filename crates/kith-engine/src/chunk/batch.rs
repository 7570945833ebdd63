//! Batch lookup (architecture D16): a group of keys goes through each step
//! together, so that the cache misses of one step overlap.

use super::one_set::{OneSet, Place};
use super::reader::ChunkSetReader;
use super::record::Record;
use crate::errors::{Damage, ReadError};
use std::ops::ControlFlow;

/// Keys in flight at a time. A core overlaps 10 to 16 misses; more keys only need more stack.
const GROUP: usize = 32;

/// A record that was found by its key and is not proven yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    set: &'a OneSet,
    record: Record<'a>,
}

impl<'a> Found<'a> {
    /// The value. To be used first and proven after, so that nothing can change in between.
    #[inline]
    pub(crate) fn value(&self) -> &'a [u8] {
        self.record.value
    }

    /// Proves every byte of the record, hence of the value as it was used.
    #[inline]
    pub(crate) fn prove(&self) -> Result<(), Damage> {
        self.set.prove(&self.record)
    }

    /// The damage to report when a proven value is not what it should be: a writer's fault.
    #[cold]
    pub(crate) fn malformed(&self, what: &'static str) -> Damage {
        self.set.data().impossible(what, self.record.offset as usize)
    }
}

/// Finds `count` keys, each in the reader that `item` names, and calls `each` once per key, in order.
/// `None` is a proven absence.
///
/// # Errors
/// The first damage met, or what `each` returns.
pub(crate) fn find_many<'a, 'k, E: From<ReadError>>(
    count: usize,
    item: impl Fn(usize) -> (&'a ChunkSetReader, &'k [u8]),
    mut each: impl FnMut(usize, Option<Found<'a>>) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    let mut slots: [Option<(&OneSet, Place)>; GROUP] = [None; GROUP];
    for start in (0..count).step_by(GROUP) {
        let slots = &mut slots[..GROUP.min(count - start)];
        for (slot, index) in slots.iter_mut().zip(start..) {
            let (reader, key) = item(index);
            *slot = reader.route(key).and_then(|(set, position)| Some((set, set.locate(position)?)));
        }
        for (set, place) in slots.iter_mut().flatten() {
            set.read_directory(place).map_err(ReadError::from)?;
        }
        for (set, place) in slots.iter_mut().flatten() {
            set.read_lines(place);
        }
        for (slot, index) in slots.iter().zip(start..) {
            let (reader, key) = item(index);
            let found = match slot {
                Some((set, place)) => {
                    let record = reader.find_in(set, place, key).map_err(ReadError::from)?;
                    record.map(|record| Found { set, record })
                }
                None => None,
            };
            if each(index, found)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}
