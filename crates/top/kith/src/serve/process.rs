//! `kith node` and `kith router`: processes of one role.

use super::{
    Ending, FetchP99, FetchRate, LogFormat, LogRetention, ReplyMemory, ScrubRate, WarmBytes, begin,
    config::ConfigFile,
    fetch_p99, fetch_rate, log_retention,
    metadata::{MetadataFlags, missing},
    own::ProcessEntry,
    reply_memory, scrub_rate, start_failure, warm_bytes,
};
use crate::{
    cli::block_on_threads,
    connect::{SecurityFlags, security_failure},
    failure::{Exit, Failure},
};
use clap::Args;
use kith_cluster::{background, metadata::MetadataStore};
use kith_net::{
    security::secret,
    server::{
        connections::ConnectionSettings,
        hosts::AcceptedHost,
        security::{Security, ServerSecurity},
    },
};
use kith_node::{Labels, Node, NodeOptions};
use kith_router::{ReadFrom, Router, RouterOptions};
use kith_types::ErrorCode;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU16,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The default address of a process: loopback, with a free port.
const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Flags of every serving process. Each flag except `--config` is also a key of that file.
#[derive(Args, Debug)]
pub struct ProcessArgs {
    /// Configuration file of the cluster's machines (TOML); docs/operating/machines.md lists its keys. Flags override
    /// it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How to reach the metadata store.
    #[command(flatten)]
    metadata: MetadataFlags,
    /// Address for gRPC and frames, at which other processes reach this one; port 0 takes a free one [default:
    /// 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<SocketAddr>,
    /// Address for /healthz, /readyz and /metrics; port 0 takes a free one [default: 127.0.0.1:0]
    #[arg(long, value_name = "HOST:PORT")]
    http: Option<SocketAddr>,
    /// Threads that answer requests [default: one per processor]
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroU16>,
    /// Data directory of this process
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Certificate authorities of callers (PEM): callers must show a certificate, or a token if --access has tokens
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
    /// File of access rights (TOML); docs/operating/securing.md shows one. Without it, anybody who can connect may do
    /// everything
    #[arg(long, value_name = "FILE")]
    access: Option<PathBuf>,
    /// Allow listening on a non-loopback address without TLS, on a network that you trust
    #[arg(long)]
    insecure_listen: bool,
    /// Serve /healthz, /readyz and /metrics, which show names of stores, unencrypted on a non-loopback address, even if
    /// the rest uses TLS
    #[arg(long)]
    insecure_http: bool,
    /// Maximum number of open connections over all ports; more are refused (`too_many_connections`) [default: 16384, or
    /// fewer if the limit on open files requires it]
    #[arg(long, value_name = "N")]
    connections_max: Option<usize>,
    /// Close connections that have been idle for this long, except those of Redis clients; 0: never [default: 600000]
    #[arg(long, value_name = "MS")]
    connections_idle_ms: Option<u64>,
    /// Memory for replies that are being built or read; requests beyond it are refused (`overloaded`) [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = reply_memory)]
    reply_memory: Option<ReplyMemory>,
    /// Hosts whose web pages may send requests, and under whose names HTTP clients may ask this process, besides its own
    /// addresses: names, IP addresses, *.DOMAIN, or origins such as `https://console.example`
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    accepted_hosts: Vec<AcceptedHost>,
    /// How lines of the log are written: as text, or as one JSON object each [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// Exit when standard input ends, so that a supervisor's children exit with it
    #[arg(long)]
    end_with_stdin: bool,
}

/// Flags that nodes and routers share, beyond those of every process.
#[derive(Args, Debug)]
struct ServingArgs {
    /// Address for Redis clients (RESP); port 0 takes a free one [default: none; Redis clients are not served]
    #[arg(long, value_name = "HOST:PORT")]
    resp: Option<SocketAddr>,
    /// File whose first line is the password for those database servers of the file that have no `password-file` [default:
    /// the environment variable KITH_DATABASE_PASSWORD, if it is set]
    #[arg(long, value_name = "FILE")]
    database_password_file: Option<PathBuf>,
}

