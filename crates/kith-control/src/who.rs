//! Who asks for something, and what is known of them.

use kith_metadata::records::bounds::cut_who;
use kith_net::server::{
    Peer,
    security::{
        Asker,
        audit::{self, Refused},
    },
};
use kith_types::ErrorCode;
use kith_versions::Trust;
use std::net::SocketAddr;
use tonic::{Request, Status};

/// Who asks, and what is known of them.
#[derive(Clone, Debug)]
pub(crate) struct Who {
    /// As the file of rights calls them, else as they say, else where they ask from.
    pub name: String,
    pub standing: Trust,
    pub peer: Option<SocketAddr>,
}

impl Who {
    /// Whoever sent a request, in which they say that they are `claimed`.
    pub fn of<T>(request: &Request<T>, claimed: &str) -> Self {
        let peer = request.extensions().get::<Peer>().and_then(|peer| peer.addr);
        if let Some(Asker { name, is_administrator }) = request.extensions().get::<Asker>() {
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

    /// One line in the audit log, if this is the answer to whoever asked for what is somebody else's.
    pub fn note_denied(&self, method: &str, store: &str, status: &Status) {
        let code = kith_wire::code_of(status);
        if code != ErrorCode::PermissionDenied {
            return;
        }
        audit::refused(&Refused {
            subject: &self.name,
            method,
            store,
            code,
            reason: status.message(),
            peer: self.peer,
        });
    }
}
