//! The time limits of uploads into an object store.

use kith_wire::millis;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// The shortest and the longest interval between two searches of the object store for leftovers.
const SWEEP_INTERVAL_MIN: Duration = Duration::from_secs(1);
const SWEEP_INTERVAL_MAX: Duration = Duration::from_secs(3_600);

/// The time limits of uploads into an object store. All routers must use the same, because one removes what another might
/// still accept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UploadSettings {
    /// An upload is refused if it is handed over later than this after its first write.
    #[serde(with = "millis", rename = "hand-over-ms")]
    pub hand_over: Duration,
}

impl Default for UploadSettings {
    fn default() -> Self {
        Self { hand_over: Duration::from_secs(24 * 3_600) }
    }
}

impl UploadSettings {
    /// An unnamed folder is kept for this long after its last write. By then, every push that names it would be refused.
    pub fn orphan_age(&self) -> Duration {
        self.hand_over.saturating_mul(2)
    }

    /// A folder that no record names, and that was last written before this time, is a leftover.
    pub fn orphaned(&self) -> SystemTime {
        SystemTime::now().checked_sub(self.orphan_age()).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The interval between searches for leftovers.
    pub fn sweep_interval(&self) -> Duration {
        (self.hand_over / 4).clamp(SWEEP_INTERVAL_MIN, SWEEP_INTERVAL_MAX)
    }
}
