//! A record that a lookup or a scan came to.

use super::one_set::OneSet;
use super::record::Record;
use crate::errors::Damage;
use crate::files::FileId;
use kith_types::ValueProof;

/// A record that was found by its key and is not proven yet.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    set: &'a OneSet,
    record: Record<'a>,
}

impl<'a> Found<'a> {
    #[inline]
    pub(super) fn new(set: &'a OneSet, record: Record<'a>) -> Self {
        Self { set, record }
    }

    /// The value. To be used first and proven after, so that nothing can change in between.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        self.record.value
    }

    /// Where the record begins in its data file.
    pub fn offset(&self) -> u64 {
        self.record.offset
    }

    /// The data file.
    pub fn file(&self) -> FileId {
        self.set.data().id()
    }

    /// Proves every byte of the record, hence of the value as it was used.
    #[inline]
    pub fn prove(&self) -> Result<(), Damage> {
        self.set.prove(&self.record)
    }

    /// What proves the value to a caller that has the key; `None` if it has to be proven here.
    #[inline]
    pub fn proof(&self) -> Option<ValueProof> {
        self.set.proof(&self.record)
    }

    /// Fails if a page of the data file was missing at some read so far.
    #[inline]
    pub fn check(&self) -> Result<(), Damage> {
        self.set.data().check()
    }

    /// The damage to report when a proven value is not what it should be: a writer's fault.
    #[cold]
    pub fn malformed(&self, what: &'static str) -> Damage {
        self.set.data().impossible(what, self.record.offset as usize)
    }
}
