//! `kith graph list|describe|properties|drop`: lists, describes, joins and drops graphs.

use crate::{
    confirm::{confirm_drop, print_dropped},
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    names::store_name,
    output::{self, Format},
    reply::graphs::{GraphReply, LiveReply},
    table::graphs,
    who::who,
};
use anyhow::Context;
use clap::Subcommand;
use kith_client::RouterClient;
use kith_query::line::{GraphOperation, ReadCommand};
use kith_wire::LookupError;
use kith_wire::v1::{self, schema_command::Command as Schema, store_request::Command};
use serde::Serialize;

#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    /// Ask a graph.
    #[command(flatten)]
    Ask(Box<ReadCommand<GraphOperation>>),
    /// List the graphs
    List,
    /// Show a loaded graph's edge types and entity kinds, or a live graph's types and storage
    Describe {
        /// The graph
        graph: String,
    },
    /// Take the properties of a loaded graph's members from a store of records, for traversals in Gremlin
    Properties {
        /// The graph
        graph: String,
        /// The store, whose keys are the ids of members
        #[arg(long, value_parser = store_name, required_unless_present = "none")]
        store: Option<String>,
        /// Take no properties from any store
        #[arg(long, conflicts_with = "store")]
        none: bool,
    },
    /// Remove a graph
    Drop {
        /// The graph
        graph: String,
        /// Do not ask for confirmation; required without a terminal
        #[arg(long)]
        yes: bool,
        /// Leave the rows of a live graph where they are, even if their database cannot be reached
        #[arg(long)]
        keep_rows: bool,
    },
}

/// All graphs of the cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ListReply {
    graphs: Vec<GraphReply>,
}

/// Runs a command.
///
/// # Errors
/// If the cluster does not answer, or there is no such graph.
pub async fn run(target: &TargetFlags, format: Format, command: GraphCommand) -> anyhow::Result<Exit> {
    match command {
        GraphCommand::Ask(question) => crate::ask::ask(target, format, &question.line).await,
        GraphCommand::List => {
            let reply = ListReply { graphs: graphs(&connect::router(target).await?, |_| true).await? };
            output::print(format, &reply, |reply| graphs::list(&reply.graphs))?;
            Ok(Exit::Done)
        }
        GraphCommand::Describe { graph } => print_graph(&connect::router(target).await?, format, graph).await,
        GraphCommand::Drop { graph, yes, keep_rows } => {
            confirm_drop(&format!("graph {graph:?}"), yes)?;
            let router = connect::router(target).await?;
            let topology = router.topology().await.context("read the topology")?;
            let rows = match topology.stores.iter().any(|store| store.name == graph) {
                true => drop_loaded(&router, &graph, keep_rows).await.map(|()| None),
                false => drop_live(&router, &graph, keep_rows).await.map(Some),
            };
            let rows = rows.with_context(|| format!("drop graph {graph}"))?;
            print_dropped(format, graph, rows)?;
            Ok(Exit::Done)
        }
        GraphCommand::Properties { graph, store, none: _ } => {
            let router = connect::router(target).await?;
            let alter = v1::AlterStore { properties: Some(store.unwrap_or_default()), ..Default::default() };
            ask(&router, &graph, Command::Alter(alter)).await?;
            print_graph(&router, format, graph).await
        }
    }
}

async fn print_graph(router: &RouterClient, format: Format, graph: String) -> anyhow::Result<Exit> {
    let graphs = graphs(router, |name| name == graph).await?;
    let known = graphs.iter().map(|graph| graph.name().to_owned()).collect();
    let found = graphs.into_iter().find(|candidate| candidate.name() == graph);
    let found = found.ok_or(LookupError::UnknownGraph { name: graph, known })?;
    if let GraphReply::Live(LiveReply { graph, types_error: Some(reason), .. }) = found {
        return Err(LookupError::TypesUnavailable { graph, reason }.into());
    }
    output::print(format, &found, graphs::describe)?;
    Ok(Exit::Done)
}

async fn ask(router: &RouterClient, graph: &str, command: Command) -> anyhow::Result<()> {
    let request = v1::StoreRequest { store: graph.to_owned(), who: who(), command: Some(command) };
    router.store(request).await?;
    Ok(())
}

async fn drop_loaded(router: &RouterClient, graph: &str, keep_rows: bool) -> anyhow::Result<()> {
    if keep_rows {
        let message = format!("graph {graph:?} was loaded: it has no rows");
        return Err(Failure::usage(message, "leave --keep-rows out").into());
    }
    ask(router, graph, Command::Drop(v1::DropStore { graph: true })).await
}

/// Drops a live graph. Returns a sentence that says whether its rows were removed.
async fn drop_live(router: &RouterClient, graph: &str, keep_rows: bool) -> anyhow::Result<String> {
    let drop = Some(Schema::Drop(v1::DropGraph { keep_rows }));
    let request = v1::SchemaCommand { graph: graph.to_owned(), who: who(), command: drop };
    let storage = router.schema_of_graph(request).await?.storage;
    Ok(match keep_rows {
        true => format!("its rows are left in {storage}"),
        false => format!("its rows in {storage} were removed"),
    })
}

async fn graphs(router: &RouterClient, has_types: impl Fn(&str) -> bool) -> anyhow::Result<Vec<GraphReply>> {
    let topology = router.topology_with_types(has_types).await.context("read the topology")?;
    Ok(GraphReply::all(topology))
}
