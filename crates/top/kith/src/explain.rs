//! `kith explain connections|network|… | --gremlin TEXT`: prints the plan of a query without running it.

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    gremlin,
    output::{self, Format},
    reply::ExplainReply,
    table,
};
use clap::{Args, Subcommand};
use kith_query::line::{
    AssocOperation, GraphLine, GraphOperation, ObjectOperation, ReadCommand, ReadOptions,
};

/// The query to explain: a command, or a traversal.
#[derive(Debug, Args)]
#[command(subcommand_negates_reqs = true)]
pub struct ExplainFlags {
    /// Explain a traversal in Gremlin, such as `g.V(42).out("follows").count()`
    #[arg(long, value_name = "TEXT", required = true)]
    gremlin: Option<String>,
    /// The graph to traverse
    #[arg(short, long, required = true)]
    graph: Option<String>,
    #[command(flatten)]
    options: ReadOptions,
    #[command(subcommand)]
    pub command: Option<ExplainCommand>,
}

/// The queries that can be explained.
#[derive(Debug, Subcommand)]
pub enum ExplainCommand {
    /// Explain a query of a graph.
    #[command(flatten)]
    Graph(Box<ReadCommand<GraphOperation>>),
    /// Explain a read of objects of a live graph
    #[command(subcommand)]
    Object(Box<ReadCommand<ObjectOperation>>),
    /// Explain a read of associations of a live graph
    #[command(subcommand)]
    Assoc(Box<ReadCommand<AssocOperation>>),
}

impl ExplainCommand {
    /// Returns the query to explain.
    pub fn line(&self) -> &GraphLine {
        match self {
            ExplainCommand::Graph(question) => &question.line,
            ExplainCommand::Object(question) => &question.line,
            ExplainCommand::Assoc(question) => &question.line,
        }
    }
}

/// Prints the plan of a question.
///
/// # Errors
/// If the question is invalid, or the service does not answer.
pub async fn explain(target: &TargetFlags, format: Format, flags: ExplainFlags) -> anyhow::Result<Exit> {
    let ExplainFlags { gremlin, graph, options, command } = flags;
    let Some(command) = command else {
        let (graph, gremlin) = (graph.unwrap_or_default(), gremlin.unwrap_or_default());
        return gremlin::explain(target, format, &gremlin::line(graph, gremlin, options)).await;
    };
    if gremlin.is_some() || graph.is_some() || options != ReadOptions::default() {
        let message = "the flags of a query follow its name, as in `kith explain network-size 42 --fan-out max`; --gremlin takes the place of a name";
        return Err(Failure::bad_request(message).into());
    }
    let question = command.line();
    question.check()?;
    let service = connect::service(target).await?;
    let (query, options) = (question.query(), question.query_options());
    let reply = ExplainReply::from(service.explain(&question.options.graph, &query, &options).await?);
    output::print(format, &reply, table::plan::explain)?;
    Ok(Exit::Done)
}
