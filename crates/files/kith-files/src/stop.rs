//! Ends a build that runs on another thread.

use super::BuildError;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Ends a build before it has read all of its rows, from any thread. Clones stop the same build. A build that has all of
/// its rows, and sorts and writes them, is not stopped.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the build at its next row.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the build was stopped.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns an error if the build was stopped.
    ///
    /// # Errors
    /// [`BuildError::Stopped`] if it was stopped.
    #[inline]
    pub fn check(&self) -> Result<(), BuildError> {
        if self.is_stopped() { Err(BuildError::Stopped) } else { Ok(()) }
    }
}
