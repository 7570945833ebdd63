//! The options of a database process.

use kith_cluster::StartError;
use kith_net::server::{Addresses, FrontPage, connections::ConnectionSettings, security::Security};
use kith_wire::documents::{DOCUMENT_FORMAT, DatabaseDocument};
use std::{net::SocketAddr, path::PathBuf};

/// The options of a database process.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The id of the database, which live graphs name as their storage: `database:ID`.
    pub database: u32,
    /// The address for frames and gRPC. Port 0 means any free port.
    pub listen: SocketAddr,
    /// The address for `/metrics`, `/healthz` and `/readyz`.
    pub http: SocketAddr,
    /// The data directory, with one file per graph.
    pub data: PathBuf,
    /// The limits of its connections.
    pub connections: ConnectionSettings,
    /// The callers that may connect to it, and their rights.
    pub security: Security,
}

impl DatabaseOptions {
    /// Refuses addresses at which everybody could use the process without authentication.
    pub(super) fn check(&self) -> Result<(), StartError> {
        self.security.check_listen(self.listen)?;
        Ok(self.security.check_http(self.http)?)
    }

    /// Returns the requested addresses.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses { grpc: self.listen, http: self.http, resp: None, gremlin: None }
    }

    /// Returns the front page of its HTTP port.
    pub(super) fn front_page(&self, at: Addresses) -> FrontPage {
        FrontPage {
            name: format!("database {}", self.database),
            does: "keeps the rows of live graphs",
            answers_clients: false,
            at,
        }
    }

    /// Returns its metadata document, once it listens on these addresses.
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
