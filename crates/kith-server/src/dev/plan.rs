//! Which nodes and routers `kith dev` starts, and where they listen.

use super::{
    DevOptions, PORT, PORT_HTTP, PORT_RESP,
    ports::{self, Reserved},
};
use kith_net::server::security::Security;
use kith_node::NodeOptions;
use kith_process::Labels;
use kith_router::RouterOptions;
use kith_wire::documents::TopologyDocument;
use std::{
    num::NonZeroU16,
    path::{Path, PathBuf},
};

/// Which nodes and routers to start, and where.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// The data directory.
    pub data: PathBuf,
    pub nodes: Vec<NodeOptions>,
    pub routers: Vec<RouterOptions>,
    pub threads: Option<NonZeroU16>,
}

impl Plan {
    /// With the usual ports kept from others until the routers start.
    pub fn new(options: &DevOptions, folder: &Path, topology: &TopologyDocument) -> (Self, Reserved) {
        let node_ids = topology.cluster.groups.iter().flat_map(|group| group.nodes.iter().copied());
        let nodes = node_ids.map(|node| node_options(options, folder, topology, node)).collect();
        let mut reserved = Reserved::default();
        let routers = (0..options.routers)
            .map(|router| router_options(options, folder, topology, router, &mut reserved))
            .collect();
        (Self { data: folder.to_owned(), nodes, routers, threads: options.threads }, reserved)
    }
}

fn node_options(options: &DevOptions, folder: &Path, topology: &TopologyDocument, node: u32) -> NodeOptions {
    let known = topology.nodes.iter().find(|document| document.node == node);
    let listed = topology.cluster.listed.iter().find(|listed| listed.node == node);
    let place = listed.map(|listed| Labels {
        zone: listed.zone.clone(),
        rack: listed.rack.clone(),
        region: listed.region.clone(),
    });
    NodeOptions {
        node,
        place: place.unwrap_or_default(),
        listen: ports::before(known.map(|document| document.addr.as_str())),
        http: ports::before(known.map(|document| document.http.as_str())),
        resp: Some(ports::before(known.map(|document| document.resp.as_str()))),
        doors: Vec::new(),
        data: folder.join(format!("node-{node:03}")),
        scrub_rate: options.scrub_rate,
        fetch_rate: options.fetch_rate,
        fetch_p99: options.fetch_p99,
        warm_bytes: NodeOptions::WARM_BYTES_DEFAULT,
        database_password_file: None,
        connections: options.connections,
        security: Security::default(),
    }
}

fn router_options(
    options: &DevOptions,
    folder: &Path,
    topology: &TopologyDocument,
    router: u32,
    reserved: &mut Reserved,
) -> RouterOptions {
    let known = topology.routers.iter().find(|document| document.router == router);
    // The others are told by the first one, and need no port that a person knows.
    let asked = |port: Option<u16>| if router == 0 { port } else { Some(0) };
    let mut choose = |port, usual, before| reserved.choose(asked(port), usual, before);
    RouterOptions {
        router,
        listen: choose(options.port, PORT, known.map(|document| document.addr.as_str())),
        http: choose(options.http_port, PORT_HTTP, known.map(|document| document.http.as_str())),
        resp: Some(choose(options.resp_port, PORT_RESP, known.map(|document| document.resp.as_str()))),
        doors: Vec::new(),
        data: folder.join(format!("router-{router:03}")),
        settings: options.router.clone(),
        database_password_file: None,
        connections: options.connections,
        security: Security::default(),
    }
}
