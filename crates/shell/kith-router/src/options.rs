//! The options with which a router is started.

use super::RouterSettings;
use kith_cluster::{StartError, private};
use kith_doors::DoorAt;
use kith_net::server::{Addresses, FrontPage, connections::ConnectionSettings, security::Security};
use kith_wire::documents::{DOCUMENT_FORMAT, RouterDocument};
use std::{net::SocketAddr, path::PathBuf};

/// The options with which a router is started.
#[derive(Clone, Debug)]
pub struct RouterOptions {
    /// The id of the router.
    pub router: u32,
    /// The address on which it listens for gRPC and frames; port 0 chooses a free port.
    pub listen: SocketAddr,
    /// The address on which it serves `/metrics` and the other HTTP paths.
    pub http: SocketAddr,
    /// The address on which it listens for Redis clients, if it does.
    pub resp: Option<SocketAddr>,
    /// The address on which it listens for Gremlin drivers, if it does.
    pub gremlin: Option<SocketAddr>,
    /// Further doors, which serve protocols of their own.
    pub doors: Vec<DoorAt>,
    /// The data directory, which holds its copy of the topology.
    pub data: PathBuf,
    /// The settings for queries, caches, admission and uploads.
    pub settings: RouterSettings,
    /// A file with the password for database servers that have no file of their own. `None` if the environment has the
    /// password, or none is needed.
    pub database_password_file: Option<PathBuf>,
    /// The limits on its connections.
    pub connections: ConnectionSettings,
    /// Its certificate, the authentication of its callers, and their rights.
    pub security: Security,
}

impl RouterOptions {
    /// Checks that the addresses may be listened on, and creates the data directory.
    pub(super) fn check(&self) -> Result<(), StartError> {
        let doors = self.doors.iter().map(|(addr, _)| *addr);
        self.security.check_addresses(&self.addresses(), doors)?;
        std::fs::create_dir_all(&self.data)
            .map_err(|source| StartError::Write { path: self.data.clone(), source })?;
        private::close(&self.data);
        Ok(())
    }

    /// The addresses on which it is asked to listen.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses { grpc: self.listen, http: self.http, resp: self.resp, gremlin: self.gremlin }
    }

    /// The content of its front page.
    pub(super) fn front_page(&self, at: Addresses) -> FrontPage {
        FrontPage {
            name: format!("router {}", self.router),
            does: "answers queries of clients",
            answers_clients: true,
            at,
        }
    }

    /// Its document in the metadata, once it listens at these addresses.
    pub(super) fn document(&self, at: &Addresses) -> RouterDocument {
        RouterDocument {
            format: DOCUMENT_FORMAT,
            router: self.router,
            addr: at.grpc.to_string(),
            http: at.http.to_string(),
            resp: at.resp_text(),
            gremlin: at.gremlin_text(),
            pid: std::process::id(),
        }
    }
}
