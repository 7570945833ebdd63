//! The system's clock. Only shells and programs that write files read it: decisions take time as an argument.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time since 1970; zero if the clock is set before that.
pub fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The milliseconds since 1970.
pub fn millis_since_1970() -> u64 {
    u64::try_from(since_1970().as_millis()).unwrap_or(u64::MAX)
}
