//! Counts wrong rows.

use std::collections::BTreeMap;

/// How many wrong rows are kept in full; the others are only counted.
pub const ROW_ERRORS_SHOWN: usize = 10;

/// The wrong rows: the first few in full, and the counts of all by reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongRows<E> {
    /// The first [`ROW_ERRORS_SHOWN`], in the order in which they were read.
    pub first: Vec<E>,
    /// The number of wrong rows by reason, which is a short description of the fault.
    pub by_reason: BTreeMap<&'static str, u64>,
}

impl<E> Default for WrongRows<E> {
    fn default() -> Self {
        WrongRows { first: Vec::new(), by_reason: BTreeMap::new() }
    }
}

impl<E> WrongRows<E> {
    /// The number of wrong rows.
    pub fn total(&self) -> u64 {
        self.by_reason.values().sum()
    }

    /// Whether more rows are wrong than allowed.
    pub(crate) fn too_many(&self, allowed: u64) -> bool {
        allowed < self.total()
    }

    /// Counts a wrong row. `error` is called only if the row will be shown.
    pub(crate) fn record(&mut self, reason: &'static str, error: impl FnOnce() -> E) {
        *self.by_reason.entry(reason).or_default() += 1;
        if self.first.len() < ROW_ERRORS_SHOWN {
            self.first.push(error());
        }
    }
}
