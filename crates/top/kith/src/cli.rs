//! The commands of `kith`, and the flags that all of them share.

#[cfg(feature = "sim")]
use crate::sim;
use crate::write::LiveCommand;
use crate::{
    cluster,
    compute::{self, AggregateFlags, ComputeFlags},
    connect::{SecurityFlags, TargetFlags},
    explain::{self, ExplainFlags},
    export::{self, ExportFlags},
    failure::{Exit, Failure},
    graph::{self, GraphCommand},
    gremlin::{self, GremlinFlags},
    import::{self, ImportFlags},
    load::{self, LoadCommand},
    output::{self, Format},
    read::{self, GetFlags, MultiGetFlags},
    run, schema,
    serve::{DatabaseArgs, DevArgs, NodeArgs, RoleProcess, RouterArgs},
    store,
};
use anyhow::Context;
use clap::{Args, CommandFactory, Parser, Subcommand};
use kith_query::line::{AssocOperation, AssocWrite, ObjectOperation, ObjectWrite};
use kith_types::ErrorCode;
use std::{
    num::NonZeroU16,
    path::{Path, PathBuf},
    pin::{Pin, pin},
};

/// Serves social graphs from replica groups, and bounds the fan-out of every query
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110)]
pub struct Cli {
    /// Flags that every command has.
    #[command(flatten)]
    pub global: GlobalFlags,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command has.
#[derive(Clone, Debug, Args)]
pub struct GlobalFlags {
    /// Output format
    #[arg(short, long, value_enum, global = true, default_value_t, value_name = "FORMAT")]
    pub output: Format,
    /// Print ids in JSON as texts, because programs in JavaScript round numbers above 2^53
    #[arg(long, global = true)]
    pub ids_as_text: bool,
    /// How to reach the cluster.
    #[command(flatten)]
    pub target: TargetFlags,
}

// A new command is one variant here, one arm in `run` and one module.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a whole cluster on this machine
    Dev(Box<DevArgs>),
    /// Query a graph; list, describe and drop graphs
    #[command(subcommand)]
    Graph(GraphCommand),
    /// Read and write objects of a live graph
    #[command(subcommand)]
    Object(LiveCommand<ObjectOperation, ObjectWrite>),
    /// Read and write associations of a live graph
    #[command(subcommand)]
    Assoc(LiveCommand<AssocOperation, AssocWrite>),
    /// Evaluate a traversal in Gremlin over a graph
    Gremlin(GremlinFlags),
    /// Print the plan of a query without running it
    Explain(ExplainFlags),
    /// Print the value of a key of a store
    Get(GetFlags),
    /// Read many keys of a store at once
    Mget(MultiGetFlags),
    /// Compute scores, projections, counts and the top k records on the nodes
    Compute(Box<ComputeFlags>),
    /// Count records by the values of a field
    Aggregate(Box<AggregateFlags>),
    /// Answer the requests of a file, one JSON object per line
    Run(run::RunFlags),
    /// Load data into the cluster
    #[command(subcommand)]
    Load(LoadCommand),
    /// Write the objects or associations of a file to a live graph
    ///
    /// The file is CSV or TSV, JSON lines, Parquet or Arrow IPC: plain, .gz or .zst. Rows that exist are overwritten, so that
    /// repeating an import does no harm. The same command continues an import that was interrupted.
    Import(Box<ImportFlags>),
    /// Print the objects or associations of a live graph in the form that `kith import` reads
    Export(ExportFlags),
    /// Manage stores and their versions
    #[command(subcommand)]
    Store(Box<store::StoreCommand>),
    /// Create live graphs and change their types
    #[command(subcommand)]
    Schema(schema::SchemaCommand),
    /// Show the cluster and change its shape
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Watch nodes, groups and routers: rates, latencies, pending keys, hedges and failures
    Top(kith_terminal::top::TopFlags),
    /// Benchmark a cluster, or the build of a graph
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Bench(kith_terminal::bench::BenchCommand),
    /// Simulate clusters, and draw the figures of the Moolle paper
    #[cfg(feature = "sim")]
    #[command(subcommand)]
    Sim(sim::SimCommand),
    /// Run a node, which serves partitions
    Node(Box<NodeArgs>),
    /// Run a router, which answers the queries of clients and caches networks
    Router(Box<RouterArgs>),
    /// Run a database process, which keeps the rows of live graphs in files
    Database(Box<DatabaseArgs>),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder, one for each command
    Man {
        /// An existing folder
        folder: PathBuf,
    },
}

