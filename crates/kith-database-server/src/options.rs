//! How a database process is run.

use kith_net::server::{Addresses, FrontPage, connections::ConnectionSettings, security::Security};
use kith_process::StartError;
use kith_wire::documents::{DOCUMENT_FORMAT, DatabaseDocument};
use std::{net::SocketAddr, path::PathBuf};

/// How a database process is run.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Its id. Live graphs name it as their storage: `database:ID`.
    pub database: u32,
    /// Where it listens for gRPC; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where it serves `/metrics` and friends.
    pub http: SocketAddr,
    /// Its data directory: one file per graph.
    pub data: PathBuf,
    /// How its connections are bounded.
    pub connections: ConnectionSettings,
    /// Who may speak to it.
    pub security: Security,
}

impl DatabaseOptions {
    /// Refuses listeners that would give what they serve to everybody.
    pub(super) fn check(&self) -> Result<(), StartError> {
        self.security.check_listen(self.listen)?;
        Ok(self.security.check_http(self.http)?)
    }

    /// Where it asks to listen.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses { grpc: self.listen, http: self.http, resp: None }
    }

    /// What its HTTP port says about it.
    pub(super) fn front_page(&self, at: Addresses) -> FrontPage {
        FrontPage {
            name: format!("database {}", self.database),
            does: "keeps the rows of live graphs",
            answers_clients: false,
            at,
        }
    }

    /// What it says about itself in the metadata, once it listens `at` these addresses.
    pub(super) fn document(&self, at: &Addresses) -> DatabaseDocument {
        DatabaseDocument {
            format: DOCUMENT_FORMAT,
            database: self.database,
            addr: at.grpc.to_string(),
            http: at.http.to_string(),
            pid: std::process::id(),
        }
    }
}
