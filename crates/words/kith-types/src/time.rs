//! Time as an input of decisions.

use std::time::Duration;

/// A point in time, as a `Duration` since a start that the shell chose.
///
/// Deciding crates take it as an argument; a `std::time::Instant` could only be created by reading the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub Duration);

impl Timestamp {
    /// The start.
    pub const ZERO: Timestamp = Timestamp(Duration::ZERO);

    /// The time since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl std::ops::Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(duration))
    }
}
