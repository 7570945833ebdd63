//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time of day, which tells one start of a process from another.
pub fn micros_since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
