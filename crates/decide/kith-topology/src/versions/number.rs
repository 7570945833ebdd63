//! The numbers of versions.

use crate::versions::{Refusal, UnixMillis};
use kith_types::StoreVersion;

/// The amount by which a chosen number may be above the clock, or above the last number. All later numbers must be
/// greater, so a number near the end of the range would be the last one. A day allows for differing clocks.
const AHEAD_MAX_MS: u64 = 24 * 60 * 60 * 1_000;

/// Returns the last version number for a store that is created again under the name of a dropped one. A number far above the
/// clock is forgotten, so that numbering can continue. Every number that could be chosen under the rule above is still below
/// the result.
pub fn version_last_of_dropped(version_last: StoreVersion, now: UnixMillis) -> StoreVersion {
    version_last.min(StoreVersion(now.0.saturating_add(AHEAD_MAX_MS)))
}

/// The numbering of a store's versions.
#[derive(Clone, Copy)]
pub(crate) struct Numbering {
    /// The greatest number ever used.
    pub last: StoreVersion,
    pub now: UnixMillis,
}

impl Numbering {
    /// Returns the number of a new version: the one that is asked for, or the time, but always above every earlier number.
    /// This includes numbers of failed pushes, because nodes may have files of them.
    pub fn number(self, asked: Option<StoreVersion>) -> Result<StoreVersion, Refusal> {
        let Self { last, now } = self;
        let most = now.0.max(last.0).saturating_add(AHEAD_MAX_MS);
        match asked {
            Some(version) if StoreVersion::MAX < version => Err(Refusal::VersionTooGreat { version }),
            Some(version) if most < version.0 => {
                Err(Refusal::VersionAhead { version, most: StoreVersion(most) })
            }
            Some(version) if version <= last => Err(Refusal::VersionNotNewer { version, last }),
            Some(version) => Ok(version),
            None if StoreVersion::MAX <= last => Err(Refusal::VersionTooGreat { version: last }),
            None => Ok(StoreVersion(now.0.max(last.0 + 1)).min(StoreVersion::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_whose_numbers_were_used_up_counts_on_from_the_clock_when_it_is_made_again() {
        let now = UnixMillis(1_000);
        assert_eq!(version_last_of_dropped(StoreVersion(7), now), StoreVersion(7));
        assert_eq!(version_last_of_dropped(StoreVersion::MAX, now), StoreVersion(1_000 + AHEAD_MAX_MS));
    }
}
