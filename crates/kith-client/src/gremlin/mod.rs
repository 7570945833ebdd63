//! Traversals in Gremlin: each of their hops is a fan-out to the nodes (`docs/design/0020-gremlin.md`).

mod explain;
mod fields;
mod ids;
mod joined;
mod loaded;
mod notes;
mod options;
mod reach;
mod rows;

use crate::{Run, Session, topology::Graph};
use bytes::Bytes;
use explain::Explanation;
use kith_api::{GremlinAnswer, GremlinQuery, GremlinTraversal, QueryError, QueryOptions};
use kith_gremlin::{
    GremlinError,
    bytecode::Bytecode,
    graphbinary,
    text::{self, Terminal},
    value::{Map, TraversalMetrics, Value},
};
use kith_traversal::{
    evaluate::{Evaluation, materialize},
    plan::{self, Plan},
};
use kith_types::{ErrorCode, OperationName};
use loaded::LoadedGraph;
use std::{sync::Arc, time::Instant};

impl Session {
    /// Evaluates a traversal over a graph.
    ///
    /// # Errors
    /// The traversal is wrong or asks for too much, or the nodes do not answer.
    pub(crate) async fn traverse(
        &self,
        graph: &str,
        query: &GremlinQuery,
        options: &QueryOptions,
    ) -> Result<GremlinAnswer, QueryError> {
        let mut bytecode = bytecode_of(&query.traversal).map_err(|error| to_query_error(&error))?;
        let is_explained =
            bytecode.steps.pop_if(|step| &*step.name == text::EXPLAIN).is_some() || query.is_explained;
        let plan = plan::compile(&bytecode).map_err(|error| to_query_error(&error))?;
        let mut options = options.clone();
        let limits = options::apply(&plan, &mut options, self.settings().traversals.limits())?;
        let is_profiled = options.profile;
        options.profile |= plan.is_profiled();
        let (run, known) = self.begin(graph, OperationName::Gremlin, &options)?;
        check(&plan, &known)?;
        if is_explained {
            return explained(&plan, &known, run);
        }
        let (deadline, allowed_ms) = (run.deadline(), run.allowed_ms());
        let source = LoadedGraph::new(run, known);
        let began = Instant::now();
        let clock = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let evaluated = async {
            let mut evaluation = Evaluation::new(&plan, &source, limits);
            if is_profiled {
                evaluation = evaluation.with_metrics();
            }
            let (mut results, metrics) = evaluation.with_clock(&clock).all_with_metrics().await?;
            if query.with_properties {
                materialize(&mut results, &source).await?;
            }
            Ok((encoded(results)?, metrics.filter(|_| is_profiled).map(encoded_metrics).transpose()?))
        };
        let (results, metrics) = match tokio::time::timeout_at(deadline.into(), evaluated).await {
            Ok(results) => results.map_err(|error| to_query_error(&error))?,
            Err(_) => return Err(QueryError::DeadlineExceeded { deadline_ms: allowed_ms }),
        };
        let (served, profile) = source.finish();
        // The step profile() needs the fan-outs, but they are not for the caller.
        let profile = profile.filter(|_| is_profiled || self.settings().trace_all);
        Ok(GremlinAnswer { results, served, profile, metrics })
    }
}

/// The explanation of a plan as its answer, with the first fan-out as its profile.
fn explained(plan: &Plan, known: &Graph, run: Run<'_>) -> Result<GremlinAnswer, QueryError> {
    let Explanation { text, first } = explain::explain(plan, known, &run)?;
    let results = encoded(vec![(Value::text(text), 1)]).map_err(|error| to_query_error(&error))?;
    let (served, profile) = run.into_explained(first);
    Ok(GremlinAnswer { results, served, profile: Some(profile), metrics: None })
}

/// Refuses what the graph cannot do, before any node is asked.
fn check(plan: &Plan, graph: &Graph) -> Result<(), QueryError> {
    let name = graph.pinned.name.clone();
    if graph.live.is_some() {
        return Err(QueryError::Unsupported {
            detail: format!("Gremlin over live graphs is not supported yet; graph {name:?} is live"),
        });
    }
    if plan.changes_graph() {
        return Err(QueryError::LoadedGraph { name, what: "a traversal cannot change it" });
    }
    Ok(())
}

fn bytecode_of(traversal: &GremlinTraversal) -> Result<Bytecode, GremlinError> {
    match traversal {
        GremlinTraversal::Bytecode(bytes) => match graphbinary::read_value(bytes)? {
            Value::Traversal(bytecode) => Ok(Arc::unwrap_or_clone(bytecode)),
            other => Err(GremlinError::bad(format!(
                "a traversal is needed, not a value of type {}",
                other.type_name()
            ))),
        },
        GremlinTraversal::Text { text, bindings } => {
            let bindings = match bindings.is_empty() {
                true => Map::new(),
                false => bindings_of(bindings)?,
            };
            let now = chrono::Utc::now().fixed_offset();
            let inputs = text::Inputs { bindings: &bindings, now, entropy: rand::random() };
            let script = text::parse(text, &inputs)?;
            match script.terminal {
                Some(Terminal::HasNext) => {
                    Err(GremlinError::unsupported("hasNext() (use count()) where results come as a list"))
                }
                Some(Terminal::ToSet) => {
                    Err(GremlinError::unsupported("toSet() (use dedup()) where results come as a list"))
                }
                _ => Ok(script.into_bytecode()),
            }
        }
    }
}

fn bindings_of(bytes: &Bytes) -> Result<Map, GremlinError> {
    match graphbinary::read_value(bytes)? {
        Value::Map(bindings) => Ok(Arc::unwrap_or_clone(bindings)),
        other => {
            Err(GremlinError::bad(format!("bindings are a map, not a value of type {}", other.type_name())))
        }
    }
}

fn encoded(results: Vec<(Value, i64)>) -> Result<Bytes, GremlinError> {
    let traverser = |(value, bulk)| Value::Traverser { bulk, value: Arc::new(value) };
    let results = Value::list(results.into_iter().map(traverser).collect::<Vec<_>>());
    Ok(graphbinary::write_value(&results)?.into())
}

fn encoded_metrics(metrics: TraversalMetrics) -> Result<Bytes, GremlinError> {
    Ok(graphbinary::write_value(&Value::TraversalMetrics(Arc::new(metrics)))?.into())
}

/// An error of an evaluation as one of a query.
fn to_query_error(error: &GremlinError) -> QueryError {
    let GremlinError { code, message } = error.clone();
    match code {
        ErrorCode::UnsupportedOperation => QueryError::Unsupported { detail: message },
        code @ (ErrorCode::BadRequest | ErrorCode::TooLarge) => {
            QueryError::Remote { code, message, help: "see docs/gremlin.md".to_owned() }
        }
        code => QueryError::Remote { code, message, help: String::new() },
    }
}

/// An error of a query as one of an evaluation.
fn to_gremlin_error(error: &QueryError) -> GremlinError {
    GremlinError::new(error.code(), error.to_string())
}