impl ServingArgs {
    /// Combines these flags with the file. Flags override it.
    fn over(self, file: &ConfigFile, own: &ProcessEntry) -> Result<Self, Failure> {
        let resp = self.resp.or(own.resp);
        resp.map_or(Ok(()), |addr| check_address("resp", addr))?;
        let database_password_file =
            self.database_password_file.or_else(|| file.database_password_file().map(Path::to_owned));
        if let Some(path) = &database_password_file {
            check_secret("database-password-file", path)?;
        }
        Ok(Self { resp, database_password_file })
    }
}

/// Run a node, which serves partitions
#[derive(Args, Debug)]
pub struct NodeArgs {
    /// Id of the node in the cluster; an unused id makes it a spare, for `kith cluster add-node` [default: the only
    /// node in the file]
    #[arg(long, value_name = "N")]
    node: Option<u32>,
    /// Rate at which the node rereads all its data to find and repair damage; `off`: repair only what reads find
    /// [default: 10MiB/s]
    #[arg(long, value_name = "RATE", value_parser = scrub_rate)]
    scrub_rate: Option<ScrubRate>,
    /// Limit on the node's fetches of versions, copies and repairs together; `off`: no limit; `kith cluster fetch-rate`
    /// changes it at run time [default: off]
    #[arg(long, value_name = "RATE", value_parser = fetch_rate)]
    fetch_rate: Option<FetchRate>,
    /// Slow fetches down while they raise the p99 of reads above this multiple of its normal value; `off`: never
    /// [default: 1.2]
    #[arg(long, value_name = "RATIO", value_parser = fetch_p99)]
    fetch_p99: Option<FetchP99>,
    /// Read this much of a new version into memory before it serves, indexes first, without displacing what is served
    /// now [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = warm_bytes)]
    warm_bytes: Option<WarmBytes>,
    /// Keep the changes of live graphs in their logs for this long; replicas that are further behind read their rows
    /// again [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = log_retention)]
    log_retention: Option<LogRetention>,
    /// Zone, a failure domain: replicas are placed in different zones, and reads prefer their own
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
    /// Rack, a failure domain inside the zone
    #[arg(long, value_name = "NAME")]
    rack: Option<String>,
    /// Region, such as a data centre
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    #[command(flatten)]
    process: ProcessArgs,
    #[command(flatten)]
    serving: ServingArgs,
}

/// Run a router, which answers the queries of clients and caches networks
#[derive(Args, Debug)]
pub struct RouterArgs {
    /// Id of the router, which decides the members that it owns [default: the only router in the file, else 0]
    #[arg(long, value_name = "N")]
    id: Option<u32>,
    #[command(flatten)]
    process: ProcessArgs,
    #[command(flatten)]
    serving: ServingArgs,
    /// Address for Gremlin drivers (WebSockets at the path /gremlin); port 0 takes a free one [default: none; Gremlin
    /// drivers are not served]
    #[arg(long, value_name = "HOST:PORT")]
    gremlin: Option<SocketAddr>,
    /// Append every query to a file that `kith run` and `kith bench graph` can replay
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Places from which versions that were built elsewhere may be read, optionally per store, such as
    /// people,person-*=s3://BUCKET/PREFIX [default: none]
    #[arg(long, value_name = "[STORES=]PLACE")]
    read_from: Vec<ReadFrom>,
}

/// The settings of a process after flags and file have been combined.
pub(super) struct Process {
    pub listen: SocketAddr,
    pub http: SocketAddr,
    pub data: PathBuf,
    pub metadata: Arc<dyn MetadataStore>,
    pub connections: ConnectionSettings,
    pub security: Security,
    pub end_with_stdin: bool,
}

