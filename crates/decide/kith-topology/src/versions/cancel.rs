//! Cancels pushes, and freezes stores.

use crate::versions::{
    Action, CANCELLED_MAX, Cancelled, Frozen, HistoryEntry, Outcome, PushId, Refusal, StoreState,
    apply::Draft,
};

impl Draft<'_> {
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

    /// Freezes the store. A store that is already frozen stays as it is.
    pub fn freeze(&mut self) -> Result<(), Refusal> {
        self.check_keeper()?;
        if self.state.frozen.is_some() {
            return Ok(());
        }
        let who = self.context.who.to_owned();
        self.end_running(&format!("{who} froze the store"));
        self.state.frozen = Some(Frozen { who, since: self.context.now });
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
            Some(Frozen { who, .. }) => Err(Refusal::StoreFrozen { who: who.clone() }),
            None => Ok(()),
        }
    }
}

impl StoreState {
    /// Whether the push with this id is running.
    pub fn runs(&self, push: &PushId) -> bool {
        self.running.as_ref().is_some_and(|running| running.push == *push)
    }

    /// Returns the last end of the push with this id, as far as the history goes back. A failed push may have been repeated
    /// with its id.
    pub(crate) fn end_of(&self, push: &PushId) -> Option<&HistoryEntry> {
        self.history.iter().rev().find(|entry| entry.push.as_ref() == Some(push))
    }

    /// Returns the cancellation of a push that was unknown at the time.
    pub(crate) fn cancelled_before(&self, push: &PushId) -> Option<&Cancelled> {
        self.cancelled.iter().find(|cancelled| cancelled.push == *push)
    }

    fn remember_cancelled(&mut self, push: PushId, who: &str) {
        if self.cancelled_before(&push).is_some() {
            return;
        }
        if self.cancelled.len() == CANCELLED_MAX {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back(Cancelled { push, who: who.to_owned() });
    }

    /// Returns why a push that is not running is refused.
    pub fn not_running(&self, push: &PushId) -> Refusal {
        if let Some(Cancelled { push, who }) = self.cancelled_before(push) {
            return Refusal::PushCancelled { push: push.clone(), why: format!("{who} cancelled it") };
        }
        match self.end_of(push).map(|entry| &entry.outcome) {
            Some(Outcome::Cancelled(why)) => Refusal::PushCancelled { push: push.clone(), why: why.clone() },
            _ => Refusal::PushEnded { push: push.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::{Command, Context, Holders, Policy, Trust, UnixMillis};
    use kith_types::StoreVersion;

    #[test]
    fn made_up_ids_push_nothing_out_of_the_history_and_are_forgotten_in_turn() {
        let holders = Holders::default();
        let (now, standing) = (UnixMillis(7), Trust::Claimed);
        let context = Context { now, who: "ada", standing, holders: &holders, rebalance: None };
        let mut state = StoreState::new(Policy::default(), StoreVersion(0));
        state = state.apply(&Command::Freeze, &context).unwrap().state;
        state = state.apply(&Command::Thaw, &context).unwrap().state;
        let history = state.history.clone();
        for id in 0..1_000 {
            let cancel = Command::Cancel { push: Some(PushId(format!("p{id}"))) };
            state = state.apply(&cancel, &context).unwrap().state;
            let again = state.apply(&cancel, &context).unwrap().state;
            assert_eq!(again, state, "cancelled twice is cancelled once");
        }
        assert_eq!((&state.history, state.cancelled.len()), (&history, CANCELLED_MAX));
        let begin = |id: &str| Command::Begin {
            push: id.into(),
            coordinator: "router 0".to_owned(),
            version: None,
            missing_max: 0,
        };
        let refused = state.apply(&begin("p999"), &context).unwrap_err();
        assert_eq!(refused.to_string(), "p999 was cancelled: ada cancelled it");
        state.apply(&begin("p1"), &context).unwrap();
    }
}
