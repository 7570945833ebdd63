//! Decides which version is served: swaps, rollbacks, holds and blocks. Each is one write.

use crate::versions::{Action, Effect, Refusal, VersionEntry, VersionState, apply::Draft};
use kith_types::{NodeId, StoreVersion};

impl Draft<'_> {
    pub fn swap(&mut self, to: StoreVersion, force: bool) -> Result<(), Refusal> {
        self.check_servable(to, force)?;
        self.end_running(&format!("{} swapped version {} in", self.context.who, to.0));
        self.note(Action::Swap, to);
        self.serve(to, VersionState::Retained);
        Ok(())
    }

    pub fn rollback(&mut self, to: Option<StoreVersion>, force: bool) -> Result<(), Refusal> {
        let current = self.state.current_version();
        let to = match to {
            None => self.newest_older().ok_or(Refusal::NothingOlder { current })?,
            Some(to) => to,
        };
        self.check_servable(to, force)?;
        if current < to {
            return Err(Refusal::NotOlder { to, current });
        }
        self.end_running(&format!("{} rolled the store back to version {}", self.context.who, to.0));
        self.note(Action::Rollback, to);
        self.serve(to, VersionState::Blocked);
        Ok(())
    }

    fn newest_older(&self) -> Option<StoreVersion> {
        let current = self.state.current_version();
        let mut newest_first = self.state.versions.iter().rev();
        newest_first
            .find(|entry| entry.version < current && entry.state == VersionState::Retained)
            .map(|entry| entry.version)
    }

    /// Serves `version`. The version that was served gets the state `before`.
    pub fn serve(&mut self, version: StoreVersion, before: VersionState) {
        for entry in &mut self.state.versions {
            if entry.version == version {
                entry.state = VersionState::Current;
            } else if entry.state == VersionState::Current {
                entry.state = before;
            }
        }
        self.effects.push(Effect::Serve { version });
    }

    pub fn hold(&mut self, version: StoreVersion, held: bool) -> Result<(), Refusal> {
        self.kept(version)?;
        self.note(if held { Action::Hold } else { Action::Release }, version);
        if let Some(entry) = self.state.version_mut(version) {
            entry.held = held;
        }
        Ok(())
    }

    pub fn block(&mut self, version: StoreVersion, blocked: bool) -> Result<(), Refusal> {
        self.check_keeper()?;
        if self.kept(version)?.state == VersionState::Current {
            return Err(Refusal::VersionCurrent { version });
        }
        self.note(if blocked { Action::Block } else { Action::Unblock }, version);
        if let Some(entry) = self.state.version_mut(version) {
            entry.state = if blocked { VersionState::Blocked } else { VersionState::Retained };
        }
        Ok(())
    }

    /// Records that a node has repaired a version. It changes nothing if the node was not left out.
    pub fn repaired(&mut self, version: StoreVersion, node: NodeId) -> Result<(), Refusal> {
        self.kept(version)?;
        let was_out = self.state.version_mut(version).is_some_and(|entry| entry.excluded.remove(&node));
        if was_out {
            self.note(Action::Repair, version);
        }
        Ok(())
    }

    fn check_servable(&self, version: StoreVersion, force: bool) -> Result<(), Refusal> {
        match self.kept(version)?.state {
            VersionState::Current => Err(Refusal::VersionCurrent { version }),
            VersionState::Blocked if !force => Err(Refusal::VersionBlocked { version }),
            _ => self.check_covered(version),
        }
    }

    pub fn check_covered(&self, version: StoreVersion) -> Result<(), Refusal> {
        let excluded = self.state.version(version).map(|entry| &entry.excluded);
        match excluded.and_then(|excluded| self.context.holders.uncovered(excluded)) {
            Some(partition) => Err(Refusal::PartitionUncovered { version, partition }),
            None => Ok(()),
        }
    }

    /// Returns a version that nodes keep.
    fn kept(&self, version: StoreVersion) -> Result<&VersionEntry, Refusal> {
        let entry = self.state.version(version).ok_or_else(|| Refusal::UnknownVersion {
            version,
            known: self.state.versions.iter().map(|entry| entry.version).collect(),
        })?;
        if !entry.state.is_kept() {
            return Err(Refusal::VersionNotKept { version, state: entry.state.name() });
        }
        Ok(entry)
    }
}
