//! A subject of the access file, and its rights.

use super::need::{Need, Right};
use kith_types::ErrorCode;
use std::sync::Arc;
use tonic::Status;

/// A subject with its rights.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Its name in logs and histories.
    pub name: Arc<str>,
    /// The stores that it may read: names, or prefixes followed by `*`. The lists of the other rights have the same form.
    pub read: Vec<String>,
    pub write: Vec<String>,
    pub admin: Vec<String>,
    /// Whether it is a node or router of the cluster, which may do everything.
    pub cluster: bool,
}

/// The subject that sends a request, as the extensions of the request carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallingSubject {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it administers all stores.
    pub is_administrator: bool,
    /// Whether it is a process of the cluster, which sends requests on behalf of others.
    pub is_cluster: bool,
}

impl Subject {
    /// Checks that the subject may do what `need` says.
    ///
    /// # Errors
    /// `permission_denied` with what it may not do.
    pub fn check(&self, need: &Need) -> Result<(), Status> {
        if self.may(need) {
            return Ok(());
        }
        let message = format!("{} may not {need}", self.name);
        let help = "ask the administrator of the cluster: rights are in the file of --access";
        Err(kith_wire::status(ErrorCode::PermissionDenied, message, help))
    }

    /// The subject as the extensions of its requests carry it.
    pub fn subject(&self) -> CallingSubject {
        CallingSubject {
            name: Arc::clone(&self.name),
            is_administrator: self.may(&Need::Administrator),
            is_cluster: self.cluster,
        }
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
                    || match right {
                        Right::Read => any(&self.read, store),
                        Right::Write => any(&self.write, store),
                        Right::ReadAndWrite => any(&self.read, store) && any(&self.write, store),
                        Right::Admin => false,
                    }
            }
        }
    }
}

/// Whether a text is a store's name, or a prefix followed by `*`.
pub fn is_pattern(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    !text.is_empty() && !name.contains('*')
}

/// Whether a pattern matches the name of a store.
pub fn matches(pattern: &str, store: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => store.starts_with(beginning),
        None => pattern == store,
    }
}