impl ProcessArgs {
    pub(super) fn over(
        self,
        files: SecurityFlags,
        file: &ConfigFile,
        own: &ProcessEntry,
    ) -> anyhow::Result<Process> {
        let listen = self.listen.or(own.listen).unwrap_or(LISTEN_DEFAULT);
        let http = self.http.or(own.http).unwrap_or(LISTEN_DEFAULT);
        check_address("listen", listen)?;
        check_address("http", http)?;
        if files.token_file.is_some() {
            let message = "--token-file does not apply here: processes of a cluster show certificates";
            return Err(
                Failure::usage(message, "leave it out; --access says whose tokens are accepted").into()
            );
        }
        let security = ServerSecurity {
            cert: files.tls_cert,
            key: files.tls_key,
            ca: files.tls_ca,
            client_ca: self.tls_client_ca,
            access: self.access,
            insecure_listen: self.insecure_listen,
            insecure_http: self.insecure_http,
        };
        let security = Security::open(file.security(security)).map_err(|error| security_failure(&error))?;
        let data = self.data.or_else(|| own.data.clone()).ok_or_else(|| missing("--data", "data"))?;
        let target = self.metadata.or(file.metadata_flags()).target()?;
        let metadata = target.connect().map_err(|error| start_failure(error.into()))?;
        Ok(Process {
            listen,
            http,
            data,
            metadata,
            connections: file.connections(
                self.connections_max,
                self.connections_idle_ms,
                self.reply_memory,
                self.accepted_hosts,
            ),
            security,
            end_with_stdin: self.end_with_stdin || own.end_with_stdin,
        })
    }
}

/// A role that runs in a process of its own.
pub trait RoleProcess: Sized {
    /// Whether all threads of the process have a low priority, so that reads which other processes of the same machine serve
    /// get the processor first.
    const GIVES_WAY: bool = false;

    /// The flags that all roles share.
    fn process(&self) -> &ProcessArgs;

    /// Returns the keys of this process in the configuration file.
    ///
    /// # Errors
    /// If the file does not name the process, or several entries match.
    fn own(&self, file: &ConfigFile) -> Result<ProcessEntry, Failure>;

    /// Starts, and serves until a signal stops the process.
    ///
    /// # Errors
    /// If the process cannot start.
    async fn serve(
        self,
        security: SecurityFlags,
        file: ConfigFile,
        own: ProcessEntry,
    ) -> anyhow::Result<Exit>;

    /// Serves until a signal stops the process.
    ///
    /// # Errors
    /// If the process cannot start.
    fn run(self, security: SecurityFlags) -> anyhow::Result<Exit> {
        if Self::GIVES_WAY {
            background::give_way();
        }
        let security = not_from_environment(security, |variable| std::env::var_os(variable));
        let file = ConfigFile::read(self.process().config.as_deref())?;
        let own = self.own(&file)?;
        begin(self.process().log_format.or(file.log_format()).unwrap_or_default(), "info");
        block_on_threads(self.process().threads.or(own.threads), self.serve(security, file, own))
    }
}

/// Leaves out files that environment variables name. These variables are for clients: a process that an operator starts in a
/// shell must not serve with the operator's certificate in place of its own.
fn not_from_environment(
    files: SecurityFlags,
    variable: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> SecurityFlags {
    let own = |file: Option<PathBuf>, name: &str| {
        file.filter(|file| variable(name).is_none_or(|value| file.as_os_str() != value))
    };
    SecurityFlags {
        tls_ca: own(files.tls_ca, "KITH_TLS_CA"),
        tls_cert: own(files.tls_cert, "KITH_TLS_CERT"),
        tls_key: own(files.tls_key, "KITH_TLS_KEY"),
        token_file: own(files.token_file, "KITH_TOKEN_FILE"),
    }
}

/// Refuses a file with a secret that other users can open. The file may be missing when the process starts.
fn check_secret(option: &str, path: &Path) -> Result<(), Failure> {
    match secret::read(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let message = format!("{option}: read {}: {error}", path.display());
            Err(Failure::new(ErrorCode::BadSecurityFile, message, "check the path and its permissions"))
        }
        _ => Ok(()),
    }
}

/// Refuses an unspecified address such as 0.0.0.0, because other processes get this address.
fn check_address(name: &str, addr: SocketAddr) -> Result<(), Failure> {
    if !addr.ip().is_unspecified() {
        return Ok(());
    }
    let message =
        format!("{name} {addr}: other processes connect to this address, so it must name a machine");
    Err(Failure::usage(message, "give an address of this machine"))
}

impl RoleProcess for NodeArgs {
    fn process(&self) -> &ProcessArgs {
        &self.process
    }

    fn own(&self, file: &ConfigFile) -> Result<ProcessEntry, Failure> {
        file.node(self.node)
    }

