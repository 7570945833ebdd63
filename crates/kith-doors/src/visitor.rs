//! Who asks on a connection, and what they may: the decisions of the gate.

use kith_net::server::security::{Caller, Gate, Identity, Need, Right};
use std::sync::Arc;
use tonic::Status;

/// The user that clients name who were told of none.
pub const DEFAULT_USER: &[u8] = b"default";

/// The peer of a connection, and what it may do. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// `None`: nobody asks who they are.
    gate: Option<Arc<Gate>>,
    /// The door, as the audit log calls it.
    door: &'static str,
    /// Who they are by the connection itself.
    own: Caller,
    /// Who they are by the token that they showed last.
    shown: Option<Caller>,
}

/// Why a token makes nobody known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthError {
    /// It is not written down who may do what: there is nothing to compare with.
    NothingToProve,
    /// Nobody has it, or somebody of another name.
    Wrong,
}

impl Visitor {
    /// One who may do everything, whoever they are.
    pub fn anybody() -> Self {
        Self { gate: None, door: "", own: Caller::new(Identity::Nobody), shown: None }
    }

    /// One whom `gate` has let in by `door`.
    pub fn new(gate: Arc<Gate>, own: Caller, door: &'static str) -> Self {
        Self { gate: Some(gate), door, own, shown: None }
    }

    /// Lets them do something now; rights can change while they are connected. A refusal is a line of the audit log.
    ///
    /// # Errors
    /// `unauthenticated` if nobody knows them, `permission_denied` if they lack the right.
    pub fn check(&self, need: &Need) -> Result<(), Status> {
        let Some(gate) = &self.gate else { return Ok(()) };
        gate.admit(self.caller(), need, self.door).map(drop)
    }

    /// Lets them read a store or graph now.
    ///
    /// # Errors
    /// As [`Visitor::check`].
    pub fn check_read(&self, store: &str) -> Result<(), Status> {
        // Most have no gate: for them not even the name is copied.
        if self.gate.is_none() {
            return Ok(());
        }
        self.check(&Need::Store(Right::Read, store.to_owned()))
    }

    /// What they are called, now, where that is written down and they are known.
    pub fn name(&self) -> Option<Arc<str>> {
        let gate = self.gate.as_ref()?;
        Some(gate.check(self.caller(), &Need::Known).ok().flatten()?.name)
    }

    fn caller(&self) -> &Caller {
        self.shown.as_ref().unwrap_or(&self.own)
    }

    /// Whether they are somebody, as far as that matters.
    pub fn is_known(&self) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate.check(self.caller(), &Need::Known).is_ok())
    }

    /// Takes them for whoever has this token, who is called `user`; [`DEFAULT_USER`] is anybody's name.
    ///
    /// # Errors
    /// [`AuthError`]: they stay who they were.
    pub fn authenticate(&mut self, user: &[u8], token: &[u8]) -> Result<(), AuthError> {
        let gate = self.gate.as_ref().filter(|gate| gate.has_rights()).ok_or(AuthError::NothingToProve)?;
        let caller = gate.bearer(token, &self.own);
        let asker = gate.admit(&caller, &Need::Known, "AUTH").map_err(|_| AuthError::Wrong)?;
        if user != DEFAULT_USER && asker.is_none_or(|asker| asker.name.as_bytes() != user) {
            return Err(AuthError::Wrong);
        }
        self.shown = Some(caller);
        Ok(())
    }

    /// Takes them for whoever they came as.
    pub fn reset(&mut self) {
        self.shown = None;
    }
}
