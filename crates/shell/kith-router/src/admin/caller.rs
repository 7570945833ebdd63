//! The caller of a request, and how far the caller's identity is proven.

use kith_cluster::metadata::records::bounds::cut_who;
use kith_net::server::{
    CallerConnection,
    security::{
        CallingSubject,
        audit::{self, RefusedCall},
    },
};
use kith_topology::versions::Trust;
use kith_types::ErrorCode;
use std::net::SocketAddr;
use tonic::{Request, Status};

/// The caller of a request, and how far the caller's identity is proven.
#[derive(Clone, Debug)]
pub(crate) struct AdminCaller {
    /// The name in the file of access rights; else the name that the caller claims; else the caller's address.
    pub name: String,
    pub standing: Trust,
    pub peer: Option<SocketAddr>,
}

impl AdminCaller {
    /// Returns the sender of a request, who claims the name `claimed`.
    pub fn of<T>(request: &Request<T>, claimed: &str) -> Self {
        let peer = request.extensions().get::<CallerConnection>().and_then(|peer| peer.addr);
        if let Some(CallingSubject { name, is_administrator, .. }) =
            request.extensions().get::<CallingSubject>()
        {
            let standing = if *is_administrator { Trust::Administrator } else { Trust::Proven };
            return Self { name: name.to_string(), standing, peer };
        }
        let name = match (claimed, peer) {
            ("", Some(addr)) => addr.to_string(),
            ("", None) => "somebody".to_owned(),
            _ => cut_who(claimed),
        };
        Self { name, standing: Trust::Claimed, peer }
    }

    /// Writes one line to the audit log if the status denies access to what belongs to another user.
    pub fn note_denied(&self, method: &str, store: &str, status: &Status) {
        self.note(method, store, status, ErrorCode::PermissionDenied);
    }

    /// Writes one line to the audit log if the status has this code.
    pub fn note(&self, method: &str, store: &str, status: &Status, noted: ErrorCode) {
        let code = kith_wire::code_of(status);
        if code != noted {
            return;
        }
        audit::refused(&RefusedCall {
            subject: &self.name,
            method,
            store,
            code,
            reason: status.message(),
            peer: self.peer,
        });
    }
}
