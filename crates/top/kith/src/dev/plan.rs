//! The databases, nodes and routers that `kith dev` starts, and the addresses on which they listen.

use super::{
    DevOptions, PORT, PORT_GREMLIN, PORT_HTTP, PORT_RESP, log_file,
    ports::{self, ReservedPorts},
};
use crate::database::DatabaseOptions;
use kith_cluster::Labels;
use kith_net::server::security::Security;
use kith_node::NodeOptions;
use kith_router::RouterOptions;
use kith_wire::documents::TopologyDocument;
use std::{
    num::NonZeroU16,
    path::{Path, PathBuf},
};

/// The number of databases of a development cluster. One holds any number of live graphs.
const DATABASES: u32 = 1;

/// The members to start, and their addresses.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The data directory.
    pub data: PathBuf,
    /// The members in the order in which they start. Each may need those of the kinds before it. They stop in the opposite
    /// order.
    pub members: Vec<Member>,
    pub threads: Option<NonZeroU16>,
    /// Flags of child processes that say how they log.
    pub log_flags: Vec<String>,
}

/// One member of the cluster.
#[derive(Clone, Debug)]
pub(super) enum Member {
    Database(Box<DatabaseOptions>),
    Node(Box<NodeOptions>),
    Router(Box<RouterOptions>),
}

/// The kinds of members, in the order in which they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Database,
    Node,
    Router,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Database, Self::Node, Self::Router];
}

impl Member {
    pub fn kind(&self) -> Kind {
        match self {
            Member::Database(_) => Kind::Database,
            Member::Node(_) => Kind::Node,
            Member::Router(_) => Kind::Router,
        }
    }

    fn data(&self) -> &Path {
        match self {
            Member::Database(options) => &options.data,
            Member::Node(options) => &options.data,
            Member::Router(options) => &options.data,
        }
    }

    /// The member as it starts now. Databases and nodes listen where they did before, except on ports that are taken. The
    /// ports of routers are chosen in the plan, because users may ask for them.
    pub fn on_free_ports(&self) -> Self {
        let mut member = self.clone();
        let addresses = match &mut member {
            Member::Database(options) => vec![&mut options.listen, &mut options.http],
            Member::Node(options) => {
                [&mut options.listen, &mut options.http].into_iter().chain(&mut options.resp).collect()
            }
            Member::Router(_) => Vec::new(),
        };
        for addr in addresses {
            *addr = ports::if_free(*addr);
        }
        member
    }
}

impl Plan {
    /// Plans the members. The usual ports are reserved until the routers start.
    pub fn new(options: &DevOptions, folder: &Path, topology: &TopologyDocument) -> (Self, ReservedPorts) {
        let mut reserved = ReservedPorts::default();
        let databases = (0..DATABASES).map(|database| database_options(options, folder, topology, database));
        let node_ids = topology.cluster.groups.iter().flat_map(|group| group.nodes.iter().copied());
        let nodes = node_ids.map(|node| node_options(options, folder, topology, node));
        let routers = (0..options.routers)
            .map(|router| router_options(options, folder, topology, router, &mut reserved));
        let mut members: Vec<Member> = databases.map(|it| Member::Database(Box::new(it))).collect();
        members.extend(nodes.map(|it| Member::Node(Box::new(it))));
        members.extend(routers.map(|it| Member::Router(Box::new(it))));
        (
            Self {
                data: folder.to_owned(),
                members,
                threads: options.threads,
                log_flags: options.log_flags.clone(),
            },
            reserved,
        )
    }

    /// The logs of the members, if each runs in its own process.
    pub fn logs(&self) -> impl Iterator<Item = PathBuf> {
        self.members.iter().map(|member| log_file(member.data()))
    }

    /// The members of one kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| member.kind() == kind)
    }
}

fn database_options(
    options: &DevOptions,
    folder: &Path,
    topology: &TopologyDocument,
    database: u32,
) -> DatabaseOptions {
    let known = topology.databases.iter().find(|document| document.database == database);
    DatabaseOptions {
        database,
        listen: ports::previous(known.map(|document| document.addr.as_str())),
        http: ports::previous(known.map(|document| document.http.as_str())),
        data: folder.join(format!("database-{database:03}")),
        connections: options.connections.clone(),
        security: Security::default(),
    }
}

fn node_options(options: &DevOptions, folder: &Path, topology: &TopologyDocument, node: u32) -> NodeOptions {
    let known = topology.nodes.iter().find(|document| document.node == node);
    let listed = topology.cluster.listed.iter().find(|listed| listed.node == node);
    let labels = listed.map(|listed| Labels {
        zone: listed.zone.clone(),
        rack: listed.rack.clone(),
        region: listed.region.clone(),
    });
    NodeOptions {
        node,
        labels: labels.unwrap_or_default(),
        listen: ports::previous(known.map(|document| document.addr.as_str())),
        http: ports::previous(known.map(|document| document.http.as_str())),
        resp: Some(ports::previous(known.map(|document| document.resp.as_str()))),
        doors: Vec::new(),
        data: folder.join(format!("node-{node:03}")),
        scrub_rate: options.scrub_rate,
        fetch_rate: options.fetch_rate,
        fetch_p99: options.fetch_p99,
        warm_bytes: NodeOptions::WARM_BYTES_DEFAULT,
        databases: options.router.database_servers(None),
        log_retention: options.log_retention,
        connections: options.connections.clone(),
        security: Security::default(),
    }
}

fn router_options(
    options: &DevOptions,
    folder: &Path,
    topology: &TopologyDocument,
    router: u32,
    reserved: &mut ReservedPorts,
) -> RouterOptions {
    let known = topology.routers.iter().find(|document| document.router == router);
    // The other routers are known through the first one, so they do not need well-known ports.
    let asked = |port: Option<u16>| if router == 0 { port } else { Some(0) };
    let mut choose = |port, usual, before| reserved.choose(asked(port), usual, before);
    RouterOptions {
        router,
        listen: choose(options.port, PORT, known.map(|document| document.addr.as_str())),
        http: choose(options.http_port, PORT_HTTP, known.map(|document| document.http.as_str())),
        resp: Some(choose(options.resp_port, PORT_RESP, known.map(|document| document.resp.as_str()))),
        gremlin: Some(choose(
            options.gremlin_port,
            PORT_GREMLIN,
            known.map(|document| document.gremlin.as_str()),
        )),
        doors: Vec::new(),
        data: folder.join(format!("router-{router:03}")),
        settings: options.router.clone(),
        database_password_file: None,
        connections: options.connections.clone(),
        security: Security::default(),
    }
}
