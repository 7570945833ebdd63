//! `kith gremlin` and `kith explain --gremlin`.

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
};
use clap::Args;
use kith_lines::{GremlinFields, GremlinLine, ReadOptions};
use kith_terminal::gremlin::{self, GremlinReply};

/// A traversal and its options.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct GremlinFlags {
    /// The traversal, such as `g.V(42).out("follows").count()`
    gremlin: String,
    /// The graph to traverse
    #[arg(short, long)]
    graph: String,
    #[command(flatten)]
    options: ReadOptions,
}

/// Evaluates a traversal and prints its results.
///
/// # Errors
/// If the traversal is wrong, or the cluster does not answer.
pub async fn run(target: &TargetFlags, format: Format, flags: GremlinFlags) -> anyhow::Result<Exit> {
    let GremlinFlags { gremlin, graph, options } = flags;
    let line = line(graph, gremlin, options);
    let reply = gremlin::traverse(&*connect::service(target).await?, &line).await?;
    output::print(format, &reply, GremlinReply::text)?;
    Ok(Exit::Done)
}

/// Prints what a traversal would do.
///
/// # Errors
/// The errors of [`run`].
pub async fn explain(target: &TargetFlags, format: Format, line: &GremlinLine) -> anyhow::Result<Exit> {
    let reply = gremlin::explain(&*connect::service(target).await?, line).await?;
    output::print(format, &reply, |reply| format!("{}\n", reply.notes.join("\n")))?;
    Ok(Exit::Done)
}

/// A traversal without variables.
pub fn line(graph: String, gremlin: String, options: ReadOptions) -> GremlinLine {
    GremlinLine { fields: GremlinFields { graph, gremlin, bindings: serde_json::Map::new() }, options }
}
