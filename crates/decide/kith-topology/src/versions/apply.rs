//! Applies one command to a store: one transition.

use crate::versions::{
    Action, Command, Context, Effect, FreezeRecord, HistoryEntry, Outcome, Refusal, StoreState, Transition,
    retain::Retention,
};
use kith_types::StoreVersion;

/// A transition that is being computed.
pub(crate) struct Draft<'a> {
    pub state: StoreState,
    pub effects: Vec<Effect>,
    pub context: &'a Context<'a>,
}

impl StoreState {
    /// Returns the transition that `command` causes. The state itself is unchanged: the caller writes the new one on
    /// condition that the old one has not changed, and tries again if it has.
    ///
    /// # Errors
    /// [`Refusal`]; nothing may be changed then.
    pub fn apply(&self, command: &Command, context: &Context<'_>) -> Result<Transition, Refusal> {
        let mut draft = Draft { state: self.clone(), effects: Vec::new(), context };
        match command {
            Command::Begin { push, coordinator, version, missing_max } => {
                draft.begin(push, coordinator, *version, *missing_max)?;
            }
            Command::Offer { push, records, bytes, force } => draft.offer(push, *records, *bytes, *force)?,
            Command::Ready { push, node } => draft.ready(push, *node)?,
            Command::NodeFailed { push, node, reason } => draft.node_failed(push, *node, reason)?,
            Command::Flip { push } => draft.flip(push)?,
            Command::Abort { push, reason } => draft.abort(push, reason)?,
            Command::Cancel { push } => draft.cancel(push.as_ref())?,
            Command::Freeze => draft.freeze()?,
            Command::Thaw => draft.thaw()?,
            Command::Recover { push } => draft.recover(push)?,
            Command::Swap { to, force } => draft.swap(*to, *force)?,
            Command::Rollback { to, force } => draft.rollback(*to, *force)?,
            Command::Hold { version } => draft.hold(*version, true)?,
            Command::Release { version } => draft.hold(*version, false)?,
            Command::Block { version } => draft.block(*version, true)?,
            Command::Unblock { version } => draft.block(*version, false)?,
            Command::Repaired { version, node } => draft.repaired(*version, *node)?,
            Command::Define { policy } => {
                draft.check_keeper()?;
                draft.state.policy = policy.clone();
                draft.note(Action::Define, draft.state.current_version());
            }
        }
        draft.clean();
        Ok(Transition { state: draft.state, effects: draft.effects })
    }
}

impl Draft<'_> {
    /// Adds an entry to the history for something that is done now.
    pub fn note(&mut self, action: Action, version: StoreVersion) {
        self.state.record(HistoryEntry {
            at: self.context.now,
            who: self.context.who.to_owned(),
            action,
            version,
            before: self.state.current_version(),
            push: None,
            outcome: Outcome::Done,
        });
    }

    /// Drops what is beyond the limits. This runs with every command, so that nothing depends on a separate clean-up.
    fn clean(&mut self) {
        let retain = self.state.policy.retain as usize;
        let dropped = Retention { versions: &mut self.state.versions, retain }.remove();
        self.effects.extend(dropped.into_iter().map(|version| Effect::Drop { version }));
    }

    pub fn check_keeper(&self) -> Result<(), Refusal> {
        self.state.policy.guards.check_keeper(self.context.who, self.context.standing)
    }

    pub fn check_pusher(&self) -> Result<(), Refusal> {
        self.state.policy.guards.check_pusher(self.context.who, self.context.standing)
    }

    /// Freezes the store. A store that is already frozen stays as it is.
    pub fn freeze(&mut self) -> Result<(), Refusal> {
        self.check_keeper()?;
        if self.state.frozen.is_some() {
            return Ok(());
        }
        let who = self.context.who.to_owned();
        self.end_running(&format!("{who} froze the store"));
        self.state.frozen = Some(FreezeRecord { who, since: self.context.now });
        self.note(Action::Freeze, self.state.current_version());
        Ok(())
    }

    pub fn thaw(&mut self) -> Result<(), Refusal> {
        self.check_keeper()?;
        if self.state.frozen.take().is_some() {
            self.note(Action::Thaw, self.state.current_version());
        }
        Ok(())
    }

    pub fn check_thawed(&self) -> Result<(), Refusal> {
        match &self.state.frozen {
            Some(FreezeRecord { who, .. }) => Err(Refusal::StoreFrozen { who: who.clone() }),
            None => Ok(()),
        }
    }
}
