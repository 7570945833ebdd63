//! Traversals in Gremlin: each of their hops is a fan-out to the nodes (`docs/design/0020-gremlin.md`).

mod explain;
mod fan_outs;
mod fields;
mod ids;
mod joined;
mod live;
mod loaded;
mod notes;
mod options;
mod reach;
mod rows;
mod values;

use crate::{
    Session,
    session::{RESTARTS_MAX, Run},
    topology::Graph as Known,
};
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
    evaluate::{Evaluation, Limits},
    graph::Graph,
    plan::{self, Plan},
};
use kith_types::{ErrorCode, OperationName};
use kith_wire::v1;
use live::LiveGraph;
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
        let mut options = options.clone();
        let traversal = Compiled::new(query, &mut options, self.settings().traversals.limits())?;
        let known = Arc::clone(self.topology().graph(graph)?);
        // An explanation changes nothing.
        let changes_graph = traversal.plan.changes_graph() && !traversal.is_explained;
        if known.live.is_none() && changes_graph {
            let name = graph.to_owned();
            return Err(QueryError::LoadedGraph { name, what: "a traversal cannot change it" });
        }
        if changes_graph && !query.writes {
            return Err(undeclared());
        }
        match &known.live {
            Some(live) => {
                live::check(&traversal.plan, &live.types)?;
                self.traverse_live(graph, &traversal, &options).await
            }
            None => self.traverse_loaded(graph, &traversal, &options).await,
        }
    }

    async fn traverse_loaded(
        &self,
        graph: &str,
        traversal: &Compiled,
        options: &QueryOptions,
    ) -> Result<GremlinAnswer, QueryError> {
        let (run, known) = self.begin(graph, OperationName::Gremlin, options)?;
        if traversal.is_explained {
            return explained(&traversal.plan, &known, run);
        }
        let deadline = Deadline::of(&run);
        let source = LoadedGraph::new(run, known);
        let results = deadline.keep(traversal.evaluate(&source), || false).await?;
        let cause = |error| source.fan_outs.cause(&error).unwrap_or_else(|| to_query_error(&error));
        let Results { results, metrics } = results.map_err(cause)?;
        let (served, profile) = source.finish();
        let profile = traversal.shown(profile, self);
        Ok(GremlinAnswer { results, served, profile, metrics, wrote: false })
    }

    /// Evaluates a traversal of a live graph. It shows the writes that were made through this session.
    async fn traverse_live(
        &self,
        graph: &str,
        traversal: &Compiled,
        options: &QueryOptions,
    ) -> Result<GremlinAnswer, QueryError> {
        let mut restarts = 0;
        loop {
            let known = Arc::clone(self.topology().graph(graph)?);
            let Some(live) = &known.live else {
                return Err(QueryError::Internal { detail: format!("graph {graph:?} is not live any more") });
            };
            let identity = live.types.identity;
            let shown = self.showing_own_writes(identity, options);
            let (run, known) = self.begin(graph, OperationName::Gremlin, &shown)?;
            if traversal.is_explained {
                return explained(&traversal.plan, &known, run);
            }
            let deadline = Deadline::of(&run);
            let source = LiveGraph::new((self, &shown), run, &live.types, &traversal.limits);
            let evaluated = deadline.keep(traversal.evaluate(&source), || source.is_writing()).await;
            let cause = |error| source.cause(&error).unwrap_or_else(|| to_query_error(&error));
            let error = match evaluated.and_then(|results| results.map_err(cause)) {
                Ok(Results { results, metrics }) => {
                    let wrote = source.has_changes();
                    let (served, profile) = source.finish();
                    let profile = traversal.shown(profile, self);
                    return Ok(GremlinAnswer { results, served, profile, metrics, wrote });
                }
                Err(error) => error,
            };
            let is_lost = error.code() == ErrorCode::HistoryLost;
            if is_lost {
                // Without a ticket of its own, a traversal need not show what the database has lost.
                self.own_writes().forget(identity);
            }
            let begins_again = match is_lost && options.ticket.is_none() && shown.ticket.is_some() {
                true => !source.has_changes(),
                false => source.begins_again(&error).await,
            };
            if RESTARTS_MAX <= restarts || !begins_again {
                return Err(source.failure(error));
            }
            restarts += 1;
        }
    }

    /// The options of a traversal that also shows the writes which were made through this session.
    fn showing_own_writes(&self, graph: u64, options: &QueryOptions) -> QueryOptions {
        let mut options = options.clone();
        match (&mut options.ticket, self.own_writes().ticket(graph, Instant::now())) {
            (Some(ticket), Some(own)) if ticket.graph == own.graph => ticket.merge(&own),
            (none @ None, own) => *none = own,
            _ => {}
        }
        options
    }
}