/// Runs a command.
///
/// # Errors
/// The error of the command; see `failure::ErrorReport`.
pub fn run(cli: Cli) -> anyhow::Result<Exit> {
    let GlobalFlags { output, ids_as_text, target } = cli.global;
    check_target(&target, &cli.command)?;
    if ids_as_text {
        check_ids(&cli.command)?;
        kith_terminal::ids::print_as_text();
    }
    match cli.command {
        Command::Graph(command) => block_on(graph::run(&target, output, command)),
        Command::Object(command) => block_on(command.run(&target, output)),
        Command::Assoc(command) => block_on(command.run(&target, output)),
        Command::Gremlin(flags) => block_on(gremlin::run(&target, output, flags)),
        Command::Explain(flags) => block_on(explain::explain(&target, output, flags)),
        Command::Get(flags) => block_on(read::get(&target, output, flags)),
        Command::Mget(flags) => block_on(read::multi_get(&target, output, flags)),
        Command::Compute(flags) => block_on(compute::compute(&target, output, *flags)),
        Command::Aggregate(flags) => block_on(compute::aggregate(&target, output, *flags)),
        Command::Run(flags) => block_on(run::run(&target, flags)),
        Command::Load(command) => block_on(load::run(&target, output, command)),
        Command::Export(flags) => block_on(export::run(&target, output, flags)),
        Command::Import(flags) => block_on(import::run(&target, output, *flags)),
        Command::Store(command) => block_on(store::run(&target, output, *command)),
        Command::Schema(command) => block_on(schema::run(&target, output, command)),
        Command::Cluster(command) => block_on(cluster::run(&target, output, command)),
        Command::Top(flags) => block_on(kith_terminal::top::run(&target, output, &flags)),
        #[cfg(feature = "bench")]
        Command::Bench(command) => block_on(kith_terminal::bench::run(&target, output, command)),
        #[cfg(feature = "sim")]
        Command::Sim(command) => sim::run(output, command),
        Command::Dev(args) => args.run(output, target.ready_file),
        Command::Node(args) => args.run(target.security),
        Command::Router(args) => args.run(target.security),
        Command::Database(args) => args.run(target.security),
        Command::Completions { shell } => completions(shell),
        Command::Man { folder } => manual(&folder),
    }
}

/// Refuses flags that have no effect on this command.
fn check_target(target: &TargetFlags, command: &Command) -> Result<(), Failure> {
    if target.direct && !asks(command) {
        let help = "leave it out; it works with `kith graph` and `kith explain` questions, `kith object`, `kith assoc`, `kith get`, `kith mget`, `kith compute`, `kith aggregate`, `kith run`, `kith import`, `kith bench graph` and `kith bench kv`";
        return Err(Failure::usage("--direct does not apply here: this command sends no queries", help));
    }
    if !target.controllers.is_empty() && !target.direct {
        return Err(Failure::not_direct("controllers"));
    }
    if target.transport.is_some() && !asks(command) {
        let message = "--transport does not apply here: this command sends no queries";
        let help = "leave it out; routers and nodes read theirs from `transport` in [session]";
        return Err(Failure::usage(message, help));
    }
    let SecurityFlags { tls_cert, tls_key, .. } = &target.security;
    if matches!(command, Command::Dev(_)) && (tls_cert.is_some() || tls_key.is_some()) {
        let message =
            "--tls-cert and --tls-key do not apply here: `kith dev` serves this machine only, without TLS";
        return Err(Failure::usage(message, "`kith node` and `kith router` take them"));
    }
    Ok(())
}

/// Refuses `--ids-as-text` with a command that prints no ids.
fn check_ids(command: &Command) -> Result<(), Failure> {
    let prints_ids = match command {
        Command::Import(_) | Command::Explain(_) | Command::Aggregate(_) => false,
        #[cfg(feature = "bench")]
        Command::Bench(_) => false,
        Command::Store(command) => {
            matches!(**command, store::StoreCommand::Where(_) | store::StoreCommand::Export(_))
        }
        command => asks(command),
    };
    if prints_ids {
        return Ok(());
    }
    let message = "--ids-as-text does not apply here: this command prints no ids in JSON";
    Err(Failure::usage(
        message,
        "leave it out; it works with `kith run`, and with commands that answer questions",
    ))
}

/// Whether a command sends queries. Only such a command can go to the nodes directly.
fn asks(command: &Command) -> bool {
    match command {
        Command::Graph(GraphCommand::Ask(_))
        | Command::Object(_)
        | Command::Assoc(_)
        | Command::Explain(_)
        | Command::Get(_)
        | Command::Mget(_)
        | Command::Compute(_)
        | Command::Aggregate(_)
        | Command::Gremlin(_)
        | Command::Import(_)
        | Command::Run(_) => true,
        #[cfg(feature = "bench")]
        Command::Bench(command) => {
            matches!(
                command,
                kith_terminal::bench::BenchCommand::Graph(_) | kith_terminal::bench::BenchCommand::Kv(_)
            )
        }
        #[cfg(feature = "sim")]
        Command::Sim(_) => false,
        Command::Graph(_)
        | Command::Load(_)
        | Command::Export(_)
        | Command::Store(_)
        | Command::Schema(_)
        | Command::Cluster(_)
        | Command::Top(_)
        | Command::Dev(_)
        | Command::Node(_)
        | Command::Router(_)
        | Command::Database(_)
        | Command::Completions { .. }
        | Command::Man { .. } => false,
    }
}

