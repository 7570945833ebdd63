//! `kith explain connections|network|…`: prints the plan of a query without running it.

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
    reply::ExplainReply,
    table,
};
use clap::Subcommand;
use kith_lines::{AssocOperation, GraphLine, ObjectOperation, Operation, ReadCommand};

/// The queries that can be explained.
#[derive(Debug, Subcommand)]
pub enum ExplainCommand {
    /// Explain a query of a graph.
    #[command(flatten)]
    Graph(Box<ReadCommand<Operation>>),
    /// Explain a read of objects of a live graph
    #[command(subcommand)]
    Object(ReadCommand<ObjectOperation>),
    /// Explain a read of associations of a live graph
    #[command(subcommand)]
    Assoc(ReadCommand<AssocOperation>),
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
pub async fn explain(target: &TargetFlags, format: Format, question: &GraphLine) -> anyhow::Result<Exit> {
    question.check()?;
    let service = connect::service(target).await?;
    let (query, options) = (question.query(), question.query_options());
    let reply = ExplainReply::from(service.explain(&question.options.graph, &query, &options).await?);
    output::print(format, &reply, table::plan::explain)?;
    Ok(Exit::Done)
}
