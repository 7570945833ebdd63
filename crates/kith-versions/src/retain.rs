//! Which versions go. Old ones beyond the bound, those that were blocked first: nobody wants them back.

use crate::{Effect, VersionEntry, VersionState, apply::Draft};
use kith_types::StoreVersion;

/// So many failed pushes stay in the list, for whoever looks at it; the history knows of more.
const FAILED_MAX: usize = 4;

impl Draft<'_> {
    /// Drops what is beyond the bounds. Done with every command, so that nothing depends on a clean-up that may not run.
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