/// A traversal changes the graph, and its request says that it does not.
fn undeclared() -> QueryError {
    QueryError::Remote {
        code: ErrorCode::BadRequest,
        message: "the traversal changes the graph, but its request does not say so".to_owned(),
        help: "set `writes` in the request, which then needs the right to write".to_owned(),
    }
}

/// A traversal that is ready to be evaluated.
struct Compiled {
    plan: Plan,
    limits: Limits,
    /// Whether the plan is explained instead of evaluated.
    is_explained: bool,
    /// Whether the caller wants a profile.
    is_profiled: bool,
    with_properties: bool,
}

/// What an evaluation returned, coded.
struct Results {
    results: Bytes,
    /// Only if a profile was requested.
    metrics: Option<Bytes>,
}

impl Compiled {
    /// Compiles a traversal. The options that it carries override those of the request.
    fn new(query: &GremlinQuery, options: &mut QueryOptions, defaults: Limits) -> Result<Self, QueryError> {
        let mut bytecode = bytecode_of(&query.traversal).map_err(|error| to_query_error(&error))?;
        let is_explained =
            bytecode.steps.pop_if(|step| &*step.name == text::EXPLAIN).is_some() || query.is_explained;
        let plan = plan::compile(&bytecode).map_err(|error| to_query_error(&error))?;
        let limits = options::apply(&plan, options, defaults)?;
        let is_profiled = options.profile;
        options.profile |= plan.is_profiled();
        Ok(Self { plan, limits, is_explained, is_profiled, with_properties: query.with_properties })
    }

    /// The results over a graph.
    async fn evaluate(&self, source: &dyn Graph) -> Result<Results, GremlinError> {
        let began = Instant::now();
        let clock = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut evaluation = Evaluation::new(&self.plan, source, self.limits);
        if self.is_profiled {
            evaluation = evaluation.with_metrics();
        }
        let evaluation = evaluation.with_clock(&clock).with_properties(self.with_properties);
        let (results, metrics) = evaluation.all_with_metrics().await?;
        let metrics = metrics.filter(|_| self.is_profiled).map(encoded_metrics).transpose()?;
        Ok(Results { results: encoded(results)?, metrics })
    }

    /// The profile for the caller. The step profile() needs the fan-outs, but they are not for the caller.
    fn shown(&self, profile: Option<v1::Profile>, session: &Session) -> Option<v1::Profile> {
        profile.filter(|_| self.is_profiled || session.settings().trace_all)
    }
}

/// The explanation of a plan as its answer, with the first fan-out as its profile.
fn explained(plan: &Plan, known: &Known, run: Run<'_>) -> Result<GremlinAnswer, QueryError> {
    let Explanation { text, first } = explain::explain(plan, known, &run)?;
    let results = encoded(vec![(Value::text(text), 1)]).map_err(|error| to_query_error(&error))?;
    let (served, profile) = run.into_explained(first);
    Ok(GremlinAnswer { results, served, profile: Some(profile), metrics: None, wrote: false })
}

/// When the caller stops waiting.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Instant,
    allowed_ms: u64,
}

impl Deadline {
    fn of(run: &Run<'_>) -> Self {
        Self { at: run.deadline(), allowed_ms: run.allowed_ms() }
    }

    /// What the work returns, unless it takes too long. Work that has sent a write is not abandoned before the outcome of the
    /// write is known; it can then send no other one.
    async fn keep<T>(
        self,
        work: impl Future<Output = T>,
        is_writing: impl Fn() -> bool,
    ) -> Result<T, QueryError> {
        let mut work = std::pin::pin!(work);
        match tokio::time::timeout_at(self.at.into(), &mut work).await {
            Ok(done) => Ok(done),
            Err(_) if is_writing() => Ok(work.await),
            Err(_) => Err(self.passed()),
        }
    }

    /// The error that the deadline has passed.
    fn passed(self) -> QueryError {
        QueryError::DeadlineExceeded { deadline_ms: self.allowed_ms }
    }
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
