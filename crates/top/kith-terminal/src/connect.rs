//! Connects to the cluster, which is named by `--router`, `--ready-file`, `KITH_ROUTER`, or else by the ready file that
//! `kith dev` writes.

mod found;

pub use found::WELL_KNOWN;

use crate::{controllers::ControllerSet, failure::Failure};
use anyhow::Context;
use clap::{Args, ValueEnum};
use found::{FoundCluster, find, surroundings};
use kith_client::{
    Failover, RouterClient, Service, TransportKind,
    security::{Dialer, SecurityError, SecurityOptions},
};
use kith_live::GraphTypes;
use kith_query::QueryError;
use kith_session::{Session, SessionSettings};
use kith_topology::Topology;
use std::{path::PathBuf, sync::Arc};

/// Flags that name the cluster.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub struct TargetFlags {
    /// One or more routers; the first that can be reached is used, and the next one if it goes away [env: KITH_ROUTER]
    #[arg(long = "router", value_name = "HOST:PORT", global = true, value_delimiter = ',')]
    pub routers: Vec<String>,
    /// The ready file of `kith dev` [default: .kith/ready.json, $XDG_RUNTIME_DIR/kith/ready.json]
    #[arg(long, value_name = "FILE", global = true)]
    pub ready_file: Option<PathBuf>,
    /// Ask the nodes directly (the fast client): one hop less, but no network cache
    #[arg(long, global = true)]
    pub direct: bool,
    /// Use this fan-out controller where the selector matches, such as network@background=static(2); only with --direct; may be repeated
    #[arg(long = "controller", global = true, value_name = "SELECTOR=CONTROLLER")]
    pub controllers: Vec<ControllerSet>,
    /// Protocol for queries: frames are faster, gRPC is what other clients speak [default: framed]
    #[arg(long, global = true, value_enum, value_name = "KIND")]
    pub transport: Option<TransportFlag>,
    /// The identity of this process, and the certificate authorities that it trusts.
    #[command(flatten)]
    pub security: SecurityFlags,
}

/// Files with the identity of this process, and with the certificate authorities that it trusts
/// (docs/operating/securing.md).
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Security")]
pub struct SecurityFlags {
    /// Certificate authorities of the cluster (PEM); turns on TLS
    #[arg(long, value_name = "FILE", global = true, env = "KITH_TLS_CA")]
    pub tls_ca: Option<PathBuf>,
    /// The certificate of this process (PEM)
    #[arg(long, value_name = "FILE", global = true, env = "KITH_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", global = true, env = "KITH_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// File with the token that authenticates this client
    #[arg(long, value_name = "FILE", global = true, env = "KITH_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
}

impl SecurityFlags {
    /// Whether the server can identify this process by a certificate or a token.
    pub fn shows_who(&self) -> bool {
        self.tls_cert.is_some() || self.token_file.is_some()
    }

    /// Returns a dialer that connects with these files.
    ///
    /// # Errors
    /// If a file cannot be used, or if a flag requires another one that is missing.
    pub fn dialer(&self) -> Result<Dialer, Failure> {
        let Self { tls_ca, tls_cert, tls_key, token_file } = self.clone();
        let options = SecurityOptions { ca: tls_ca, cert: tls_cert, key: tls_key, token: token_file };
        Dialer::open(options).map_err(|error| security_failure(&error))
    }
}

/// Converts a security error to a failure.
pub fn security_failure(error: &SecurityError) -> Failure {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        message.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    Failure { code: error.code(), message, help: error.help().to_owned() }
}

/// A [`TransportKind`] as a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TransportFlag {
    /// Frames, over Unix sockets on one machine
    Framed,
    /// Frames over TCP only
    FramedTcp,
    /// gRPC only
    Grpc,
}

impl From<TransportFlag> for TransportKind {
    fn from(flag: TransportFlag) -> Self {
        match flag {
            TransportFlag::Framed => TransportKind::Framed,
            TransportFlag::FramedTcp => TransportKind::FramedTcp,
            TransportFlag::Grpc => TransportKind::Grpc,
        }
    }
}

/// Connects to a service that answers queries: a router, or with `--direct` the nodes. If a router fails, the next one that
/// was named takes its place.
///
/// # Errors
/// If no cluster is named, or if it cannot be reached.
pub async fn service(target: &TargetFlags) -> anyhow::Result<Arc<dyn Service>> {
    if !target.direct {
        let found = find(target, &surroundings())?;
        let transport = target.transport.map(TransportKind::from).unwrap_or_default();
        let connected = Failover::connect_by(found.routers, transport, target.security.dialer()?).await;
        return Ok(Arc::new(connected.with_context(|| unreachable_by(&found.named_by))?));
    }
    Ok(Arc::new(session(target, SessionSettings::default()).await?))
}

/// Connects a fast client with settings of its own.
///
/// # Errors
/// If no cluster is named, if it cannot be reached, or if the settings name something that does not exist.
pub async fn session(target: &TargetFlags, mut settings: SessionSettings) -> anyhow::Result<Session> {
    settings.dialer = target.security.dialer()?;
    target.controllers.iter().for_each(|set| set.apply(&mut settings));
    settings.transport = target.transport.map_or(settings.transport, TransportKind::from);
    let FoundCluster { mut routers, nodes, named_by, .. } = find(target, &surroundings())?;
    routers.extend(nodes);
    let session = Session::connect(routers, settings).await;
    session.with_context(|| unreachable_by(&named_by))
}

/// Connects to a router, for everything besides queries.
///
/// # Errors
/// If no cluster is named, or if no router can be reached.
pub async fn router(target: &TargetFlags) -> anyhow::Result<RouterClient> {
    let found = find(target, &surroundings())?;
    let connected = RouterClient::connect_by(&found.routers, &target.security.dialer()?).await;
    connected.with_context(|| unreachable_by(&found.named_by))
}

/// Returns the types of a live graph.
///
/// # Errors
/// If no router can be reached, or if there is no such live graph.
pub async fn types(target: &TargetFlags, graph: &str) -> anyhow::Result<Arc<GraphTypes>> {
    let document = router(target).await?.topology_with_types(|name| name == graph).await;
    let document = document.context("read the types of the graph")?;
    let topology = Topology::from_document(Arc::new(document)).context("read the types of the graph")?;
    let found = topology.graph(graph)?;
    let live = found.live.as_ref().ok_or_else(|| QueryError::LoadedGraph {
        name: graph.to_owned(),
        what: "`kith load graph` loads edges into it",
    })?;
    Ok(Arc::clone(&live.types))
}

/// Returns the processes of the cluster that run on this machine, according to its ready file; none if a router was named.
///
/// # Errors
/// If no cluster is named.
pub fn processes(target: &TargetFlags) -> Result<Vec<u32>, Failure> {
    Ok(find(target, &surroundings())?.pids)
}

fn unreachable_by(named_by: &str) -> String {
    format!("connect to the cluster named by {named_by}")
}
