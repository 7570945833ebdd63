//! The peer of a connection and its rights, as the gate decides them.

use kith_net::server::security::{Caller, CallerIdentity, Gate, Need, Right};
use kith_query::Question;
use std::sync::Arc;
use tonic::Status;

/// The user name that clients send if they were given none.
pub const DEFAULT_USER: &[u8] = b"default";

/// The peer of a connection and its rights. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CallerRights {
    /// `None`: peers are not authenticated.
    gate: Option<Arc<Gate>>,
    /// The door, as the audit log calls it.
    door: &'static str,
    /// Their identity by the connection itself, for example by its certificate.
    own: Caller,
    /// Their identity by the token that they presented last.
    shown: Option<Caller>,
}

/// Why a token authenticates nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// This process has no access file, so there are no tokens to compare the token with.
    NothingToProve,
    /// No subject has the token, or its subject has another name.
    Wrong,
}

impl CallerRights {
    /// A peer that is not authenticated and may do everything.
    pub fn anybody() -> Self {
        Self { gate: None, door: "", own: Caller::new(CallerIdentity::Nobody), shown: None }
    }

    /// A peer that `gate` has admitted at `door`.
    pub fn new(gate: Arc<Gate>, own: Caller, door: &'static str) -> Self {
        Self { gate: Some(gate), door, own, shown: None }
    }

    /// Checks that they have the right `need` now; rights can change while they are connected. A refusal writes a line to the
    /// audit log.
    ///
    /// # Errors
    /// `unauthenticated` if they are unknown, `permission_denied` if they lack the right.
    pub fn check(&self, need: &Need) -> Result<(), Status> {
        let Some(gate) = &self.gate else { return Ok(()) };
        gate.admit(self.caller(), need, self.door).map(drop)
    }

    /// Checks that they may read a store or graph now.
    ///
    /// # Errors
    /// As [`CallerRights::check`].
    pub fn check_read(&self, store: &str) -> Result<(), Status> {
        // Most processes have no gate; then not even the name is copied.
        if self.gate.is_none() {
            return Ok(());
        }
        self.check(&Need::Store(Right::Read, store.to_owned()))
    }

    /// Checks that they may have this question answered now.
    ///
    /// # Errors
    /// As [`CallerRights::check`].
    pub fn check_question(&self, question: &Question) -> Result<(), Status> {
        match question {
            Question::Gremlin { graph, query, .. } => self.check(&Need::traversal(graph, query.writes)),
            Question::Write { graph, .. } => self.check(&Need::Store(Right::Write, graph.clone())),
            _ => self.check_read(question.of()),
        }
    }

    /// Their current name in the access file; `None` without such a file, or if they are unknown.
    pub fn name(&self) -> Option<Arc<str>> {
        let gate = self.gate.as_ref()?;
        Some(gate.check(self.caller(), &Need::Known).ok().flatten()?.name)
    }

    fn caller(&self) -> &Caller {
        self.shown.as_ref().unwrap_or(&self.own)
    }

    /// Whether they are authenticated; always true if this process does not authenticate peers.
    pub fn is_known(&self) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate.check(self.caller(), &Need::Known).is_ok())
    }

    /// Gives them the identity of the subject that has this token, if `user` is that subject's name or [`DEFAULT_USER`].
    ///
    /// # Errors
    /// [`AuthError`]; they then keep their identity.
    pub fn authenticate(&mut self, user: &[u8], token: &[u8]) -> Result<(), AuthError> {
        let gate = self.gate.as_ref().filter(|_| self.must_prove()).ok_or(AuthError::NothingToProve)?;
        let caller = gate.bearer(token, &self.own);
        let subject = gate.admit(&caller, &Need::Known, "AUTH").map_err(|_| AuthError::Wrong)?;
        if user != DEFAULT_USER && subject.is_none_or(|subject| subject.name.as_bytes() != user) {
            return Err(AuthError::Wrong);
        }
        self.shown = Some(caller);
        Ok(())
    }

    /// Whether there are tokens that theirs would be compared with.
    pub fn must_prove(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.has_rights())
    }

    /// Gives them back the identity that the connection itself has.
    pub fn reset(&mut self) {
        self.shown = None;
    }
}
