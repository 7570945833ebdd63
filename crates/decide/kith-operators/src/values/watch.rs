//! Notices a cancellation in time, without checking for it at every list.

use crate::EvaluateError;

/// The number of ids between two checks: about 50 µs of work, compared with about 50 ns to read the clock.
const IDS_PER_LOOK: usize = 1 << 15;

/// The cost of finding a list, in ids.
const IDS_PER_LIST: usize = 64;

/// Counts work, and checks for cancellation from time to time.
pub(crate) struct Watch<'a> {
    cancelled: &'a dyn Fn() -> bool,
    left: usize,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { cancelled, left: IDS_PER_LOOK }
    }

    /// Counts one list of this many ids, and checks for cancellation if enough work was done.
    pub(crate) fn list(&mut self, ids: usize) -> Result<(), EvaluateError> {
        match self.left.checked_sub(ids + IDS_PER_LIST) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.look(),
        }
    }

    /// Checks for cancellation now.
    pub(crate) fn look(&mut self) -> Result<(), EvaluateError> {
        self.left = IDS_PER_LOOK;
        if (self.cancelled)() { Err(EvaluateError::Cancelled) } else { Ok(()) }
    }
}
