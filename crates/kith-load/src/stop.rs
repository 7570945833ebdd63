//! Ends a build that runs on another thread.

use super::BuildError;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Ends a build before it has read all of its rows, from any thread. Copies stop the same build. One that has all of its rows, and
/// sorts and writes them, goes on to its end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the build at its next row.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the build is to end.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`BuildError::Stopped`].
    #[inline]
    pub fn check(&self) -> Result<(), BuildError> {
        if self.is_stopped() { Err(BuildError::Stopped) } else { Ok(()) }
    }
}
