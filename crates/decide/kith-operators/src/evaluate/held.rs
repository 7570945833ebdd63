//! The memory of an evaluation: sets, lists and tallies that are held at the same time.

use crate::EvaluateError;

/// The number of bytes that an evaluation may hold, and the number that are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvaluationMemory {
    max: usize,
    left: usize,
}

impl EvaluationMemory {
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

    /// Returns what may be held beside `ids`.
    ///
    /// # Errors
    /// If they do not fit beside what is held already.
    pub(super) fn beside(self, ids: &[u64]) -> Result<Self, EvaluateError> {
        self.fits(size_of_val(ids))?;
        Ok(Self { left: self.left - size_of_val(ids), ..self })
    }

    /// The error for something that does not fit.
    pub(super) fn too_large(&self) -> EvaluateError {
        EvaluateError::TooLarge { max: self.max }
    }
}
