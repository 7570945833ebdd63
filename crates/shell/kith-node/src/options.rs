//! The options of a node.

use kith_cluster::{Labels, StartError};
use kith_database::{DatabaseServers, Retention};
use kith_doors::DoorAt;
use kith_net::server::{Addresses, FrontPage, connections::ConnectionSettings, security::Security};
use kith_wire::documents::{DOCUMENT_FORMAT, NodeDocument};
use std::{net::SocketAddr, num::NonZeroU64, path::PathBuf, time::Duration};

/// The options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The id of the node. The cluster's shape assigns its group and partitions. A node that the cluster does not list is a
    /// spare, and owns nothing until it is added.
    pub node: u32,
    /// The labels of the node.
    pub labels: Labels,
    /// The address for gRPC and frames; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The address for `/healthz`, `/readyz` and `/metrics`.
    pub http: SocketAddr,
    /// The address for Redis clients; `None` does not serve them.
    pub resp: Option<SocketAddr>,
    /// Further doors with their own protocols, which serve the partitions that are on this node.
    pub doors: Vec<DoorAt>,
    /// The data directory.
    pub data: PathBuf,
    /// The rate, in bytes per second, at which the node rereads all that it holds; `None` disables this.
    pub scrub_rate: Option<u64>,
    /// The initial limit on all fetches, copies and repairs together, in bytes per second; `None` for no limit.
    pub fetch_rate: Option<NonZeroU64>,
    /// Fetches are slowed down while the p99 of reads is above this multiple of its normal value; `None` never slows them
    /// down.
    pub fetch_p99: Option<f64>,
    /// The number of bytes of a new version that are read into memory before it serves, if memory is free.
    pub warm_bytes: u64,
    /// The database servers that may hold live graphs.
    pub databases: DatabaseServers,
    /// The time for which the changes of live graphs are kept in their logs. A replica that was frozen or cut off for
    /// longer reads the rows that it needs again.
    pub log_retention: Duration,
    /// The limits on connections.
    pub connections: ConnectionSettings,
    /// The node's own identity, and the rules for who may connect to it.
    pub security: Security,
}

impl NodeOptions {
    /// The rate is low enough not to disturb reads, and rereads a terabyte in about a day.
    pub const SCRUB_RATE_DEFAULT: u64 = 10 << 20;
    /// This is enough for all indexes of most versions, and read in well under a second.
    pub const WARM_BYTES_DEFAULT: u64 = 256 << 20;
    /// The same time for which the outcome of a write is kept.
    pub const LOG_RETENTION_DEFAULT: Duration = Retention::CHANGES_DEFAULT;

    /// Refuses addresses that would give everybody access to what the node serves.
    pub(super) fn check(&self) -> Result<(), StartError> {
        let doors = self.doors.iter().map(|(addr, _)| *addr);
        Ok(self.security.check_addresses(&self.addresses(), doors)?)
    }

    /// The addresses that the options ask for.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses { grpc: self.listen, http: self.http, resp: self.resp, gremlin: None }
    }

    /// Returns the front page of the HTTP port.
    pub(super) fn front_page(&self, at: Addresses) -> FrontPage {
        FrontPage {
            name: format!("node {}", self.node),
            does: "serves the partitions of one node",
            answers_clients: true,
            at,
        }
    }

    /// Returns the node's document for the metadata, once it listens on the addresses `at`.
    pub(super) fn document(&self, at: &Addresses) -> NodeDocument {
        NodeDocument {
            format: DOCUMENT_FORMAT,
            node: self.node,
            addr: at.grpc.to_string(),
            http: at.http.to_string(),
            resp: at.resp_text(),
            pid: std::process::id(),
            zone: self.labels.zone.clone(),
            rack: self.labels.rack.clone(),
            region: self.labels.region.clone(),
        }
    }
}
