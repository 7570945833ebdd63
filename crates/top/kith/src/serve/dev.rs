//! `kith dev`: runs a whole cluster on this machine.

use super::{
    FetchP99, FetchRate, LogFormat, LogRetention, PlacementFlag, ReplyMemory, ScrubRate, begin, detach,
    fetch_p99, fetch_rate, log_retention, reply_memory, scrub_rate, settings, start_failure, stop_signal,
};
use crate::{
    cli::{block_on, block_on_threads},
    connect::WELL_KNOWN,
    failure::{ErrorReport, Exit},
    output::Format,
};
use clap::Args;
use kith::dev::{Dev, DevOptions, PORT, PORT_GREMLIN, PORT_HTTP, PORT_RESP, ReadyDocument, Shape};
use kith_files::objects::Location;
use kith_net::server::connections::ConnectionSettings;
use kith_router::ReadFrom;
use std::{num::NonZeroU16, path::PathBuf};

/// Run a whole cluster on this machine
#[derive(Args, Debug)]
pub struct DevArgs {
    /// How replicas are placed: in groups that each hold everything, or around one ring [default: groups, or as in the
    /// data directory]
    #[arg(long, value_enum)]
    placement: Option<PlacementFlag>,
    /// Number of replica groups; on a ring, replicas of each partition [default: 2, or as in the data directory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    groups: Option<u32>,
    /// Nodes per group, or on the whole ring [default: 3, or as in the data directory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    nodes: Option<u32>,
    /// Number of partitions, fixed for the life of a cluster [default: 24, or as in the data directory]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    partitions: Option<u32>,
    /// Zones over which the nodes of each group are spread, in turn; only for a new cluster
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    zones: Vec<String>,
    /// Number of routers; several routers divide the network cache among them
    #[arg(long = "routers", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    router_count: u32,
    /// Run each database, node and router as a supervised process of its own
    #[arg(long)]
    processes: bool,
    /// Threads that answer requests [default: one per processor; with --processes, an equal share of the processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroU16>,
    /// Data directory, kept across restarts [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Object store for built versions: s3://BUCKET/PREFIX, gs://…, az://…; keys and endpoint from the environment
    /// [default: a folder of the data directory]
    #[arg(long, value_name = "URL", value_parser = bucket)]
    objects: Option<Location>,
    /// Port of the first router; 0 takes a free one [default: 7000 if it is free, else another]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Port of the first router for HTTP; 0 takes a free one [default: 7080 if it is free, else another]
    #[arg(long, value_name = "PORT")]
    http_port: Option<u16>,
    /// Port of the first router for Redis clients; 0 takes a free one [default: 7379 if it is free, else another]
    #[arg(long, value_name = "PORT")]
    resp_port: Option<u16>,
    /// Port of the first router for Gremlin drivers; 0 takes a free one [default: 7182 if it is free, else another]
    #[arg(long, value_name = "PORT")]
    gremlin_port: Option<u16>,
    /// Settings of the routers (TOML); docs/operating/settings.md lists the keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Append every query to a file that `kith run` and `kith bench graph` can replay
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Rate at which each node rereads all its data to find and repair damage; `off`: repair only what reads find
    #[arg(long, value_name = "RATE", value_parser = scrub_rate, default_value = "10MiB/s")]
    scrub_rate: ScrubRate,
    /// Limit on each node's fetches of versions, copies and repairs together; `off`: no limit
    #[arg(long, value_name = "RATE", value_parser = fetch_rate, default_value = "off")]
    fetch_rate: FetchRate,
    /// Slow fetches down while they raise the p99 of a node's reads above this multiple of its normal value; `off`:
    /// never
    #[arg(long, value_name = "RATIO", value_parser = fetch_p99, default_value = "1.2")]
    fetch_p99: FetchP99,
    /// Keep the changes of live graphs in their logs for this long; replicas that are further behind read their rows
    /// again
    #[arg(long, value_name = "DURATION", value_parser = log_retention, default_value = "10m")]
    log_retention: LogRetention,
    /// Memory of each node and router for replies that are being built or read; requests beyond it are refused
    /// (`overloaded`) [default: 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = reply_memory)]
    reply_memory: Option<ReplyMemory>,
    /// Places from which versions that were built elsewhere may be read, optionally per store, such as
    /// people,person-*=s3://BUCKET/PREFIX [default: none]
    #[arg(long, value_name = "[STORES=]PLACE")]
    read_from: Vec<ReadFrom>,
    /// How lines of the log are written: as text, or as one JSON object each [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<LogFormat>,
    /// Exit when standard input ends
    #[arg(long)]
    end_with_stdin: bool,
    /// Return once the cluster is ready, and leave it running in the background; its log is next to the ready file
    #[arg(long, conflicts_with = "end_with_stdin")]
    detach: bool,
    /// Stop the cluster of this folder, or that of --ready-file or --data, and wait until it has stopped
    #[arg(long, conflicts_with_all = [
        "placement", "groups", "nodes", "partitions", "zones", "router_count", "processes", "threads", "objects",
        "port", "http_port", "resp_port", "gremlin_port", "config", "record", "scrub_rate", "fetch_rate",
        "fetch_p99", "log_retention", "reply_memory", "read_from", "log_format", "end_with_stdin", "detach", "detached",
    ])]
    stop: bool,
    /// Run as the process that --detach leaves
    #[arg(long, hide = true, conflicts_with_all = ["detach", "end_with_stdin"])]
    detached: bool,
}

