//! `kith gremlin` and `kith explain --gremlin`.

use crate::{
    connect::{self, TargetFlags},
    failure::Exit,
    output::{self, Format},
};
use clap::Args;
use kith_query::line::{GremlinFields, GremlinLine, ReadOptions};
use kith_terminal::gremlin::{self, TraversalRunner, Words};

/// A traversal and its options.
#[derive(Clone, Debug, PartialEq, Args)]
pub struct GremlinFlags {
    /// The traversal, such as `g.V(42).out("follows").count()`. Without one, a prompt reads traversals from the terminal, or each
    /// line of standard input is one
    gremlin: Option<String>,
    /// The graph to traverse
    #[arg(short, long)]
    graph: String,
    #[command(flatten)]
    options: ReadOptions,
}

/// Evaluates traversals and prints their results.
///
/// # Errors
/// If the traversal is wrong, or the cluster does not answer.
pub async fn run(target: &TargetFlags, format: Format, flags: GremlinFlags) -> anyhow::Result<Exit> {
    let GremlinFlags { gremlin, graph, options } = flags;
    let asking = TraversalRunner { service: connect::service(target).await?, graph, options, format };
    let Some(gremlin) = gremlin else {
        let words = async {
            match connect::router(target).await {
                Ok(router) => Words::of(&router, &asking.graph).await,
                Err(_) => Words::default(),
            }
        };
        return gremlin::interact(&asking, words).await;
    };
    output::print_bytes(asking.answer(&gremlin, false).await?.as_bytes())?;
    Ok(Exit::Done)
}

/// Prints what a traversal would do.
///
/// # Errors
/// The errors of [`run`].
pub async fn explain(target: &TargetFlags, format: Format, line: &GremlinLine) -> anyhow::Result<Exit> {
    let reply = gremlin::explain(&*connect::service(target).await?, line).await?;
    output::print(format, &reply, gremlin::explained)?;
    Ok(Exit::Done)
}

/// A traversal without variables.
pub fn line(graph: String, gremlin: String, options: ReadOptions) -> GremlinLine {
    GremlinLine { fields: GremlinFields { graph, gremlin, bindings: serde_json::Map::new() }, options }
}
