//! One traversal: from what a request carries to coded results.

use super::{
    explain::{self, Explanation},
    options::{self, AppliedOptions},
    to_query_error,
};
use crate::{Session, TraversalSettings, session::Run};
use bytes::Bytes;
use kith_gremlin::{
    GremlinError, Room,
    bytecode::Bytecode,
    graphbinary,
    text::{self, Terminal},
    value::{Map, TraversalMetrics, Value},
};
use kith_net::{Budget, aside, in_turns};
use kith_query::{
    EarlyResults, GremlinAnswer, GremlinQuery, GremlinTraversal, QueryError, QueryOptions, gremlin::Traversal,
};
use kith_topology::Graph as Known;
use kith_traversal::{
    evaluate::{Evaluation, Limits, Meter},
    graph::Graph,
    plan::{self, TraversalPlan},
};
use kith_wire::v1;
use std::{
    mem,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// A traversal that is ready to be evaluated.
pub(super) struct CompiledTraversal {
    pub plan: TraversalPlan,
    pub limits: Limits,
    /// Whether `addE` replaces an edge that exists already.
    replaces_edges: bool,
    /// Whether the plan is explained instead of evaluated.
    pub is_explained: bool,
    /// Whether the caller wants a profile.
    is_profiled: bool,
    with_properties: bool,
    /// The time that decoding and compiling took. It counts towards the deadline.
    pub took: Duration,
    /// The memory of the plan.
    _room: Room,
}

/// The memory of each step of a plan beyond its arguments, and the most memory of a compiled regular expression.
const STEP_BYTES: usize = 2 << 10;
const REGEX_BYTES: usize = 1 << 20;

/// The coded result of an evaluation.
pub(super) struct Results {
    pub results: Bytes,
    /// The metrics, if a profile was requested.
    pub metrics: Option<Bytes>,
}

impl CompiledTraversal {
    /// Decodes and compiles a traversal. The options that it carries override those of the request.
    ///
    /// # Errors
    /// The traversal is wrong, or takes more memory than there is in `memory`, or the caller stops waiting meanwhile.
    pub async fn new(
        query: &GremlinQuery,
        options: &mut QueryOptions,
        settings: TraversalSettings,
        (memory, limit): (&Arc<Budget>, Duration),
    ) -> Result<Self, QueryError> {
        let (bytes, traversal, began) = (length(&query.traversal), query.traversal.clone(), Instant::now());
        let mut charge = memory.charge();
        let room = Room::new(move |bytes| {
            charge.shrink_to(bytes);
            charge.grow_to(bytes)
        });
        let compiling = timeout(limit, in_turns(aside(bytes, move || compiled(&traversal, room))));
        let passed = |_| {
            let deadline_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
            QueryError::DeadlineExceeded { deadline_ms }
        };
        let compiled = compiling.await.map_err(passed)?;
        let (plan, is_explained, _room) = compiled.map_err(|error| to_query_error(&error))?;
        let AppliedOptions { limits, replaces_edges } = options::apply(&plan, options, settings)?;
        let is_profiled = options.profile;
        options.profile |= plan.is_profiled();
        let (is_explained, with_properties) = (is_explained || query.is_explained, query.with_properties);
        let took = began.elapsed();
        Ok(Self { plan, limits, replaces_edges, is_explained, is_profiled, with_properties, took, _room })
    }

    /// The results over a graph, apart from those that were handed over before the end. They are evaluated in turns. In all,
    /// `patience` may be spent on waiting for the caller to take what was handed over.
    pub async fn evaluate(
        &self,
        source: &dyn Graph,
        meter: Arc<Meter>,
        (early, patience): (Option<&EarlyResults>, Duration),
    ) -> Result<Results, GremlinError> {
        in_turns(self.evaluate_now(source, meter, (early, patience))).await
    }

    async fn evaluate_now(
        &self,
        source: &dyn Graph,
        meter: Arc<Meter>,
        (early, mut patience): (Option<&EarlyResults>, Duration),
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
        if early.is_some() {
            evaluation = evaluation.in_batches();
        }
        let (mut results, mut coded) = (Vec::new(), 0);
        while let Some(batch) = evaluation.next().await? {
            results.extend(batch);
            if let Some(early) = early.filter(|early| early.would_take(results.len())) {
                let bytes =
                    evaluation.returned_bytes() - mem::replace(&mut coded, evaluation.returned_bytes());
                early.give(encoded_aside(mem::take(&mut results), bytes).await?);
                let waits = Instant::now();
                // After the time is over, further results are kept.
                let _is_taken = timeout(patience, early.taken()).await.is_ok();
                patience = patience.saturating_sub(waits.elapsed());
            }
        }
        let metrics = evaluation.metrics().filter(|_| self.is_profiled).map(encoded_metrics).transpose()?;
        let results = encoded_aside(results, evaluation.returned_bytes() - coded).await?;
        Ok(Results { results, metrics })
    }

    /// The profile for the caller. The step profile() needs the fan-outs, but they are not for the caller.
    pub fn shown(&self, profile: Option<v1::Profile>, session: &Session) -> Option<v1::Profile> {
        profile.filter(|_| self.is_profiled || session.settings().trace_all)
    }
}

/// The explanation of a plan as its answer, with the first fan-out as its profile.
pub(super) fn explained(
    plan: &TraversalPlan,
    known: &Known,
    run: Run<'_>,
) -> Result<GremlinAnswer, QueryError> {
    let Explanation { text, first } = explain::explain(plan, known, &run)?;
    let results = encoded(vec![(Value::text(text), 1)]).map_err(|error| to_query_error(&error))?;
    let (served, profile) = run.into_explained(first);
    Ok(GremlinAnswer {
        results,
        served,
        profile: Some(profile),
        metrics: None,
        wrote: false,
        warnings: Vec::new(),
    })
}

fn length(traversal: &GremlinTraversal) -> usize {
    match traversal {
        GremlinTraversal::Bytecode(bytes) => bytes.len(),
        GremlinTraversal::Text { text, bindings } => text.len() + bindings.len(),
        // Coded, it would take about an eighth of the memory.
        GremlinTraversal::Decoded(decoded) => {
            decoded.value().map_or(0, |traversal: &Traversal| traversal.bytes / 8)
        }
    }
}

/// The plan of a traversal, whether it is only explained, and the room that it takes.
fn compiled(
    traversal: &GremlinTraversal,
    mut room: Room,
) -> Result<(TraversalPlan, bool, Room), GremlinError> {
    let (mut bytecode, instructions) = bytecode_of(traversal, &mut room)?;
    let is_explained = bytecode.steps.last().is_some_and(|step| &*step.name == text::EXPLAIN);
    if is_explained {
        Arc::make_mut(&mut bytecode).steps.pop();
    }
    // The plan has the arguments of the steps once more, in another form.
    room.take(instructions * STEP_BYTES + copied(&bytecode))?;
    Ok((plan::compile(&bytecode)?, is_explained, room))
}

/// The bytes of what a plan copies of a traversal: values that are arguments, and those in lists of predicates.
fn copied(bytecode: &Bytecode) -> usize {
    fn of(value: &Value, is_operand: bool) -> usize {
        let within = match value {
            Value::Traversal(bytecode) => copied(bytecode),
            Value::Predicate(predicate) => {
                let expression =
                    if matches!(&*predicate.operator, "regex" | "notRegex") { REGEX_BYTES } else { 0 };
                expression + predicate.operands.iter().map(|value| of(value, true)).sum::<usize>()
            }
            Value::List(values) if is_operand => values.iter().map(|value| of(value, true)).sum(),
            Value::Set(values) if is_operand => values.iter().map(|value| of(value, true)).sum(),
            _ => 0,
        };
        size_of::<Value>() * if is_operand { 3 } else { 1 } + within
    }
    let steps = bytecode.sources.iter().chain(&bytecode.steps);
    steps.flat_map(|step| &step.arguments).map(|value| of(value, false)).sum()
}

/// The bytecode of a traversal, and the number of its instructions.
fn bytecode_of(
    traversal: &GremlinTraversal,
    room: &mut Room,
) -> Result<(Arc<Bytecode>, usize), GremlinError> {
    match traversal {
        GremlinTraversal::Decoded(decoded) => {
            let decoded: Option<&Traversal> = decoded.value();
            let decoded = decoded.ok_or_else(|| GremlinError::bad("the traversal is of another language"))?;
            room.take(decoded.bytes)?;
            Ok((Arc::clone(&decoded.bytecode), decoded.instructions))
        }
        GremlinTraversal::Bytecode(bytes) => match graphbinary::read_value_within(bytes, room)? {
            Value::Traversal(bytecode) => Ok((bytecode, room.instructions())),
            other => Err(GremlinError::bad(format!(
                "a traversal is needed, not a value of type {}",
                other.type_name()
            ))),
        },
        GremlinTraversal::Text { text, bindings } => {
            let bindings = match bindings.is_empty() {
                true => Map::new(),
                false => bindings_of(bindings, room)?,
            };
            let now = chrono::Utc::now().fixed_offset();
            let inputs = text::Inputs { bindings: &bindings, now, entropy: rand::random() };
            let script = text::parse_within(text, &inputs, room)?;
            match script.terminal {
                Some(Terminal::HasNext) => {
                    Err(GremlinError::unsupported("the ending hasNext() of a text (use count())"))
                }
                Some(Terminal::ToSet) => {
                    Err(GremlinError::unsupported("the ending toSet() of a text (use dedup())"))
                }
                _ => Ok((Arc::new(script.into_bytecode()), room.instructions())),
            }
        }
    }
}

fn bindings_of(bytes: &Bytes, room: &mut Room) -> Result<Map, GremlinError> {
    match graphbinary::read_value_within(bytes, room)? {
        Value::Map(bindings) => Ok(Arc::unwrap_or_clone(bindings)),
        other => {
            Err(GremlinError::bad(format!("bindings are a map, not a value of type {}", other.type_name())))
        }
    }
}

/// As [`encoded`], for results of about this many bytes.
async fn encoded_aside(results: Vec<(Value, i64)>, bytes: u64) -> Result<Bytes, GremlinError> {
    aside(usize::try_from(bytes).unwrap_or(usize::MAX), move || encoded(results)).await
}

fn encoded(results: Vec<(Value, i64)>) -> Result<Bytes, GremlinError> {
    let traverser = |(value, bulk)| Value::Traverser { bulk, value: Arc::new(value) };
    let results = Value::list(results.into_iter().map(traverser).collect::<Vec<_>>());
    Ok(graphbinary::write_value(&results)?.into())
}

fn encoded_metrics(metrics: TraversalMetrics) -> Result<Bytes, GremlinError> {
    Ok(graphbinary::write_value(&Value::TraversalMetrics(Arc::new(metrics)))?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_net::{Share, testing::most_turns_beside};
    use kith_traversal::testing::MemoryGraph;
    use kith_types::ErrorCode;

    fn refused(gremlin: &str) -> GremlinError {
        let traversal = GremlinTraversal::Text { text: gremlin.to_owned(), bindings: Bytes::new() };
        compiled(&traversal, Room::alone()).map(drop).expect_err("it takes too much")
    }

    #[test]
    fn what_a_plan_takes_is_known_before_it_is_made() {
        let many = |one: &str, count: usize| format!("g.V().or({})", vec![one; count].join(","));
        for gremlin in
            [many("has('a', regex('x{900}'))", 1_000), many("out()", 10_001), many("out().in()", 9_000)]
        {
            assert_eq!(refused(&gremlin).code, ErrorCode::TooLarge, "{}", &gremlin[..40]);
        }
        let few =
            GremlinTraversal::Text { text: many("has('a', regex('x{900}'))", 20), bindings: Bytes::new() };
        let (plan, is_explained, room) = compiled(&few, Room::alone()).expect("it fits");
        assert!(!is_explained && plan.steps().len() > 20 && 20 * REGEX_BYTES < room.taken());
    }

    #[test]
    fn many_traversals_keep_others_waiting_for_few_turns() {
        let text = "g.inject(1).repeat(union(identity(), math('_+1'))).times(12).path().count()";
        let traversal = GremlinTraversal::Text { text: text.to_owned(), bindings: Bytes::new() };
        let query = GremlinQuery { traversal, with_properties: false, is_explained: false, writes: false };
        let evaluated = move || {
            let query = query.clone();
            async move {
                let (settings, memory) = (TraversalSettings::default(), Budget::new(1 << 30));
                let waiting = (&memory, Duration::from_secs(60));
                let compiled =
                    CompiledTraversal::new(&query, &mut QueryOptions::default(), settings, waiting).await;
                let meter = Meter::new(1 << 40);
                let graph = MemoryGraph::default();
                compiled
                    .expect("it is well-formed")
                    .evaluate(&graph, meter, (None, Duration::ZERO))
                    .await
                    .map(drop)
            }
        };
        let most = most_turns_beside(async move {
            let share = Share::default();
            for _ in 0..400 {
                let (share, evaluated) = (share.clone(), evaluated());
                tokio::spawn(async move { share.scope(evaluated).await });
            }
            (vec![share], ())
        });
        // Without turns, each of the 20 steps would wait for all of them.
        assert!(most < 2_000, "{most}");
    }
}
