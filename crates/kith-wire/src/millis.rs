//! Durations as whole milliseconds, in documents: `#[serde(with = "millis")]`.

use serde::{Deserialize, Deserializer, Serializer};
use std::time::Duration;

/// As a number of milliseconds.
///
/// # Errors
/// The serializer's.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// From a number of milliseconds.
///
/// # Errors
/// If it is not a whole number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
