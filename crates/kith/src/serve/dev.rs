//! `kith dev`: a whole cluster on this machine.

use super::{
    FetchP99, FetchRate, PlacementFlag, ScrubRate, begin, fetch_p99, fetch_rate, scrub_rate, settings,
    start_failure, stop_signal,
};
use crate::{cli::block_on_threads, connect::WELL_KNOWN, failure::Exit};
use clap::Args;
use kith_objects::Location;
use kith_server::{
    dev::{Dev, DevOptions, Shape},
    place::ReadFrom,
};
use std::{num::NonZeroU16, path::PathBuf};

/// Run a whole cluster on this machine
#[derive(Args, Debug)]
pub struct DevArgs {
    /// How replicas are placed: by groups that each hold everything, or around one ring [default: groups, or as the data
    /// directory has it]
    #[arg(long, value_enum)]
    placement: Option<PlacementFlag>,
    /// Replica groups; on a ring, the replicas of each partition [default: 2, or as the data directory has them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    groups: Option<u32>,
    /// Nodes per group; on a ring, all of them [default: 3, or as the data directory has them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    nodes: Option<u32>,
    /// Partitions, fixed for the life of a cluster [default: 24, or as the data directory has them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    partitions: Option<u32>,
    /// Zones that the nodes of each group are spread over, in turn; of a new cluster
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    zones: Vec<String>,
    /// Routers; several hold one network cache together
    #[arg(long = "routers", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    router_count: u32,
    /// One operating-system process per node and router, supervised
    #[arg(long)]
    processes: bool,
    /// Threads that answer requests [default: one a processor; with --processes, each its share of the processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroU16>,
    /// Data directory, kept across restarts [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Object store for built versions: s3://BUCKET/PREFIX, gs://…, az://…; keys and endpoint from the environment
    /// [default: a folder of the data directory]
    #[arg(long, value_name = "URL", value_parser = bucket)]
    objects: Option<Location>,
    /// Port of the first router; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Port of the first router for Redis clients; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    resp_port: u16,
    /// Settings of the routers (TOML); docs/operating/settings.md lists the keys
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Append every query to a file that `kith run` and `kith bench graph` can replay
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// How fast each node reads all that it holds again, to repair what is damaged; `off`: only what reads find
    #[arg(long, value_name = "RATE", value_parser = scrub_rate, default_value = "10MiB/s")]
    scrub_rate: ScrubRate,
    /// How fast each node pulls versions, copies and repairs, all together; `off`: no limit
    #[arg(long, value_name = "RATE", value_parser = fetch_rate, default_value = "off")]
    fetch_rate: FetchRate,
    /// Fetches slow down while the p99 of a node's reads is above so many times what it is without them; `off`: never
    #[arg(long, value_name = "RATIO", value_parser = fetch_p99, default_value = "1.2")]
    fetch_p99: FetchP99,
    /// Where versions that were built elsewhere may be read from, and for which stores, as people,person-*=s3://BUCKET/PREFIX
    /// [default: nowhere]
    #[arg(long, value_name = "[STORES=]PLACE")]
    read_from: Vec<ReadFrom>,
    /// End when standard input ends
    #[arg(long)]
    end_with_stdin: bool,
}

/// A folder would have to be the same on all machines; the data directory has one.
fn bucket(text: &str) -> Result<Location, String> {
    match text.parse() {
        Ok(location @ Location::Bucket(_)) => Ok(location),
        Ok(Location::Folder(_)) => {
            Err("it is no URL of an object store; without --objects, a folder is used".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn port(addr: &str) -> &str {
    addr.rsplit_once(':').map_or(addr, |(_, port)| port)
}

impl DevArgs {
    /// Serves until told to end. Says what listens where in `ready_file`, else where clients look first.
    ///
    /// # Errors
    /// If the cluster cannot start; nothing of it is left running then.
    pub fn run(self, ready_file: Option<PathBuf>) -> anyhow::Result<Exit> {
        // A supervisor answers nothing itself.
        let threads = self.threads.filter(|_| !self.processes);
        block_on_threads(threads, self.serve(ready_file))
    }

    async fn serve(self, ready_file: Option<PathBuf>) -> anyhow::Result<Exit> {
        let ready_file = ready_file.unwrap_or_else(|| PathBuf::from(WELL_KNOWN[0]));
        begin("warn");
        let mut router = settings(self.config.as_deref())?;
        router.record = self.record.or(router.record);
        if !self.read_from.is_empty() {
            router.read_from = self.read_from;
        }
        let options = DevOptions {
            shape: Shape {
                placement: self.placement.map(PlacementFlag::strategy),
                groups: self.groups,
                nodes: self.nodes,
                partitions: self.partitions,
                zones: self.zones,
                // All of its zones are this machine.
                allow_shared_zones: true,
                ..Shape::default()
            },
            routers: self.router_count,
            processes: self.processes,
            threads: self.threads,
            data: self.data,
            objects: self.objects.map(|location| location.to_string()),
            ready_file: ready_file.clone(),
            port: self.port,
            resp_port: self.resp_port,
            router,
            scrub_rate: self.scrub_rate.0,
            fetch_rate: self.fetch_rate.0,
            fetch_p99: self.fetch_p99.ratio(),
        };
        let dev = Dev::start(options, stop_signal(self.end_with_stdin)).await.map_err(start_failure)?;
        let ready = dev.ready();
        let count =
            |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
        let (nodes, routers) = (count(ready.nodes.len(), "node"), count(ready.routers.len(), "router"));
        eprintln!("kith dev: {nodes} and {routers} answer queries");
        eprintln!("  router  {}", ready.router);
        eprintln!("  http    {}  (/healthz /readyz /metrics)", ready.http);
        eprintln!("  redis   {}  (redis-cli -p {} get STORE:KEY)", ready.resp, port(&ready.resp));
        eprintln!("  meta    {}  (for `kith node` that is to join)", dev.metadata());
        eprintln!("  ready   {}", ready_file.display());
        eprintln!("  next    kith load graph testdata/kith-village/edges.csv.gz --graph village");
        dev.run().await;
        Ok(Exit::Done)
    }
}
