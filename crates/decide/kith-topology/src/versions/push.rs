//! A push from its beginning to its flip, its failure or its cancellation. Before the flip, nothing that is served has changed.

use crate::versions::{
    Action, Effect, HistoryEntry, Outcome, PushId, Refusal, RunningPush, VersionEntry, VersionState,
    apply::Draft, command::Rebalance, guards::OfferedSize, number::Numbering,
};
use kith_types::{NodeId, StoreVersion};
use std::collections::BTreeSet;

impl Draft<'_> {
    pub fn begin(
        &mut self,
        push: &PushId,
        coordinator: &str,
        version: Option<StoreVersion>,
        missing_max: u32,
    ) -> Result<(), Refusal> {
        if self.has_begun(push, coordinator)? {
            return Ok(());
        }
        self.check_not_over(push)?;
        self.check_thawed()?;
        if let Some(rebalance) = self.context.rebalance {
            let Rebalance { id, is_stopped } = rebalance;
            return Err(Refusal::RebalanceRunning { rebalance: id.to_owned(), is_stopped });
        }
        self.check_pusher()?;
        let numbering = Numbering { last: self.state.version_last, now: self.context.now };
        let version = numbering.number(version)?;
        self.state.version_last = version;
        self.state.versions.push(VersionEntry {
            version,
            state: VersionState::Fetching,
            records: 0,
            bytes: 0,
            pushed_at: self.context.now,
            held: false,
            excluded: BTreeSet::new(),
        });
        self.state.running = Some(RunningPush {
            push: push.clone(),
            version,
            who: self.context.who.to_owned(),
            coordinator: coordinator.to_owned(),
            since: self.context.now,
            missing_max,
            offered: false,
            ready: BTreeSet::new(),
        });
        Ok(())
    }

    /// Whether the push has already begun and its coordinator repeats the request.
    ///
    /// # Errors
    /// If another push is running, or another coordinator runs this one.
    fn has_begun(&self, push: &PushId, coordinator: &str) -> Result<bool, Refusal> {
        let Some(running) = &self.state.running else { return Ok(false) };
        if running.push == *push && running.coordinator == coordinator {
            return Ok(true);
        }
        let (push, version, who) = (running.push.clone(), running.version, running.who.clone());
        Err(Refusal::PushRunning { push, version, who })
    }

    /// Refuses a push that is over. A failed push may begin again.
    fn check_not_over(&self, push: &PushId) -> Result<(), Refusal> {
        match self.state.end_of(push).map(|entry| (entry.version, &entry.outcome)) {
            Some((version, Outcome::Done)) => Err(Refusal::AlreadyPushed { push: push.clone(), version }),
            Some((_, Outcome::Cancelled(_))) => Err(self.state.not_running(push)),
            Some((_, Outcome::Failed(_))) | None => match self.state.cancelled_before(push) {
                Some(_) => Err(self.state.not_running(push)),
                None => Ok(()),
            },
        }
    }

    pub fn offer(&mut self, push: &PushId, records: u64, bytes: u64, force: bool) -> Result<(), Refusal> {
        let version = self.running(push)?.version;
        if !force {
            OfferedSize { records, bytes }.check(&self.state)?;
        }
        let nodes = self.context.holders.nodes();
        if let Some(entry) = self.state.version_mut(version) {
            (entry.records, entry.bytes) = (records, bytes);
        }
        self.running_mut(push)?.offered = true;
        self.effects.push(Effect::Prepare { version, nodes });
        Ok(())
    }

    pub fn ready(&mut self, push: &PushId, node: NodeId) -> Result<(), Refusal> {
        let version = self.running(push)?.version;
        self.running_mut(push)?.ready.insert(node);
        if let Some(entry) = self.state.version_mut(version) {
            entry.excluded.remove(&node);
        }
        Ok(())
    }

    /// Leaves a node out if the push allows one more and every partition keeps a replica; otherwise the push fails. Nodes in
    /// groups that are taken out do not count.
    pub fn node_failed(&mut self, push: &PushId, node: NodeId, reason: &str) -> Result<(), Refusal> {
        let (version, missing_max) = (self.running(push)?.version, self.running(push)?.missing_max);
        let holders = self.context.holders;
        let mut excluded =
            self.state.version(version).map(|entry| entry.excluded.clone()).unwrap_or_default();
        excluded.insert(node);
        if holders.missed(&excluded) <= missing_max as usize && holders.uncovered(&excluded).is_none() {
            self.running_mut(push)?.ready.remove(&node);
            if let Some(entry) = self.state.version_mut(version) {
                entry.excluded = excluded;
            }
            return Ok(());
        }
        self.abort(push, reason)
    }

    pub fn flip(&mut self, push: &PushId) -> Result<(), Refusal> {
        let running = self.running(push)?.clone();
        let version = running.version;
        if !running.offered {
            return Err(Refusal::NotOffered { push: push.clone() });
        }
        let entry = self.state.version(version).ok_or(Refusal::PushEnded { push: push.clone() })?;
        let mut missing = self.context.holders.nodes();
        missing.retain(|node| !running.ready.contains(node) && !entry.excluded.contains(node));
        if !missing.is_empty() {
            return Err(Refusal::NotPrepared { version, nodes: missing.into_iter().collect() });
        }
        self.check_covered(version)?;
        let before = self.state.current_version();
        self.serve(version, VersionState::Retained);
        self.state.running = None;
        self.note_end(running, before, Outcome::Done);
        Ok(())
    }

    pub fn abort(&mut self, push: &PushId, reason: &str) -> Result<(), Refusal> {
        let running = self.running(push)?.clone();
        self.state.running = None;
        self.end(running, Outcome::Failed(reason.to_owned()));
        Ok(())
    }

    /// Records how a push that does not serve ended, and drops its version.
    pub fn end(&mut self, running: RunningPush, outcome: Outcome) {
        if let Some(entry) = self.state.version_mut(running.version) {
            entry.state = VersionState::Failed;
            entry.held = false;
            entry.excluded.clear();
        }
        self.effects.push(Effect::Drop { version: running.version });
        let before = self.state.current_version();
        self.note_end(running, before, outcome);
    }

    /// Adds the end of a push to the history. `before` is the version that was served until then.
    fn note_end(&mut self, running: RunningPush, before: StoreVersion, outcome: Outcome) {
        let RunningPush { push, version, who, .. } = running;
        let (at, action, push) = (self.context.now, Action::Push, Some(push));
        self.state.record(HistoryEntry { at, who, action, version, before, push, outcome });
    }

    /// Takes back a push whose coordinator is gone. A flip is one write, so a push that is still running has not flipped,
    /// and only its coordinator knew which nodes were ready.
    pub fn recover(&mut self, push: &PushId) -> Result<(), Refusal> {
        let coordinator = self.running(push)?.coordinator.clone();
        self.abort(push, &format!("{coordinator} went away; {} took the push back", self.context.who))
    }

    /// Cancels the running push, or `push`. If that push is not running, it is remembered, so that it is refused if it
    /// begins soon. This adds no entry to the history, because otherwise made-up ids could displace real entries.
    pub fn cancel(&mut self, push: Option<&PushId>) -> Result<(), Refusal> {
        let running = self.state.running.as_ref().map(|running| running.push.clone());
        let push = match (push, running) {
            (None, None) => return Err(Refusal::NoPush),
            (Some(push), running) if running.as_ref() != Some(push) => push.clone(),
            (_, _) => {
                self.end_running(&format!("{} cancelled it", self.context.who));
                return Ok(());
            }
        };
        match self.state.end_of(&push).map(|entry| (entry.version, &entry.outcome)) {
            Some((version, Outcome::Done)) => Err(Refusal::PushServed { push, version }),
            Some((_, Outcome::Cancelled(_))) => Ok(()),
            Some((_, Outcome::Failed(_))) | None => {
                self.state.remember_cancelled(push, self.context.who);
                Ok(())
            }
        }
    }

    /// Ends the running push, if there is one.
    pub fn end_running(&mut self, why: &str) {
        if let Some(running) = self.state.running.take() {
            self.end(running, Outcome::Cancelled(why.to_owned()));
        }
    }

    fn running(&self, push: &PushId) -> Result<&RunningPush, Refusal> {
        let running = self.state.running.as_ref().filter(|running| running.push == *push);
        running.ok_or_else(|| self.state.not_running(push))
    }

    fn running_mut(&mut self, push: &PushId) -> Result<&mut RunningPush, Refusal> {
        self.running(push)?;
        self.state.running.as_mut().ok_or_else(|| Refusal::PushEnded { push: push.clone() })
    }
}
