//! Noticing in time that nobody waits any more, without asking at every list.

use crate::EvaluateError;

/// Ids worked on between two looks: about 50 µs of work, against about 50 ns for a look at the clock.
const IDS_PER_LOOK: usize = 1 << 15;

/// What a list costs beside its ids: finding it.
const IDS_PER_LIST: usize = 64;

/// Counts work and asks whether to go on.
pub(super) struct Watch<'a> {
    cancelled: &'a dyn Fn() -> bool,
    left: usize,
}

impl<'a> Watch<'a> {
    pub(super) fn new(cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { cancelled, left: IDS_PER_LOOK }
    }

    /// Counts one list of so many ids, and looks when enough was done.
    pub(super) fn list(&mut self, ids: usize) -> Result<(), EvaluateError> {
        match self.left.checked_sub(ids + IDS_PER_LIST) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.look(),
        }
    }

    /// Asks now.
    pub(super) fn look(&mut self) -> Result<(), EvaluateError> {
        self.left = IDS_PER_LOOK;
        if (self.cancelled)() { Err(EvaluateError::Cancelled) } else { Ok(()) }
    }
}
