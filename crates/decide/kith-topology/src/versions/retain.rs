//! Decides which versions are removed: old ones beyond the limit, blocked ones first because nobody wants them back.

use crate::versions::{Effect, VersionEntry, VersionState, apply::Draft};
use kith_types::StoreVersion;

/// The number of failed pushes that stay in the list of versions, for users who look at it. The history has more.
const FAILED_MAX: usize = 4;

impl Draft<'_> {
    /// Drops what is beyond the limits. This runs with every command, so that nothing depends on a separate clean-up.
    pub fn clean(&mut self) {
        let retain = self.state.policy.retain as usize;
        let mut old = self.numbers(|entry| {
            !entry.held && matches!(entry.state, VersionState::Retained | VersionState::Blocked)
        });
        old.sort_by_key(|(state, version)| (*state != VersionState::Blocked, *version));
        let failed = self.numbers(|entry| entry.state == VersionState::Failed);
        let too_many = |list: &[(VersionState, StoreVersion)], bound: usize| {
            let over = list.len().saturating_sub(bound);
            list[..over].iter().map(|(_, version)| *version).collect::<Vec<_>>()
        };
        let dropped = too_many(&old, retain);
        let forgotten = too_many(&failed, FAILED_MAX);
        self.state
            .versions
            .retain(|entry| !dropped.contains(&entry.version) && !forgotten.contains(&entry.version));
        self.effects.extend(dropped.into_iter().map(|version| Effect::Drop { version }));
    }

    fn numbers(&self, which: impl Fn(&VersionEntry) -> bool) -> Vec<(VersionState, StoreVersion)> {
        let entries = self.state.versions.iter().filter(|entry| which(entry));
        entries.map(|entry| (entry.state, entry.version)).collect()
    }
}
