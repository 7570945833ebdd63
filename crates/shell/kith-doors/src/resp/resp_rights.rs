//! The identity and rights of a Redis client. Refusals use the wording of Redis.

use crate::{self as doors, AuthError};
use kith_net::server::security::Need;
use kith_types::ErrorCode;
use kith_wire::resp::error_prefix;
use std::sync::Arc;
use tonic::Status;

/// A [`doors::CallerRights`] whose refusals are error replies of Redis.
#[derive(Clone, Debug)]
pub(super) struct RespRights(doors::CallerRights);

impl From<doors::CallerRights> for RespRights {
    fn from(rights: doors::CallerRights) -> Self {
        Self(rights)
    }
}

impl RespRights {
    /// A caller who may do everything.
    pub fn anybody() -> Self {
        Self(doors::CallerRights::anybody())
    }

    /// Checks that the caller may do something now.
    ///
    /// # Errors
    /// The error reply: `NOAUTH` if the caller has not authenticated, `NOPERM` if it lacks the right.
    pub fn check(&self, need: &Need) -> Result<(), String> {
        self.0.check(need).map_err(|status| reply(&status))
    }

    /// Checks that the caller may read a store now.
    ///
    /// # Errors
    /// As [`RespRights::check`].
    pub fn check_read(&self, store: &str) -> Result<(), String> {
        self.0.check_read(store).map_err(|status| reply(&status))
    }

    /// The caller's name in the access file, if there is one and the caller is in it.
    pub fn name(&self) -> Option<Arc<str>> {
        self.0.name()
    }

    /// Whether the caller has authenticated, or need not.
    pub fn is_known(&self) -> bool {
        self.0.is_known()
    }

    /// Authenticates the caller as the subject with this token, whose name is `user`.
    ///
    /// # Errors
    /// [`AuthError`]. The caller keeps its previous identity then.
    pub fn authenticate(&mut self, user: &[u8], token: &[u8]) -> Result<(), AuthError> {
        self.0.authenticate(user, token)
    }

    /// Whether a token is compared with anything: otherwise everybody may do everything, or certificates alone count.
    pub fn must_prove(&self) -> bool {
        self.0.must_prove()
    }

    /// Gives the caller the identity back with which it connected.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

/// A refusal of the gate as an error reply. Clients decide by its first word what to do.
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
    use kith_net::server::security::{Caller, CallerIdentity, Gate, Right, testing::gate};
    use sha2::{Digest, Sha256};

    fn let_in(gate: Arc<Gate>, own: Caller) -> RespRights {
        doors::CallerRights::new(gate, own, "resp").into()
    }

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
        let mut rights = let_in(gate(folder.path(), Some(&access())), Caller::new(CallerIdentity::Nobody));
        assert!(!rights.is_known());
        assert_eq!(rights.check(&read("pages")).unwrap_err(), "NOAUTH Authentication required.");
        for (user, token) in [("default", "guess"), ("ops", "ads-token"), ("", "ads-token"), ("ads", "")] {
            let outcome = rights.authenticate(user.as_bytes(), token.as_bytes());
            assert_eq!(outcome, Err(AuthError::Wrong), "{user}");
            assert!(!rights.is_known());
        }
        for user in ["ads", "default"] {
            rights.authenticate(user.as_bytes(), b"ads-token").unwrap();
            assert_eq!(rights.name().as_deref(), Some("ads"));
            rights.check(&read("pages-2")).unwrap();
            let error = rights.check(&read("secrets")).unwrap_err();
            assert!(error.starts_with("NOPERM ads may not read store \"secrets\" (ask "), "{error}");
            // An authenticated client keeps its identity when it presents an unknown token.
            assert_eq!(rights.authenticate(b"default", b"guess"), Err(AuthError::Wrong));
            assert!(rights.is_known());
            rights.reset();
            assert!(!rights.is_known() && rights.name().is_none());
        }
    }

    #[test]
    fn a_certificate_needs_no_token_and_one_without_rights_learns_so() {
        let folder = tempfile::tempdir().unwrap();
        let gate = gate(folder.path(), Some(&access()));
        let certificate = |name: &str| Caller::new(CallerIdentity::Certificate([name.to_owned()].into()));
        let mut ops = let_in(Arc::clone(&gate), certificate("CN=ops"));
        ops.check(&read("secrets")).unwrap();
        assert_eq!(ops.name().as_deref(), Some("ops"));
        // From then on the token determines the identity, whether or not there is a certificate.
        ops.authenticate(b"ads", b"ads-token").unwrap();
        assert!(ops.check(&read("secrets")).is_err());
        ops.reset();
        ops.check(&read("secrets")).unwrap();
        let eve = let_in(gate, certificate("CN=eve"));
        let error = eve.check(&Need::Known).unwrap_err();
        assert!(error.starts_with("NOPERM the certificate of CN=eve has no rights ("), "{error}");
    }

    #[test]
    fn rights_that_are_taken_back_end_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let gate = gate(folder.path(), Some(&access()));
        let mut rights = let_in(Arc::clone(&gate), Caller::new(CallerIdentity::Nobody));
        rights.authenticate(b"ads", b"ads-token").unwrap();
        std::fs::write(folder.path().join("access.toml"), "").unwrap();
        gate.reload().unwrap();
        assert_eq!(rights.check(&read("pages")).unwrap_err(), "NOAUTH Authentication required.");
        assert_eq!(rights.name(), None);
    }

    #[test]
    fn without_rights_there_is_nothing_to_prove() {
        let folder = tempfile::tempdir().unwrap();
        let open = let_in(gate(folder.path(), None), Caller::new(CallerIdentity::Nobody));
        for mut rights in [RespRights::anybody(), open] {
            rights.check(&read("anything")).unwrap();
            assert!(rights.is_known());
            let outcome = rights.authenticate(b"default", b"x");
            assert_eq!(outcome, Err(AuthError::NothingToProve));
        }
    }
}
