//! One traversal: from what a request carries to coded results.

use super::{
    explain::{self, Explanation},
    options::{self, Applied},
    to_query_error,
};
use crate::{Run, Session, TraversalSettings, caller::gone, topology::Graph as Known};
use bytes::Bytes;
use kith_api::{EarlyResults, GremlinAnswer, GremlinQuery, GremlinTraversal, QueryError, QueryOptions};
use kith_gremlin::{
    GremlinError,
    bytecode::Bytecode,
    graphbinary,
    text::{self, Terminal},
    value::{Map, TraversalMetrics, Value},
};
use kith_traversal::{
    evaluate::{Evaluation, Limits, Meter},
    graph::Graph,
    plan::{self, Plan},
};
use kith_types::ErrorCode;
use kith_wire::v1;
use std::{
    future::poll_fn,
    mem,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;

/// A traversal that is ready to be evaluated.
pub(super) struct Compiled {
    pub plan: Plan,
    pub limits: Limits,
    /// Whether `addE` replaces an edge that exists already.
    replaces_edges: bool,
    /// Whether the plan is explained instead of evaluated.
    pub is_explained: bool,
    /// Whether the caller wants a profile.
    is_profiled: bool,
    with_properties: bool,
}

/// What an evaluation returned, coded.
pub(super) struct Results {
    pub results: Bytes,
    /// Only if a profile was requested.
    pub metrics: Option<Bytes>,
}

impl Compiled {
    /// Compiles a traversal. The options that it carries override those of the request.
    pub fn new(
        query: &GremlinQuery,
        options: &mut QueryOptions,
        settings: TraversalSettings,
    ) -> Result<Self, QueryError> {
        let mut bytecode = bytecode_of(&query.traversal).map_err(|error| to_query_error(&error))?;
        let is_explained =
            bytecode.steps.pop_if(|step| &*step.name == text::EXPLAIN).is_some() || query.is_explained;
        let plan = plan::compile(&bytecode).map_err(|error| to_query_error(&error))?;
        let Applied { limits, replaces_edges } = options::apply(&plan, options, settings)?;
        let is_profiled = options.profile;
        options.profile |= plan.is_profiled();
        let with_properties = query.with_properties;
        Ok(Self { plan, limits, replaces_edges, is_explained, is_profiled, with_properties })
    }

    /// The results over a graph, apart from those that were handed over before the end.
    pub async fn evaluate(
        &self,
        source: &dyn Graph,
        meter: Arc<Meter>,
        early: Option<&EarlyResults>,
    ) -> Result<Results, GremlinError> {
        let began = Instant::now();
        let clock = || u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut evaluation = Evaluation::new(&self.plan, source, self.limits).with_meter(meter);
        if self.is_profiled {
            evaluation = evaluation.with_metrics();
        }
        let mut evaluation = evaluation
            .with_clock(&clock)
            .with_properties(self.with_properties)
            .replacing_edges(self.replaces_edges);
        let mut results = Vec::new();
        while let Some(batch) = evaluation.next().await? {
            results.extend(batch);
            if let Some(early) = early.filter(|early| early.would_take(results.len())) {
                early.give(encoded(mem::take(&mut results))?);
            }
        }
        let metrics = evaluation.metrics().filter(|_| self.is_profiled).map(encoded_metrics).transpose()?;
        Ok(Results { results: encoded(results)?, metrics })
    }

    /// The profile for the caller. The step profile() needs the fan-outs, but they are not for the caller.
    pub fn shown(&self, profile: Option<v1::Profile>, session: &Session) -> Option<v1::Profile> {
        profile.filter(|_| self.is_profiled || session.settings().trace_all)
    }
}

/// The explanation of a plan as its answer, with the first fan-out as its profile.
pub(super) fn explained(plan: &Plan, known: &Known, run: Run<'_>) -> Result<GremlinAnswer, QueryError> {
    let Explanation { text, first } = explain::explain(plan, known, &run)?;
    let results = encoded(vec![(Value::text(text), 1)]).map_err(|error| to_query_error(&error))?;
    let (served, profile) = run.into_explained(first);
    Ok(GremlinAnswer { results, served, profile: Some(profile), metrics: None, wrote: false })
}

/// When the caller stops waiting.
#[derive(Clone, Debug)]
pub(super) struct Deadline {
    at: Instant,
    allowed_ms: u64,
    gone: CancellationToken,
}

impl Deadline {
    pub fn of(run: &Run<'_>) -> Self {
        Self { at: run.deadline(), allowed_ms: run.allowed_ms(), gone: gone() }
    }

    /// What the work returns, unless it takes too long or the caller leaves. Work that has sent a write is not abandoned before
    /// the outcome of the write is known.
    pub async fn keep<T>(
        self,
        work: impl Future<Output = T>,
        is_writing: impl Fn() -> bool,
    ) -> Result<T, QueryError> {
        let mut work = std::pin::pin!(work);
        let error = tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = tokio::time::sleep_until(self.at.into()) => self.passed(),
            () = self.gone.cancelled() => left(),
        };
        let settled = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if is_writing() => Poll::Pending,
            Poll::Pending => Poll::Ready(None),
        });
        if is_writing()
            && let Some(done) = settled.await
        {
            return Ok(done);
        }
        Err(error)
    }

    /// The rest of the time.
    ///
    /// # Errors
    /// It is over, or the caller has left.
    pub fn left(&self) -> Result<Duration, QueryError> {
        let rest = self.at.saturating_duration_since(Instant::now());
        match (self.gone.is_cancelled(), rest.is_zero()) {
            (true, _) => Err(left()),
            (false, true) => Err(self.passed()),
            (false, false) => Ok(rest),
        }
    }

    /// The error that the deadline has passed.
    fn passed(&self) -> QueryError {
        QueryError::DeadlineExceeded { deadline_ms: self.allowed_ms }
    }
}

/// The error that the caller has left.
fn left() -> QueryError {
    QueryError::Remote {
        code: ErrorCode::Cancelled,
        message: "the caller no longer waits for the results".to_owned(),
        help: String::new(),
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
                    Err(GremlinError::unsupported("the ending hasNext() of a text (use count())"))
                }
                Some(Terminal::ToSet) => {
                    Err(GremlinError::unsupported("the ending toSet() of a text (use dedup())"))
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