/// Parses a URL. A folder is refused, because it would have to be the same on all machines; the data directory has one.
fn bucket(text: &str) -> Result<Location, String> {
    match text.parse() {
        Ok(location @ Location::Bucket(_)) => Ok(location),
        Ok(Location::Folder(_)) => {
            Err("expected the URL of an object store; without --objects, a folder is used".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn port(addr: &str) -> &str {
    addr.rsplit_once(':').map_or(addr, |(_, port)| port)
}

impl DevArgs {
    /// Serves until a signal stops the process. Writes the addresses to `ready_file`, or to the path where clients look
    /// first.
    ///
    /// # Errors
    /// If the cluster cannot start; nothing of it is left running then. With `--stop`, if there is no cluster to stop.
    pub fn run(self, format: Format, ready_file: Option<PathBuf>) -> anyhow::Result<Exit> {
        if self.stop {
            return block_on(detach::stop(format, ready_file, self.data));
        }
        if self.detach {
            let ready_file = ready_file.unwrap_or_else(|| PathBuf::from(WELL_KNOWN[0]));
            return detach::detach(format, &ready_file, |ready| self.ports().text(ready));
        }
        // A supervisor does not answer requests itself.
        let threads = self.threads.filter(|_| !self.processes);
        let detached = self.detached;
        block_on_threads(threads, self.serve(ready_file)).inspect_err(|error| {
            if detached {
                detach::tell(&ErrorReport::of(error));
            }
        })
    }

    async fn serve(self, ready_file: Option<PathBuf>) -> anyhow::Result<Exit> {
        let ready_file = ready_file.unwrap_or_else(|| PathBuf::from(WELL_KNOWN[0]));
        begin(self.log_format.unwrap_or_default(), "warn");
        let stop = stop_signal(self.end_with_stdin);
        if self.detached {
            detach::leave_terminal(stop.clone())?;
        }
        let (ports, detached) = (self.ports(), self.detached);
        let options = self.options(ready_file.clone())?;
        let dev = Dev::start(options, stop).await.map_err(start_failure)?;
        eprint!("{}", ports.text(dev.ready()));
        eprintln!("  meta    {}  (for a `kith node` that is to join)", dev.metadata());
        eprintln!("  ready   {}", ready_file.display());
        eprintln!("  next    kith load graph testdata/kith-village/edges.csv.gz --graph village");
        if detached {
            detach::tell(dev.ready());
        }
        dev.run().await;
        Ok(Exit::Done)
    }

    /// Returns the flags as options of the supervisor.
    fn options(self, ready_file: PathBuf) -> anyhow::Result<DevOptions> {
        let mut router = settings(self.config.as_deref())?;
        router.record = self.record.or(router.record);
        router.database_loopback.get_or_insert(true);
        if !self.read_from.is_empty() {
            router.read_from = self.read_from;
        }
        let shape = Shape {
            placement: self.placement.map(PlacementFlag::strategy),
            groups: self.groups,
            nodes: self.nodes,
            partitions: self.partitions,
            zones: self.zones,
            // All zones are on this machine.
            allow_shared_zones: true,
            ..Shape::default()
        };
        let connections = ConnectionSettings {
            reply_bytes: self.reply_memory.map(|memory| memory.0),
            accepted_hosts: router.accepted_hosts.clone(),
            ..ConnectionSettings::default()
        };
        Ok(DevOptions {
            shape,
            routers: self.router_count,
            processes: self.processes,
            threads: self.threads,
            data: self.data,
            objects: self.objects.map(|location| location.to_string()),
            port: self.port,
            http_port: self.http_port,
            resp_port: self.resp_port,
            gremlin_port: self.gremlin_port,
            router,
            scrub_rate: self.scrub_rate.0,
            fetch_rate: self.fetch_rate.0,
            fetch_p99: self.fetch_p99.ratio(),
            log_retention: self.log_retention.0,
            connections,
            log_flags: self.log_format.unwrap_or_default().flags(),
            log: self.detached.then(|| detach::log_of(&ready_file)),
            ready_file,
        })
    }

    fn ports(&self) -> Ports {
        Ports { router: self.port, http: self.http_port, resp: self.resp_port, gremlin: self.gremlin_port }
    }
}

/// The ports that the user chose.
#[derive(Clone, Copy, Debug)]
struct Ports {
    router: Option<u16>,
    http: Option<u16>,
    resp: Option<u16>,
    gremlin: Option<u16>,
}

impl Ports {
    /// Returns a text that says what serves, and at which addresses.
    fn text(self, ready: &ReadyDocument) -> String {
        let count =
            |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let (nodes, routers) = (count(ready.nodes.len(), "node"), count(ready.routers.len(), "router"));
        let ReadyDocument { router, http, resp, gremlin, .. } = ready;
        let mut text = format!("kith dev: {nodes} and {routers} answer queries\n");
        for (name, addr, asked, usual, note) in [
            ("router", router, self.router, PORT, "--router, grpcurl".to_owned()),
            ("http", http, self.http, PORT_HTTP, "/ says what is there".to_owned()),
            ("redis", resp, self.resp, PORT_RESP, format!("redis-cli -p {} get STORE:KEY", port(resp))),
            ("gremlin", gremlin, self.gremlin, PORT_GREMLIN, format!("ws://{gremlin}/gremlin")),
        ] {
            let is_other = asked.is_none() && port(addr) != usual.to_string();
            let taken = if is_other { format!("; {usual} is taken") } else { String::new() };
            text.push_str(&format!("  {name:<7} {addr}  ({note}{taken})\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_port_that_was_taken_is_reported() {
        let ready = ReadyDocument {
            router: "127.0.0.1:41000".to_owned(),
            http: format!("127.0.0.1:{PORT_HTTP}"),
            resp: "127.0.0.1:41002".to_owned(),
            gremlin: "127.0.0.1:41003".to_owned(),
            nodes: Vec::new(),
            routers: Vec::new(),
            databases: Vec::new(),
            pid: 1,
            data: PathBuf::new(),
        };
        let text = Ports { router: None, http: None, resp: Some(0), gremlin: None }.text(&ready);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "kith dev: 0 nodes and 0 routers answer queries");
        assert!(lines[1].contains("127.0.0.1:41000") && lines[1].ends_with("; 7000 is taken)"), "{text}");
        assert!(!lines[2].contains("taken") && !lines[3].contains("taken"), "{text}");
        assert!(lines[3].contains("redis-cli -p 41002 "), "{text}");
        assert!(lines[4].ends_with("  (ws://127.0.0.1:41003/gremlin; 7182 is taken)"), "{text}");
    }
}