/// Runs a future on all cores.
///
/// # Errors
/// The error of the future.
pub fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    block_on_threads(None, work)
}

/// Runs a future on `threads` threads, or on all cores if `threads` is `None`.
///
/// # Errors
/// The error of the future.
pub fn block_on_threads<T>(
    threads: Option<NonZeroU16>,
    work: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    // Behind a pointer, the code of the runtime is compiled once for each type of result, not for each command.
    let work: Pin<&mut dyn Future<Output = anyhow::Result<T>>> = pin!(work);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads.get().into());
    }
    let runtime = builder.enable_all().build().context("start the runtime")?;
    let done = runtime.block_on(work);
    // A task that still waits for standard input must not keep the process alive.
    runtime.shutdown_background();
    done
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kith", &mut script);
    output::print_bytes(&script)?;
    Ok(Exit::Done)
}

fn manual(folder: &Path) -> anyhow::Result<Exit> {
    clap_mangen::generate_to(Cli::command(), folder).map_err(|error| {
        let message = format!("cannot write manual pages into {}: {error}", folder.display());
        Failure::new(
            ErrorCode::CannotWrite,
            message,
            "check that the folder exists, its permissions and the free space",
        )
    })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_live::ListPlace;
    use kith_query::{
        AssocCountQuery, AssocGetQuery, AssocRangeQuery, AssocTimeRangeQuery, ObjectGetQuery, Operation,
    };

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_operation_takes_the_query_options() {
        let line = "kith graph path 1 2 --max 4 -g v --fan-out groups=2 --partial -o json --router a:1,b:2";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        assert_eq!(cli.global.target.routers, ["a:1", "b:2"]);
        let Command::Graph(GraphCommand::Ask(question)) = cli.command else { panic!("an operation") };
        assert!(question.line.read.partial && question.line.options.graph == "v");
    }

    #[test]
    fn reads_of_live_graphs_are_commands_of_their_own() {
        let parse = |line: &str| Cli::try_parse_from(line.split(' ')).unwrap().command;
        let operation = |line: &str| match parse(line) {
            Command::Object(LiveCommand::Read(question)) => question.line.query().operation,
            Command::Assoc(LiveCommand::Read(question)) => question.line.query().operation,
            Command::Explain(flags) => flags.command.expect("a query").line().query().operation,
            _ => panic!("{line}"),
        };
        let objects =
            |ids: &[u64], is_single| Operation::ObjectGet(ObjectGetQuery { ids: ids.to_vec(), is_single });
        assert_eq!(operation("kith object get 5 -g v"), objects(&[5], true));
        assert_eq!(operation("kith object get 5 7 -g v --critical --group 1"), objects(&[5, 7], false));
        assert_eq!(operation("kith explain object get 5 -g v"), objects(&[5], true));
        let kind = || "likes".to_owned();
        let get = AssocGetQuery {
            id1: 5,
            kind: kind(),
            ids: vec![3, 4],
            high: Some(9),
            low: None,
            with_data: true,
            with_versions: true,
        };
        let line = "kith assoc get --id1 5 --type likes --ids 3,4 --high 9 --with-data --with-versions -g v";
        assert_eq!(operation(line), get.into());
        let count = AssocCountQuery { id1: 5, kind: kind() };
        assert_eq!(operation("kith assoc count --id1 5 --type likes -g v"), count.into());
        let range = AssocRangeQuery {
            id1: 5,
            kind: kind(),
            pos: None,
            with_data: false,
            with_versions: false,
            limit: Some(2),
            after: Some(ListPlace { time: 90, id2: 4 }),
        };
        let line = "kith assoc range --id1 5 --type likes --after 90,4 --limit 2 -g v";
        assert_eq!(operation(line), range.into());
        let times = AssocTimeRangeQuery {
            id1: 5,
            kind: kind(),
            high: None,
            low: Some(1),
            with_data: false,
            with_versions: false,
            limit: None,
        };
        let line = "kith explain assoc time-range --id1 5 --type likes --low 1 -g v";
        assert_eq!(operation(line), times.into());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "kith graph connections -g v",
            "kith graph connections 1",
            "kith graph connections -1 -g v",
            "kith graph distance 1 -g v",
            "kith graph connections 1 -g v --fan-out all",
            "kith graph connections 1 -g v --deadline-ms 0",
            "kith graph reticulate 1 -g v",
            "kith graph object-get 1 -g v",
            "kith object get -g v",
            "kith assoc count --id1 5 -g v",
            "kith assoc count --id1 5 --type likes -g v --ticket no-ticket",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
