//! `kith graph list|describe|drop`: which graphs there are.

pub mod reply;

use crate::{
    confirm::{confirm_drop, print_dropped},
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
    table::graphs,
    who::who,
};
use anyhow::Context;
use clap::Subcommand;
use kith_client::{QueryError, RouterClient};
use kith_lines::GraphLine;
use kith_wire::v1::{self, store_request::Command};
use reply::GraphReply;
use serde::Serialize;

#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    /// Ask a graph.
    #[command(flatten)]
    Ask(Box<GraphLine>),
    /// List the graphs
    List,
    /// Show a graph's edge types and entity kinds
    Describe {
        /// The graph
        graph: String,
    },
    /// Remove a graph
    Drop {
        /// The graph
        graph: String,
        /// Do not ask for confirmation; required without a terminal
        #[arg(long)]
        yes: bool,
    },
}

/// All graphs.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ListReply {
    graphs: Vec<GraphReply>,
}

/// Runs a command.
///
/// # Errors
/// If the cluster does not answer or there is no such graph.
pub async fn run(target: &TargetFlags, format: Format, command: GraphCommand) -> anyhow::Result<Exit> {
    match command {
        GraphCommand::Ask(question) => crate::ask::ask(target, format, &question).await,
        GraphCommand::List => {
            let mut reply = ListReply { graphs: graphs(&connect::router(target).await?).await? };
            reply.graphs.sort_by(|a, b| a.graph.cmp(&b.graph));
            output::print(format, &reply, |reply| graphs::list(&reply.graphs))?;
            Ok(Exit::Done)
        }
        GraphCommand::Describe { graph } => {
            let graphs = graphs(&connect::router(target).await?).await?;
            let known = graphs.iter().map(|graph| graph.graph.clone()).collect();
            let found = graphs.into_iter().find(|candidate| candidate.graph == graph);
            let found = found.ok_or(QueryError::UnknownGraph { name: graph, known })?;
            output::print(format, &found, graphs::describe)?;
            Ok(Exit::Done)
        }
        GraphCommand::Drop { graph, yes } => {
            confirm_drop(&format!("graph {graph:?}"), yes)?;
            let router = connect::router(target).await?;
            let drop = Some(Command::Drop(v1::DropStore { graph: true }));
            let request = v1::StoreRequest { store: graph.clone(), who: who(), command: drop };
            router.store(request).await.with_context(|| format!("drop graph {graph}"))?;
            print_dropped(format, graph)?;
            Ok(Exit::Done)
        }
    }
}

async fn graphs(router: &RouterClient) -> anyhow::Result<Vec<GraphReply>> {
    let topology = router.topology().await.context("read the topology")?;
    Ok(topology.graphs().cloned().map(GraphReply::from).collect())
}
