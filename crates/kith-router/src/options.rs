//! How a router is run.

use super::RouterSettings;
use kith_doors::DoorAt;
use kith_net::server::{Addresses, FrontPage, connections::ConnectionSettings, security::Security};
use kith_process::{StartError, private};
use kith_wire::documents::{DOCUMENT_FORMAT, RouterDocument};
use std::{net::SocketAddr, path::PathBuf};

/// How a router is run.
#[derive(Clone, Debug)]
pub struct RouterOptions {
    /// Its id.
    pub router: u32,
    /// Where it listens for gRPC and frames; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where it serves `/metrics` and friends.
    pub http: SocketAddr,
    /// Where it listens for Redis clients; `None`: nowhere.
    pub resp: Option<SocketAddr>,
    /// Further doors, which speak protocols of their own.
    pub doors: Vec<DoorAt>,
    /// Where it keeps its copy of the topology.
    pub data: PathBuf,
    /// How it answers.
    pub settings: RouterSettings,
    /// A file with the password for servers that hold live graphs; `None`: the environment has it, or they need none.
    pub database_password_file: Option<PathBuf>,
    /// How its connections are bounded.
    pub connections: ConnectionSettings,
    /// Who may speak to it, and who it is to others.
    pub security: Security,
}

impl RouterOptions {
    /// Refuses listeners that would give what they serve to everybody, and makes the directory.
    pub(super) fn check(&self) -> Result<(), StartError> {
        let doors = self.doors.iter().map(|(addr, _)| *addr);
        self.security.check_addresses(&self.addresses(), doors)?;
        std::fs::create_dir_all(&self.data)
            .map_err(|source| StartError::Write { path: self.data.clone(), source })?;
        private::close(&self.data);
        Ok(())
    }

    /// Where it asks to listen.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses { grpc: self.listen, http: self.http, resp: self.resp }
    }

    /// What its HTTP port says about it.
    pub(super) fn front_page(&self, at: Addresses) -> FrontPage {
        FrontPage {
            name: format!("router {}", self.router),
            does: "answers queries of clients",
            answers_clients: true,
            at,
        }
    }

    /// What it says about itself in the metadata, once it listens `at` these addresses.
    pub(super) fn document(&self, at: &Addresses) -> RouterDocument {
        RouterDocument {
            format: DOCUMENT_FORMAT,
            router: self.router,
            addr: at.grpc.to_string(),
            http: at.http.to_string(),
            resp: at.resp_text(),
            pid: std::process::id(),
        }
    }
}
