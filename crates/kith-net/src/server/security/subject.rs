//! A subject of the file of `--access`, and what it may do.

use super::need::{Need, Right};
use kith_types::ErrorCode;
use std::sync::Arc;
use tonic::Status;

/// One of those who may do something.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// What they are called, in logs and histories.
    pub name: Arc<str>,
    /// Stores by right: names, or beginnings of names with `*` after them.
    pub read: Vec<String>,
    pub write: Vec<String>,
    pub admin: Vec<String>,
    /// A node or router.
    pub cluster: bool,
}

/// Who asks, as the file of rights says: in the extensions of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// What they are called.
    pub name: Arc<str>,
    /// Whether they look after all stores.
    pub is_administrator: bool,
}

impl Subject {
    /// Lets them, or says what they lack.
    ///
    /// # Errors
    /// `permission_denied`.
    pub fn check(&self, need: &Need) -> Result<(), Status> {
        if self.may(need) {
            return Ok(());
        }
        let message = format!("{} may not {need}", self.name);
        let help = "ask the administrator of the cluster: rights are in the file of --access";
        Err(kith_wire::status(ErrorCode::PermissionDenied, message, help))
    }

    /// As whoever is asked something knows them.
    pub fn asker(&self) -> Asker {
        Asker { name: Arc::clone(&self.name), is_administrator: self.may(&Need::Administrator) }
    }

    fn may(&self, need: &Need) -> bool {
        let any = |patterns: &[String], store: &str| patterns.iter().any(|pattern| matches(pattern, store));
        match need {
            _ if self.cluster => true,
            Need::Known => true,
            Need::Cluster => false,
            Need::Administrator => self.admin.iter().any(|pattern| pattern == "*"),
            Need::Store(right, store) => {
                any(&self.admin, store)
                    || (*right == Right::Read && any(&self.read, store))
                    || (*right == Right::Write && any(&self.write, store))
            }
        }
    }
}

/// Whether a text is the name of a store, or the beginning of one and `*`.
pub fn is_pattern(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    !text.is_empty() && !name.contains('*')
}

/// Whether a pattern is the name of this store, or its beginning.
pub fn matches(pattern: &str, store: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => store.starts_with(beginning),
        None => pattern == store,
    }
}
