//! Where the cluster is: `--router`, `--ready-file`, `KITH_ROUTER`, else the ready file that `kith dev` leaves.

mod found;

pub use found::WELL_KNOWN;

use crate::{controllers::ControllerSet, failure::Failure};
use anyhow::Context;
use clap::{Args, ValueEnum};
use found::{Found, find, surroundings};
use kith_client::{
    Failover, RouterClient, Service, Session, SessionSettings, TransportKind,
    security::{Dialer, SecurityError, SecurityOptions},
};
use std::{path::PathBuf, sync::Arc};

/// Where the cluster is.
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
    /// Who this process is to others, and whom it believes.
    #[command(flatten)]
    pub security: SecurityFlags,
}

/// The files that say who this process is, and whom it believes (docs/operating/securing.md).
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
    /// Whether whoever is asked learns by a certificate or token who asks.
    pub fn shows_who(&self) -> bool {
        self.tls_cert.is_some() || self.token_file.is_some()
    }

    /// Connects as they say.
    ///
    /// # Errors
    /// If a file cannot be used, or a flag lacks another.
    pub fn dialer(&self) -> Result<Dialer, Failure> {
        let Self { tls_ca, tls_cert, tls_key, token_file } = self.clone();
        let options = SecurityOptions { ca: tls_ca, cert: tls_cert, key: tls_key, token: token_file };
        Dialer::open(options).map_err(|error| security_failure(&error))
    }
}

/// As a person is told it.
pub fn security_failure(error: &SecurityError) -> Failure {
    let mut message = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        message.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    Failure { code: error.code(), message, help: error.help().to_owned() }
}

/// A [`TransportKind`] on the command line.
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

/// What answers queries. A router that goes away is replaced by the next one named.
///
/// # Errors
/// If no cluster is named or it cannot be reached.
pub async fn service(target: &TargetFlags) -> anyhow::Result<Arc<dyn Service>> {
    if !target.direct {
        let found = find(target, &surroundings())?;
        let transport = target.transport.map(TransportKind::from).unwrap_or_default();
        let connected = Failover::connect_by(found.routers, transport, target.security.dialer()?).await;
        return Ok(Arc::new(connected.with_context(|| unreachable_by(&found.named_by))?));
    }
    Ok(Arc::new(session(target, SessionSettings::default()).await?))
}

/// A fast client of its own settings.
///
/// # Errors
/// If no cluster is named or it cannot be reached, or the settings name what does not exist.
pub async fn session(target: &TargetFlags, mut settings: SessionSettings) -> anyhow::Result<Session> {
    settings.dialer = target.security.dialer()?;
    target.controllers.iter().for_each(|set| set.apply(&mut settings));
    settings.transport = target.transport.map_or(settings.transport, TransportKind::from);
    let Found { mut routers, nodes, named_by, .. } = find(target, &surroundings())?;
    routers.extend(nodes);
    let session = Session::connect(routers, settings).await;
    session.with_context(|| unreachable_by(&named_by))
}

/// A router, for everything besides queries.
///
/// # Errors
/// If no cluster is named or no router can be reached.
pub async fn router(target: &TargetFlags) -> anyhow::Result<RouterClient> {
    let found = find(target, &surroundings())?;
    let connected = RouterClient::connect_by(&found.routers, &target.security.dialer()?).await;
    connected.with_context(|| unreachable_by(&found.named_by))
}

/// The processes of the cluster that run on this machine, as its ready file has them; none if a router was named.
///
/// # Errors
/// If no cluster is named.
pub fn processes(target: &TargetFlags) -> Result<Vec<u32>, Failure> {
    Ok(find(target, &surroundings())?.pids)
}

fn unreachable_by(named_by: &str) -> String {
    format!("connect to the cluster named by {named_by}")
}
