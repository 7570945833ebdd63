//! `kith gremlin`, and lines of `kith run` with a traversal.

use crate::{
    connect::{self, TargetFlags},
    failure::{Exit, Failure},
    output::{self, Format},
    reply::ProfileReply,
    table::plan,
};
use clap::Args;
use kith_client::{Question, Reply, Request, Service};
use kith_gremlin::plain;
use kith_lines::{GremlinFields, GremlinLine, ReadOptions};
use serde::Serialize;
use std::sync::Arc;

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

/// The results of a traversal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GremlinReply {
    /// The results as plain JSON, each as often as it occurs.
    pub result: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReply>,
}

/// Evaluates a traversal and prints its results.
///
/// # Errors
/// If the traversal is wrong, or the cluster does not answer.
pub async fn run(target: &TargetFlags, format: Format, flags: GremlinFlags) -> anyhow::Result<Exit> {
    let GremlinFlags { gremlin, graph, options } = flags;
    let fields = GremlinFields { graph, gremlin, bindings: serde_json::Map::new() };
    let service = connect::service(target).await?;
    let reply = traverse(&*service, &GremlinLine { fields, options }).await?;
    output::print(format, &reply, GremlinReply::text)?;
    Ok(Exit::Done)
}

/// Evaluates a traversal.
///
/// # Errors
/// The errors of [`run`].
pub async fn traverse(service: &dyn Service, line: &GremlinLine) -> anyhow::Result<GremlinReply> {
    let GremlinLine { fields, options } = line;
    let question = Question::Gremlin { graph: fields.graph.clone(), query: fields.query()? };
    let request = Arc::new(Request { question, options: options.query_options() });
    let Reply::Gremlin(answer) = service.call(request).await? else {
        anyhow::bail!("a traversal got the reply of another request");
    };
    let result = plain::results(&answer.results)
        .map_err(|error| Failure::new(error.code, error.message, "see docs/gremlin.md"))?;
    Ok(GremlinReply { result, profile: answer.profile.as_ref().map(ProfileReply::from) })
}

impl GremlinReply {
    /// The results as text, one per line.
    fn text(&self) -> String {
        let line = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => format!("{text}\n"),
            other => format!("{other}\n"),
        };
        let lines = self.result.iter().map(line);
        lines.chain(self.profile.iter().map(plan::render)).collect()
    }
}