    async fn serve(
        self,
        security: SecurityFlags,
        file: ConfigFile,
        own: ProcessEntry,
    ) -> anyhow::Result<Exit> {
        let process = self.process.over(security, &file, &own)?;
        process.security.check_own_right().map_err(|error| security_failure(&error))?;
        let serving = self.serving.over(&file, &own)?;
        let ending = Ending::listen(process.end_with_stdin);
        let options = NodeOptions {
            node: own.id,
            labels: Labels {
                zone: self.zone.unwrap_or(own.labels.zone),
                rack: self.rack.unwrap_or(own.labels.rack),
                region: self.region.unwrap_or(own.labels.region),
            },
            listen: process.listen,
            http: process.http,
            resp: serving.resp,
            doors: Vec::new(),
            data: process.data,
            scrub_rate: self.scrub_rate.or(own.scrub_rate).unwrap_or_default().0,
            fetch_rate: self.fetch_rate.or(own.fetch_rate).unwrap_or_default().0,
            fetch_p99: self.fetch_p99.or(own.fetch_p99).unwrap_or_default().ratio(),
            warm_bytes: self.warm_bytes.or(own.warm_bytes).unwrap_or_default().0,
            databases: file.router_settings().database_servers(serving.database_password_file),
            log_retention: self.log_retention.or(own.log_retention).unwrap_or_default().0,
            connections: process.connections,
            security: process.security,
        };
        let started = Node::start(options, process.metadata, ending.serving());
        let Some(node) = ending.unless(started).await else { return Ok(Exit::Done) };
        let node = node.map_err(start_failure)?;
        tokio::select! {
            () = ending.wait(node.leave()) => {}
            error = node.lost() => return Err(start_failure(error)),
        }
        node.ended().await;
        Ok(Exit::Done)
    }
}

impl RoleProcess for RouterArgs {
    fn process(&self) -> &ProcessArgs {
        &self.process
    }

    fn own(&self, file: &ConfigFile) -> Result<ProcessEntry, Failure> {
        file.router(self.id)
    }

    async fn serve(
        self,
        security: SecurityFlags,
        file: ConfigFile,
        own: ProcessEntry,
    ) -> anyhow::Result<Exit> {
        let process = self.process.over(security, &file, &own)?;
        process.security.check_own_right().map_err(|error| security_failure(&error))?;
        let serving = self.serving.over(&file, &own)?;
        let gremlin = self.gremlin.or(own.gremlin);
        gremlin.map_or(Ok(()), |addr| check_address("gremlin", addr))?;
        let ending = Ending::listen(process.end_with_stdin);
        let mut settings = file.router_settings();
        settings.record = self.record.or(own.record).or(settings.record);
        if !self.read_from.is_empty() {
            settings.read_from = self.read_from;
        }
        let options = RouterOptions {
            router: own.id,
            listen: process.listen,
            http: process.http,
            resp: serving.resp,
            gremlin,
            doors: Vec::new(),
            data: process.data,
            settings,
            database_password_file: serving.database_password_file,
            connections: process.connections,
            security: process.security,
        };
        let started = Router::start(options, process.metadata, ending.serving());
        let Some(router) = ending.unless(started).await else { return Ok(Exit::Done) };
        let router = router.map_err(start_failure)?;
        ending.wait(router.leave()).await;
        router.ended().await;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_environment_are_not_those_of_a_process() {
        let files = SecurityFlags {
            tls_ca: Some("/ada/ca.pem".into()),
            tls_cert: Some("/ada/cert.pem".into()),
            tls_key: Some("/flag/key.pem".into()),
            token_file: Some("/ada/token".into()),
        };
        let variable = |name: &str| match name {
            "KITH_TLS_CA" => Some("/ada/ca.pem".into()),
            "KITH_TLS_CERT" => Some("/ada/cert.pem".into()),
            "KITH_TLS_KEY" => Some("/ada/key.pem".into()),
            "KITH_TOKEN_FILE" => Some("/ada/token".into()),
            _ => None,
        };
        let left = not_from_environment(files, variable);
        assert_eq!((left.tls_ca, left.tls_cert, left.token_file), (None, None, None));
        assert_eq!(left.tls_key, Some("/flag/key.pem".into()));
    }
}
