//! Traversals in Gremlin, as commands of the terminal ask for them and print their results.

mod asking;
mod caret;
mod prompt;
mod steps;
mod words;

pub use asking::TraversalRunner;
pub use steps::StepReply;
pub use words::Words;

use crate::{
    failure::{Exit, Failure},
    ids,
    reply::{ExplainReply, ProfileReply},
    table::plan,
};
use kith_client::{Question, Reply, Request, Service};
use kith_gremlin::{
    GremlinError, graphbinary, plain,
    value::{TraversalMetrics, Value},
};
use kith_query::{
    GremlinAnswer, QueryOptions,
    line::{GremlinFields, GremlinLine},
};
use serde::Serialize;
use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

/// The results of a traversal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GremlinReply {
    /// The results as plain JSON, each as often as it occurs.
    pub result: Vec<serde_json::Value>,
    /// A read with this ticket shows what the traversal has changed. Only if it has changed something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// What the traversal did otherwise than it says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The steps with what they took, if a profile was requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepReply>,
    /// The same as a table, for people.
    #[serde(skip)]
    table: String,
    /// The fan-outs, if a profile was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileReply>,
}

/// Evaluates a traversal.
///
/// # Errors
/// If the traversal is wrong, or the cluster does not answer.
pub async fn traverse(service: &dyn Service, line: &GremlinLine) -> anyhow::Result<GremlinReply> {
    let answer = ask(service, &line.fields, false, line.options.query_options()).await?;
    let metrics = answer.metrics.as_deref().map(metrics).transpose()?;
    Ok(GremlinReply {
        result: ids::in_results(results(&answer)?),
        ticket: answer.served.ticket().filter(|_| answer.wrote).map(ToString::to_string),
        warnings: answer.warnings.clone(),
        steps: metrics.iter().flat_map(|metrics| &metrics.steps).map(StepReply::from).collect(),
        table: metrics.map_or_else(String::new, |metrics| format!("\n{metrics}\n\n")),
        profile: answer.profile.as_ref().map(ProfileReply::from),
    })
}

/// Explains a traversal without running it: the text that `explain()` returns, line by line, and the fan-outs that are
/// planned.
///
/// # Errors
/// The errors of [`traverse`].
pub async fn explain(service: &dyn Service, line: &GremlinLine) -> anyhow::Result<ExplainReply> {
    let options = QueryOptions { profile: true, ..line.options.query_options() };
    let answer = ask(service, &line.fields, true, options).await?;
    let texts = results(&answer)?;
    let lines = texts.iter().filter_map(serde_json::Value::as_str).flat_map(str::lines);
    let notes = lines.map(str::to_owned).collect();
    Ok(ExplainReply { plan: ProfileReply::from(&answer.profile.unwrap_or_default()), notes })
}

/// Reads traversals from the terminal or, without one, a traversal from each line of standard input, and prints their results.
///
/// # Errors
/// If the input cannot be read or the output cannot be written.
pub async fn interact(asking: &TraversalRunner, words: impl Future<Output = Words>) -> anyhow::Result<Exit> {
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        prompt::run(asking, words.await).await?;
        return Ok(Exit::Done);
    }
    asking.answer_lines(io::stdin().lock()).await
}

/// An explanation as text.
pub fn explained(reply: &ExplainReply) -> String {
    format!("{}\n", reply.notes.join("\n"))
}

async fn ask(
    service: &dyn Service,
    fields: &GremlinFields,
    is_explained: bool,
    options: QueryOptions,
) -> anyhow::Result<GremlinAnswer> {
    let query = fields.query()?;
    // An explanation changes nothing, so it does not need the right to.
    let writes = query.writes && !is_explained;
    let query = kith_query::GremlinQuery { is_explained, writes, ..query };
    let question = Question::Gremlin { graph: fields.graph.clone(), query };
    match service.call(Arc::new(Request { question, options })).await? {
        Reply::Gremlin(answer) => Ok(answer),
        _ => anyhow::bail!("a traversal got the reply of another request"),
    }
}

fn results(answer: &GremlinAnswer) -> Result<Vec<serde_json::Value>, Failure> {
    plain::results(&answer.results).map_err(failure)
}

fn metrics(bytes: &[u8]) -> Result<TraversalMetrics, Failure> {
    match graphbinary::read_value(bytes).map_err(failure)? {
        Value::TraversalMetrics(metrics) => Ok(Arc::unwrap_or_clone(metrics)),
        other => Err(failure(GremlinError::bad(format!("{} are not metrics", other.type_name())))),
    }
}

fn failure(error: GremlinError) -> Failure {
    Failure::new(error.code, error.message, "see docs/gremlin.md")
}

impl GremlinReply {
    /// The results as text, one per line, and after them the steps and the fan-outs, if a profile was requested.
    pub fn text(&self) -> String {
        let line = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => format!("{text}\n"),
            other => format!("{other}\n"),
        };
        let lines = self.result.iter().map(line);
        lines.chain([self.table.clone()]).chain(self.profile.iter().map(plan::render)).collect()
    }
}
