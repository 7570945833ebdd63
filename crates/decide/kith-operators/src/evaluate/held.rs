//! The memory of an evaluation: sets, lists and tallies that are held at the same time.

use super::Evaluator;
use crate::EvaluateError;

/// The number of bytes that an evaluation may hold, and the number that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    max: usize,
    left: usize,
}

impl Held {
    pub(super) fn new(max: usize) -> Self {
        Self { max, left: max }
    }

    /// The bytes that may still be held.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Refuses bytes that do not fit beside those that are held.
    pub(super) fn fits(&self, bytes: usize) -> Result<(), EvaluateError> {
        if bytes <= self.left { Ok(()) } else { Err(self.too_large()) }
    }

    /// The error for something that does not fit.
    pub(super) fn too_large(&self) -> EvaluateError {
        EvaluateError::TooLarge { max: self.max }
    }
}

impl Evaluator<'_> {
    /// Runs `work` while `ids` are held.
    pub(super) fn beside<T>(
        &mut self,
        ids: &[u64],
        work: impl FnOnce(&mut Self) -> Result<T, EvaluateError>,
    ) -> Result<T, EvaluateError> {
        let before = self.held;
        self.held.fits(size_of_val(ids))?;
        self.held.left -= size_of_val(ids);
        let done = work(self);
        self.held = before;
        done
    }
}
