//! Applies one command to a store: one transition.

use crate::versions::{
    Action, Command, Context, Effect, HistoryEntry, Outcome, Refusal, StoreState, Transition,
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
}
