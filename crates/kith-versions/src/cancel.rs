//! Ending pushes before they serve, and keeping them out.

use crate::{Action, Frozen, HistoryEntry, Outcome, PushId, Refusal, StoreState, apply::Draft};
use kith_types::StoreVersion;

impl Draft<'_> {
    /// Ends the push under way, or `push`. A push that does not run is noted, so that it is refused if it begins later.
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
                let (who, before) = (self.context.who.to_owned(), self.state.current_version());
                let outcome = Outcome::Cancelled(format!("{who} cancelled it"));
                self.note_as(Action::Push, StoreVersion(0), before, who, Some(push), outcome);
                Ok(())
            }
        }
    }

    /// Ends the push under way, if there is one.
    pub fn end_running(&mut self, why: &str) {
        if let Some(running) = self.state.running.take() {
            self.end(running, Outcome::Cancelled(why.to_owned()));
        }
    }

    /// Frozen again, a store stays as it is.
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
    /// Whether the push of this id is under way.
    pub fn runs(&self, push: &PushId) -> bool {
        self.running.as_ref().is_some_and(|running| running.push == *push)
    }

    /// How the push of this id ended, as far as the history goes back: an id that failed may have been used again.
    pub(crate) fn end_of(&self, push: &PushId) -> Option<&HistoryEntry> {
        self.history.iter().rev().find(|entry| entry.push.as_ref() == Some(push))
    }

    /// Why a push that does not run is refused.
    pub fn not_running(&self, push: &PushId) -> Refusal {
        match self.end_of(push).map(|entry| &entry.outcome) {
            Some(Outcome::Cancelled(why)) => Refusal::PushCancelled { push: push.clone(), why: why.clone() },
            _ => Refusal::PushEnded { push: push.clone() },
        }
    }
}
