//! The system clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The microseconds since 1970 by the system clock. They tell one start of a process from another.
pub fn micros_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
