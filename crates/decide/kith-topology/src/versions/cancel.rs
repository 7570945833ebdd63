//! The pushes that are over: how they ended, and which of them were cancelled before they began.

use crate::versions::{CANCELLED_MAX, CancelledPush, HistoryEntry, Outcome, PushId, Refusal, StoreState};

impl StoreState {
    /// Returns the last end of the push with this id, as far as the history goes back. A failed push may have been repeated
    /// with its id.
    pub(crate) fn end_of(&self, push: &PushId) -> Option<&HistoryEntry> {
        self.history.iter().rev().find(|entry| entry.push.as_ref() == Some(push))
    }

    /// Returns the cancellation of a push that was unknown at the time.
    pub(crate) fn cancelled_before(&self, push: &PushId) -> Option<&CancelledPush> {
        self.cancelled.iter().find(|cancelled| cancelled.push == *push)
    }

    /// Remembers the cancellation of a push that is unknown, unless it is remembered already.
    pub(crate) fn remember_cancelled(&mut self, push: PushId, who: &str) {
        if self.cancelled_before(&push).is_some() {
            return;
        }
        if self.cancelled.len() == CANCELLED_MAX {
            self.cancelled.pop_front();
        }
        self.cancelled.push_back(CancelledPush { push, who: who.to_owned() });
    }

    /// Returns why a push that is not running is refused.
    pub fn not_running(&self, push: &PushId) -> Refusal {
        if let Some(CancelledPush { push, who }) = self.cancelled_before(push) {
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
