//! `kith load graph`: turns files or built components into a new version of a graph.
//!
//! The components are built into the cluster's object store, or taken from where they were built, and then published: every
//! node fetches and opens the new version before one commit makes it current. Until then, and after any failure, the old
//! version serves.

mod columns;
mod flags;
mod publish;
mod summary;
mod taken;

pub use flags::GraphLoadFlags;
#[cfg(test)]
pub use summary::LoadedComponent;
pub use summary::{LoadReply, ReadFile};

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure, report_failure},
    output::{self, Format},
    publish::{check_thawed, lock, metered},
    store, table,
};
use anyhow::Context;
use clap::Subcommand;
use kith_build::{LoadOptions, LoadReport, LockedStore, Work, load_graph, partition_count};
use kith_client::{QueryError, RouterClient};
use kith_types::{ErrorCode, PartitionCount};
use kith_wire::documents::{StoreDocument, TopologyDocument};
use publish::{Load, OfferedComponent, publish};
use std::time::Instant;

#[derive(Debug, Subcommand)]
pub enum LoadCommand {
    /// Load an edge type, entities and members of a graph
    ///
    /// Files are CSV or TSV, JSON lines, Parquet or Arrow IPC: plain, .gz or .zst. A load replaces the edge type and
    /// the entity kinds that it contains as a whole; all others stay. A graph that a program
    /// has built is loaded with --built.
    Graph(Box<GraphLoadFlags>),
}

/// Loads a graph.
///
/// # Errors
/// If the files are refused, or the cluster cannot take the new version. A failed load changes nothing.
pub async fn run(target: &TargetFlags, format: Format, command: LoadCommand) -> anyhow::Result<Exit> {
    let LoadCommand::Graph(flags) = command;
    let started = Instant::now();
    let (report, version) =
        if flags.dry_run { (dry_run(&flags)?, None) } else { load(target, &flags).await? };
    let reply = LoadReply::new(&flags.graph, version, &report, started.elapsed());
    output::print(format, &reply, table::load::summary)?;
    Ok(Exit::Done)
}

/// Reads and checks all files. It needs no cluster.
fn dry_run(flags: &GraphLoadFlags) -> anyhow::Result<LoadReport> {
    let partitions = PartitionCount::new(1).expect("one is a valid count");
    Ok(build(&flags.options(0, partitions, std::env::temp_dir())?)?)
}

async fn load(target: &TargetFlags, flags: &GraphLoadFlags) -> anyhow::Result<(LoadReport, Option<u64>)> {
    flags.check()?;
    let router = connect::router(target).await?;
    let topology = router.topology().await.context("read the topology")?;
    check_not_live(&topology, &flags.graph)?;
    let push = format!("load-{:016x}", rand::random::<u64>());
    let store = lock(&topology.cluster, &flags.graph, Work::Load(&push))?;
    // Read the record under the lock: only then can no other load change it.
    let graph = known(&router, &flags.graph).await?;
    graph.as_ref().map_or(Ok(()), check_thawed)?;
    store.clear_unfinished(graph.as_ref())?;
    let partitions = partition_count(&topology)?;
    let made = tokio::task::block_in_place(|| match &flags.built {
        Some(built) => taken::take(&store, &flags.graph, graph.as_ref(), built, partitions),
        None => build_here(&store, graph.as_ref(), flags, partitions),
    });
    let made = made.and_then(|(report, offered)| {
        columns::check(graph.as_ref(), &report, flags.drop_columns)?;
        Ok((report, offered))
    });
    let (report, offered) = made.inspect_err(|_| {
        // A component that cannot be removed does no harm: without a manifest it is not a version.
        let _ = store.clear_unfinished(graph.as_ref());
    })?;
    let load = Load { graph: &flags.graph, push: &push, node_wait_ms: flags.node_wait_ms };
    match publish(&router, load, &report, offered).await {
        Ok(committed) => {
            store.mark_finished();
            Ok((report, Some(committed)))
        }
        Err(unpublished) => {
            if unpublished.is_certain {
                clear(&router, &flags.graph, &store).await;
            }
            Err(unpublished.named(&flags.graph, || format!("publish graph {}", flags.graph)))
        }
    }
}

/// Refuses the name of a live graph before anything is built. Publishing checks the name again.
fn check_not_live(topology: &TopologyDocument, graph: &str) -> Result<(), Failure> {
    if topology.live.iter().all(|live| live.name != graph) {
        return Ok(());
    }
    let message = format!("{graph:?} is a live graph: it takes writes, and cannot be loaded");
    Err(Failure::new(ErrorCode::LiveGraph, message, "load under another name; nothing was built"))
}

/// Builds components from the files, in the object store.
fn build_here(
    store: &LockedStore,
    graph: Option<&StoreDocument>,
    flags: &GraphLoadFlags,
    partitions: PartitionCount,
) -> Result<(LoadReport, Vec<OfferedComponent>), Failure> {
    let version = store.next_version(graph)?;
    flags.check_against(graph)?;
    store.mark_unfinished(version)?;
    let options = flags.options(version, partitions, store.objects().to_owned())?;
    let report = build(&options)?;
    upload(store, &report)?;
    let offered = OfferedComponent { folder: store.folder_of(version), url: None };
    let offered = vec![offered; report.components.len()];
    Ok((report, offered))
}

/// Removes what a failed load built. The marker stays, so that the next load removes what cannot be removed now.
async fn clear(router: &RouterClient, graph: &str, store: &LockedStore) {
    // Read the record again: components that the cluster refers to by now must not be touched, whatever the router answered
    // before.
    let Ok(graph) = known(router, graph).await else { return };
    let _ = store.clear_unfinished(graph.as_ref());
}

/// Builds the components and shows the progress. Errors quote the invalid lines of the files.
fn build(options: &LoadOptions) -> Result<LoadReport, Failure> {
    metered(|progress| load_graph(options, progress)).map_err(report_failure)
}

fn upload(store: &LockedStore, report: &LoadReport) -> Result<(), Failure> {
    let sent = metered(|on_progress| {
        report.components.iter().try_for_each(|(manifest, _)| {
            let (name, version) = (&manifest.component, manifest.version.0);
            let folder = store.component(name).join(version.to_string());
            store.upload(None, name, version, &folder, on_progress)
        })
    });
    Ok(sent?)
}

/// Returns the graph's record with all its versions, or `None` if there is no such graph.
async fn known(router: &RouterClient, graph: &str) -> anyhow::Result<Option<StoreDocument>> {
    match store::described(router, graph).await {
        Ok(document) => Ok(Some(document)),
        Err(error) if is_unknown(&error) => Ok(None),
        Err(error) => Err(error.context("read the graph's record")),
    }
}

fn is_unknown(error: &anyhow::Error) -> bool {
    error.downcast_ref::<QueryError>().is_some_and(|error| error.code() == ErrorCode::UnknownStore)
}
