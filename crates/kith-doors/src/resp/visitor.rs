//! Who asks on a connection, and what they may: the decisions of the gate, in the words of Redis.

use kith_net::server::security::{Caller, Gate, Identity, Need, Right};
use kith_types::ErrorCode;
use kith_wire::resp::error_prefix;
use std::sync::Arc;
use tonic::Status;

/// The user that clients name who were told of none.
pub(super) const DEFAULT_USER: &[u8] = b"default";

/// Whoever is at the other end of a connection. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    /// `None`: nobody asks who they are.
    gate: Option<Arc<Gate>>,
    /// Who they are by the connection itself.
    own: Caller,
    /// Who they are by the token that they showed last.
    shown: Option<Caller>,
}

/// Why a token makes nobody known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthError {
    /// It is not written down who may do what: there is nothing to compare with.
    NothingToProve,
    /// Nobody has it, or somebody of another name.
    Wrong,
}

impl AuthError {
    /// The reply.
    pub fn reply(self) -> String {
        match self {
            AuthError::NothingToProve => "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
            AuthError::Wrong => "WRONGPASS invalid username-password pair or user is disabled.",
        }
        .to_owned()
    }
}

impl Visitor {
    /// One who may do everything, whoever they are.
    pub fn anybody() -> Self {
        Self { gate: None, own: Caller::new(Identity::Nobody), shown: None }
    }

    /// One whom `gate` has let in.
    pub fn new(gate: Arc<Gate>, own: Caller) -> Self {
        Self { gate: Some(gate), own, shown: None }
    }

    /// Lets them do something now; rights can change while they are connected.
    ///
    /// # Errors
    /// The reply: `NOAUTH` if nobody knows them, `NOPERM` if they lack the right.
    pub fn check(&self, need: &Need) -> Result<(), String> {
        let Some(gate) = &self.gate else { return Ok(()) };
        gate.admit(self.caller(), need, "resp").map(drop).map_err(|status| reply(&status))
    }

    /// Lets them read a store now.
    ///
    /// # Errors
    /// As [`Visitor::check`].
    pub fn check_read(&self, store: &str) -> Result<(), String> {
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

    /// Takes them for whoever has this token, who is called `user`.
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

/// What the gate says, as Redis does: the kind in front tells clients what to do.
fn reply(status: &Status) -> String {
    let help = kith_wire::detail_of(status).help;
    let code = kith_wire::code_of(status);
    let (prefix, message) = (error_prefix(code), status.message());
    match code {
        ErrorCode::Unauthenticated => format!("{prefix} Authentication required."),
        ErrorCode::PermissionDenied => format!("{prefix} {message} ({help})"),
        code => format!("{prefix} {code}: {message} ({help})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_net::server::security::testing::gate;
    use sha2::{Digest, Sha256};

    fn hash(token: &str) -> String {
        Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn access() -> String {
        format!(
            "[[subject]]\nname = \"ads\"\ntoken-sha256 = [\"{}\"]\nread = [\"pages*\"]\n\
             [[subject]]\nname = \"ops\"\ncertificate = [\"CN=ops\"]\nadmin = [\"*\"]\n",
            hash("ads-token")
        )
    }

    fn read(store: &str) -> Need {
        Need::Store(Right::Read, store.to_owned())
    }

    #[test]
    fn a_token_makes_one_known_by_its_name_or_by_default() {
        let folder = tempfile::tempdir().unwrap();
        let mut visitor = Visitor::new(gate(folder.path(), Some(&access())), Caller::new(Identity::Nobody));
        assert!(!visitor.is_known());
        assert_eq!(visitor.check(&read("pages")).unwrap_err(), "NOAUTH Authentication required.");
        for (user, token) in [("default", "guess"), ("ops", "ads-token"), ("", "ads-token"), ("ads", "")] {
            let told = visitor.authenticate(user.as_bytes(), token.as_bytes());
            assert_eq!(told, Err(AuthError::Wrong), "{user}");
            assert!(!visitor.is_known());
        }
        for user in ["ads", "default"] {
            visitor.authenticate(user.as_bytes(), b"ads-token").unwrap();
            assert_eq!(visitor.name().as_deref(), Some("ads"));
            visitor.check(&read("pages-2")).unwrap();
            let told = visitor.check(&read("secrets")).unwrap_err();
            assert!(told.starts_with("NOPERM ads may not read store \"secrets\" (ask "), "{told}");
            // One who is known stays so when they show what nobody knows.
            assert_eq!(visitor.authenticate(b"default", b"guess"), Err(AuthError::Wrong));
            assert!(visitor.is_known());
            visitor.reset();
            assert!(!visitor.is_known() && visitor.name().is_none());
        }
    }

    #[test]
    fn a_certificate_needs_no_token_and_one_without_rights_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let gate = gate(folder.path(), Some(&access()));
        let certificate = |name: &str| Caller::new(Identity::Certificate([name.to_owned()].into()));
        let mut ops = Visitor::new(Arc::clone(&gate), certificate("CN=ops"));
        ops.check(&read("secrets")).unwrap();
        assert_eq!(ops.name().as_deref(), Some("ops"));
        // A token says who they are from then on, certificate or not.
        ops.authenticate(b"ads", b"ads-token").unwrap();
        assert!(ops.check(&read("secrets")).is_err());
        ops.reset();
        ops.check(&read("secrets")).unwrap();
        let eve = Visitor::new(gate, certificate("CN=eve"));
        let told = eve.check(&Need::Known).unwrap_err();
        assert!(told.starts_with("NOPERM the certificate of CN=eve has no rights ("), "{told}");
    }

    #[test]
    fn rights_that_are_taken_back_end_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let gate = gate(folder.path(), Some(&access()));
        let mut visitor = Visitor::new(Arc::clone(&gate), Caller::new(Identity::Nobody));
        visitor.authenticate(b"ads", b"ads-token").unwrap();
        std::fs::write(folder.path().join("access.toml"), "").unwrap();
        gate.reload().unwrap();
        assert_eq!(visitor.check(&read("pages")).unwrap_err(), "NOAUTH Authentication required.");
        assert_eq!(visitor.name(), None);
    }

    #[test]
    fn without_rights_there_is_nothing_to_prove() {
        let folder = tempfile::tempdir().unwrap();
        let open = Visitor::new(gate(folder.path(), None), Caller::new(Identity::Nobody));
        for mut visitor in [Visitor::anybody(), open] {
            visitor.check(&read("anything")).unwrap();
            assert!(visitor.is_known());
            let told = visitor.authenticate(b"default", b"x");
            assert_eq!(told, Err(AuthError::NothingToProve));
        }
    }
}
