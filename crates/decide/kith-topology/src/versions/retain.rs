//! Decides which versions are removed: old ones beyond the limit, blocked ones first because nobody wants them back.

use crate::versions::{VersionEntry, VersionState};
use kith_types::StoreVersion;

/// The number of failed pushes that stay in the list of versions, for users who look at it. The history has more.
const FAILED_MAX: usize = 4;

/// The versions of a store, of which only some are kept.
pub(crate) struct Retention<'a> {
    pub versions: &'a mut Vec<VersionEntry>,
    /// The number of versions that are kept besides the current one and held ones.
    pub retain: usize,
}

impl Retention<'_> {
    /// Removes what is beyond the limits from the list. Returns the versions that nodes have to drop.
    pub fn remove(self) -> Vec<StoreVersion> {
        let mut old = self.numbers(|entry| {
            !entry.held && matches!(entry.state, VersionState::Retained | VersionState::Blocked)
        });
        old.sort_by_key(|(state, version)| (*state != VersionState::Blocked, *version));
        let failed = self.numbers(|entry| entry.state == VersionState::Failed);
        let too_many = |list: &[(VersionState, StoreVersion)], bound: usize| {
            let over = list.len().saturating_sub(bound);
            list[..over].iter().map(|(_, version)| *version).collect::<Vec<_>>()
        };
        let dropped = too_many(&old, self.retain);
        let forgotten = too_many(&failed, FAILED_MAX);
        self.versions
            .retain(|entry| !dropped.contains(&entry.version) && !forgotten.contains(&entry.version));
        dropped
    }

    fn numbers(&self, which: impl Fn(&VersionEntry) -> bool) -> Vec<(VersionState, StoreVersion)> {
        let entries = self.versions.iter().filter(|entry| which(entry));
        entries.map(|entry| (entry.state, entry.version)).collect()
    }
}
