//! Serializes durations in documents as whole milliseconds: `#[serde(with = "millis")]`.

use serde::{Deserialize, Deserializer, Serializer};
use std::time::Duration;

/// Serializes a duration as a number of milliseconds.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Deserializes a duration from a number of milliseconds.
///
/// # Errors
/// If the value is not a whole number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}
