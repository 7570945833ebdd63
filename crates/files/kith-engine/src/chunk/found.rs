//! A record that a lookup or a scan has reached.

use super::one_set::OneSet;
use super::record::Record;
use crate::errors::Damage;
use crate::files::FileId;
use kith_types::ValueProof;

/// A record that was found by its key and is not proven yet.
#[derive(Clone, Copy, Debug)]
pub struct FoundRecord<'a> {
    set: &'a OneSet,
    record: Record<'a>,
}

impl<'a> FoundRecord<'a> {
    #[inline]
    pub(super) fn new(set: &'a OneSet, record: Record<'a>) -> Self {
        Self { set, record }
    }

    /// The value. Use it first and prove it afterwards, so that a change in between cannot pass unnoticed.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        self.record.value
    }

    /// The offset at which the record begins in its data file.
    pub fn offset(&self) -> u64 {
        self.record.offset
    }

    /// The data file.
    pub fn file(&self) -> FileId {
        self.set.data().id()
    }

    /// Checks every byte of the record against its checksum, and thus the value as it was used.
    #[inline]
    pub fn prove(&self) -> Result<(), Damage> {
        self.set.prove(&self.record)
    }

    /// The proof of the value for a caller that has the key; `None` if the record must be proven here.
    #[inline]
    pub fn proof(&self) -> Option<ValueProof> {
        self.set.proof(&self.record)
    }

    /// Fails if a page of the data file was missing at any read so far.
    #[inline]
    pub fn check(&self) -> Result<(), Damage> {
        self.set.data().check()
    }

    /// The damage to report if a proven value is malformed, which is a fault of its writer.
    #[cold]
    pub fn malformed(&self, what: &'static str) -> Damage {
        self.set.data().impossible(what, self.record.offset as usize)
    }
}
