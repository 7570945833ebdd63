//! The children of `kith dev`: their identities and arguments.

use super::{log_file, plan::Member};
use crate::database::DatabaseOptions;
use kith_cluster::{Labels, StartError};
use kith_net::server::{self, connections::ConnectionSettings};
use kith_node::NodeOptions;
use kith_router::{RouterOptions, RouterSettings};
use kith_wire::documents::TopologyDocument;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

/// The addresses that a child listens on, in the order `--listen`, `--http`, `--resp`, `--gremlin`.
pub(super) type Addresses = [String; 4];

/// The identity of a child and the arguments that it is started with.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub name: String,
    pub log: PathBuf,
    pub arguments: Vec<String>,
    pub id: RoleId,
}

/// The kind and id of a child.
#[derive(Clone, Copy, Debug)]
pub(super) enum RoleId {
    Database(u32),
    Node(u32),
    Router(u32),
}

impl RoleId {
    /// Returns the process id and the addresses that are registered under this id, by whichever process.
    pub fn registered(self, topology: &TopologyDocument) -> Option<(u32, Addresses)> {
        match self {
            RoleId::Database(id) => {
                let document = topology.databases.iter().find(|document| document.database == id)?;
                let (addr, http) = (document.addr.clone(), document.http.clone());
                Some((document.pid, [addr, http, String::new(), String::new()]))
            }
            RoleId::Node(id) => {
                let document = topology.nodes.iter().find(|document| document.node == id)?;
                let (addr, http) = (document.addr.clone(), document.http.clone());
                Some((document.pid, [addr, http, document.resp.clone(), String::new()]))
            }
            RoleId::Router(id) => {
                let document = topology.routers.iter().find(|document| document.router == id)?;
                let (addr, http) = (document.addr.clone(), document.http.clone());
                Some((document.pid, [addr, http, document.resp.clone(), document.gremlin.clone()]))
            }
        }
    }
}

/// Returns the child for a member of the cluster. `metadata` is the address of the metadata.
///
/// # Errors
/// [`StartError::Settings`].
pub(super) fn role(member: &Member, metadata: SocketAddr) -> Result<Role, StartError> {
    match member {
        Member::Database(options) => Ok(database_role(options, metadata)),
        Member::Node(options) => node_role(options, metadata),
        Member::Router(options) => router_role(options, metadata),
    }
}

fn database_role(options: &DatabaseOptions, metadata: SocketAddr) -> Role {
    let at = server::Addresses { grpc: options.listen, http: options.http, resp: None, gremlin: None };
    let command = ["database", "--id", &options.database.to_string()];
    Role {
        name: format!("database {}", options.database),
        log: log_file(&options.data),
        arguments: arguments(command, metadata, at, &options.data, &options.connections),
        id: RoleId::Database(options.database),
    }
}

/// Returns the child for a node. The database servers that it may connect to are written to a file beside its data.
fn node_role(options: &NodeOptions, metadata: SocketAddr) -> Result<Role, StartError> {
    let at =
        server::Addresses { grpc: options.listen, http: options.http, resp: options.resp, gremlin: None };
    let command = ["node", "--node", &options.node.to_string()];
    let mut arguments = arguments(command, metadata, at, &options.data, &options.connections);
    let scrub_rate = options.scrub_rate.map_or("off".to_owned(), |rate| rate.to_string());
    arguments.extend(["--scrub-rate".to_owned(), scrub_rate]);
    if let Some(rate) = options.fetch_rate {
        arguments.extend(["--fetch-rate".to_owned(), rate.to_string()]);
    }
    let fetch_p99 = options.fetch_p99.map_or("off".to_owned(), |ratio| ratio.to_string());
    arguments.extend(["--fetch-p99".to_owned(), fetch_p99]);
    let retention = format!("{}ms", options.log_retention.as_millis());
    arguments.extend(["--log-retention".to_owned(), retention]);
    let Labels { zone, rack, region } = &options.labels;
    for (flag, label) in [("--zone", zone), ("--rack", rack), ("--region", region)] {
        if !label.is_empty() {
            arguments.extend([flag.to_owned(), label.clone()]);
        }
    }
    let settings = RouterSettings {
        database_server: options.databases.listed.clone(),
        database_loopback: Some(options.databases.loopback),
        ..RouterSettings::default()
    };
    arguments.extend(["--config".to_owned(), config(&settings, &options.data)?]);
    Ok(Role {
        name: format!("node {}", options.node),
        log: log_file(&options.data),
        arguments,
        id: RoleId::Node(options.node),
    })
}

/// Writes settings to a file beside the data of a child. Returns its path.
fn config(settings: &RouterSettings, data: &Path) -> Result<String, StartError> {
    let path = data.with_extension("toml");
    settings.write(&path).map_err(|error| StartError::Settings { detail: error.to_string() })?;
    Ok(path.display().to_string())
}

/// Returns the child for a router. Its settings are written to a file beside its data.
fn router_role(options: &RouterOptions, metadata: SocketAddr) -> Result<Role, StartError> {
    if !options.settings.session.own_controllers.is_empty() {
        let detail = "controllers that a program provides work only in its own process: run the cluster in one process";
        return Err(StartError::Settings { detail: detail.to_owned() });
    }
    let config = config(&options.settings, &options.data)?;
    let at = server::Addresses {
        grpc: options.listen,
        http: options.http,
        resp: options.resp,
        gremlin: options.gremlin,
    };
    let command = ["router", "--id", &options.router.to_string()];
    let mut arguments = arguments(command, metadata, at, &options.data, &options.connections);
    arguments.extend(["--config".to_owned(), config]);
    Ok(Role {
        name: format!("router {}", options.router),
        log: log_file(&options.data),
        arguments,
        id: RoleId::Router(options.router),
    })
}

/// Returns the arguments that all members have in common.
fn arguments(
    command: [&str; 3],
    metadata: SocketAddr,
    at: server::Addresses,
    data: &Path,
    connections: &ConnectionSettings,
) -> Vec<String> {
    let (metadata, grpc, http) = (metadata.to_string(), at.grpc.to_string(), at.http.to_string());
    let data = data.display().to_string();
    let flags = [("--metadata", &metadata), ("--listen", &grpc), ("--http", &http), ("--data", &data)];
    let mut arguments = command.map(str::to_owned).to_vec();
    for (flag, value) in flags {
        arguments.extend([flag.to_owned(), value.clone()]);
    }
    arguments.push("--end-with-stdin".to_owned());
    for (flag, addr) in [("--resp", at.resp), ("--gremlin", at.gremlin)] {
        arguments.extend(addr.into_iter().flat_map(|addr| [flag.to_owned(), addr.to_string()]));
    }
    if let Some(bytes) = connections.reply_bytes {
        arguments.extend(["--reply-memory".to_owned(), bytes.to_string()]);
    }
    for host in &connections.accepted_hosts {
        arguments.extend(["--accepted-hosts".to_owned(), host.to_string()]);
    }
    arguments
}
