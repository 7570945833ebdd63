//! How long uploads into an object store may take.

use kith_wire::millis;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// The object store is listed so often at most, and so often at least, for what was left behind in it.
const SWEEP_INTERVAL_MIN: Duration = Duration::from_secs(1);
const SWEEP_INTERVAL_MAX: Duration = Duration::from_secs(3_600);

/// How long uploads into an object store may take. The same at all routers: one removes what another might still accept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct UploadSettings {
    /// An upload is handed over within this time from its first write, or refused.
    #[serde(with = "millis", rename = "hand-over-ms")]
    pub hand_over: Duration,
}

impl Default for UploadSettings {
    fn default() -> Self {
        Self { hand_over: Duration::from_secs(24 * 3_600) }
    }
}

impl UploadSettings {
    /// What nobody names is left for so long after its last write: well after any push would be refused that names it.
    pub fn orphan_age(&self) -> Duration {
        self.hand_over.saturating_mul(2)
    }

    /// What nobody names, and nobody wrote to since this moment, was left behind.
    pub fn orphaned(&self) -> SystemTime {
        SystemTime::now().checked_sub(self.orphan_age()).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// How often what was left behind is looked for.
    pub fn sweep_interval(&self) -> Duration {
        (self.hand_over / 4).clamp(SWEEP_INTERVAL_MIN, SWEEP_INTERVAL_MAX)
    }
}
