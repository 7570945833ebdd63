//! How a node is run.

use kith_database::Retention;
use kith_doors::DoorAt;
use kith_net::server::{Addresses, FrontPage, connections::ConnectionSettings, security::Security};
use kith_process::{Labels, StartError};
use kith_wire::documents::{DOCUMENT_FORMAT, NodeDocument};
use std::{net::SocketAddr, num::NonZeroU64, path::PathBuf, time::Duration};

/// How a node is run.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// Its id; the cluster's shape says its group and partitions. One that it does not list is a spare: it owns nothing until
    /// it is added.
    pub node: u32,
    /// Its labels.
    pub place: Labels,
    /// Where it listens for gRPC and frames; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where it serves `/metrics` and friends.
    pub http: SocketAddr,
    /// Where it listens for Redis clients; `None`: nowhere.
    pub resp: Option<SocketAddr>,
    /// Further doors, which speak protocols of their own: to the partitions that are here.
    pub doors: Vec<DoorAt>,
    /// Its data directory.
    pub data: PathBuf,
    /// Bytes a second of the rounds in which it reads all that it holds again; `None`: no rounds.
    pub scrub_rate: Option<u64>,
    /// Bytes a second that all fetches, copies and repairs together pull, until it is changed; `None`: no limit.
    pub fetch_rate: Option<NonZeroU64>,
    /// Fetches are held back while the p99 of reads is above so many times what it is without them; `None`: never.
    pub fetch_p99: Option<f64>,
    /// Bytes of a new version that are brought into memory before it serves, if there is room.
    pub warm_bytes: u64,
    /// A file with the password for servers that hold live graphs; `None`: the environment has it, or they need none.
    pub database_password_file: Option<PathBuf>,
    /// How long the changes of live graphs are kept in their logs. A replica that was frozen or cut off for longer reads what it needs
    /// from the rows again.
    pub log_retention: Duration,
    /// How its connections are bounded.
    pub connections: ConnectionSettings,
    /// Who may speak to it, and who it is to others.
    pub security: Security,
}

impl NodeOptions {
    /// Slow enough to be in nobody's way, fast enough for a terabyte in a day.
    pub const SCRUB_RATE_DEFAULT: u64 = 10 << 20;
    /// All indexes of most versions, and read in well under a second.
    pub const WARM_BYTES_DEFAULT: u64 = 256 << 20;
    /// As long as the outcome of a write is known.
    pub const LOG_RETENTION_DEFAULT: Duration = Retention::CHANGES_DEFAULT;

    /// Refuses listeners that would give what they serve to everybody.
    pub(super) fn check(&self) -> Result<(), StartError> {
        let doors = self.doors.iter().map(|(addr, _)| *addr);
        Ok(self.security.check_addresses(&self.addresses(), doors)?)
    }

    /// Where it asks to listen.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses { grpc: self.listen, http: self.http, resp: self.resp }
    }

    /// What its HTTP port says about it.
    pub(super) fn front_page(&self, at: Addresses) -> FrontPage {
        FrontPage {
            name: format!("node {}", self.node),
            does: "serves the partitions of one node",
            answers_clients: true,
            at,
        }
    }

    /// What it says about itself in the metadata, once it listens `at` these addresses.
    pub(super) fn document(&self, at: &Addresses) -> NodeDocument {
        NodeDocument {
            format: DOCUMENT_FORMAT,
            node: self.node,
            addr: at.grpc.to_string(),
            http: at.http.to_string(),
            resp: at.resp_text(),
            pid: std::process::id(),
            zone: self.place.zone.clone(),
            rack: self.place.rack.clone(),
            region: self.place.region.clone(),
        }
    }
}
