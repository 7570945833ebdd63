//! The ways in which steps take their input: batch by batch, all at once, or as a beginning without any.

use super::{
    barrier, branch,
    chain::{Demand, Link, StepState, Upstream, is_writing_beginning},
    change,
    context::Context,
    cut, filter, function, group, hop, local, merge, order, path, profile, property, reach, reduce, repeat,
    scan, select, shortest, singly,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::{GremlinError, Result},
    plan::{Condition, Function, HasTest, Kind},
    value::Pop,
};
use std::collections::VecDeque;

/// The next batch of a step.
pub(super) async fn next(
    link: &mut Link,
    mut upstream: Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    let kind = &link.step.kind;
    match (&mut link.state, kind) {
        (StepState::Scan(progress), _) => scan::scan(kind, progress, &mut upstream, context).await,
        (StepState::Entered(progress), _) => singly::next(kind, progress, &mut upstream, context).await,
        (StepState::Hop(progress), Kind::Hop(hop)) => hop::next(hop, progress, &mut upstream, context).await,
        (StepState::Once(is_over), Kind::Inject(values)) => {
            local::inject(values, is_over, &mut upstream, context).await
        }
        (StepState::Once(is_over), Kind::CountAll { of_edges, labels }) => {
            scan::count(*of_edges, labels, is_over, context).await
        }
        (StepState::Range(passed), Kind::Range { low, high }) => {
            cut::range((*low, *high), passed, &mut upstream, context).await
        }
        (StepState::Limited { began, is_over }, Kind::TimeLimit(limit)) => {
            cut::time_limit(*limit, (began, is_over), &mut upstream, context).await
        }
        (StepState::Branches(chains), _) => branch::next(kind, chains, &mut upstream, context).await,
        (StepState::Repeat(passes), Kind::Repeat(repeat)) => {
            repeat::next(repeat, passes, &mut upstream, context).await
        }
        (StepState::Buffer { left, is_over }, _) => {
            buffered(kind, left, is_over, &mut upstream, context).await
        }
        (_, Kind::ShortestPath(wanted)) => shortest::next(wanted, &mut upstream, context).await,
        (_, Kind::Profile(Some(key))) => {
            let batch = upstream.next(context).await?;
            if batch.is_none() {
                let taken = profile::taken(&upstream, context);
                context.side_effects.change(key, &context.work, |_| Ok(taken))?;
            }
            Ok(batch)
        }
        (state, _) => match upstream.next(context).await? {
            None if upstream.is_beginning() && is_writing_beginning(kind) => {
                begun(state, kind, context).await
            }
            None => Ok(None),
            Some(batch) => in_parts(kind, state, batch, context).await.map(Some),
        },
    }
}

/// A step gives way after work on this number of simple values, or on fewer large ones.
pub(super) const PART_EFFORT_MAX: u64 = 64 << 10;

/// The result of a step for a batch. If that is much work, parts of the batch follow one another, and the evaluation gives way in
/// between. Batches of elements are never so much work, so that the graph is asked once.
async fn in_parts(kind: &Kind, state: &mut StepState, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let effort = |traverser: &Traverser| effort(kind, traverser);
    let mut total = 0_u64;
    if batch.iter().all(|traverser| {
        total = total.saturating_add(effort(traverser));
        total <= PART_EFFORT_MAX
    }) {
        context.work.note_effort(total);
        return made(kind, state, batch, context).await;
    }
    let (mut reached, mut part, mut total) = (Batch::new(), Batch::new(), 0_u64);
    let mut left = batch.into_iter().peekable();
    while let Some(traverser) = left.next() {
        total = total.saturating_add(effort(&traverser));
        part.push(traverser);
        if PART_EFFORT_MAX <= total || left.peek().is_none() {
            total = 0;
            let part = made(kind, state, std::mem::take(&mut part), context).await?;
            context.work.room_for(part.len())?;
            reached.extend(part);
            context.work.give_way_now().await;
        }
    }
    Ok(reached)
}

/// The work that a step does for a traverser.
fn effort(kind: &Kind, traverser: &Traverser) -> u64 {
    let value = &traverser.value;
    let count = match kind {
        Kind::Project { keys, .. } => keys.len() as u64,
        Kind::Select { labels, .. } | Kind::Dedup { labels, .. } => labels.len() as u64,
        Kind::Function(Function::Concat(given)) => given.len() as u64,
        Kind::Function(Function::Format { template, .. }) => template.parts.len() as u64,
        Kind::Math { expression, .. } => expression.len() as u64,
        Kind::Is(test) => test.effort(value),
        Kind::Has(_) | Kind::HasAll(_) => {
            let effort = |test: &HasTest| match &test.condition {
                Condition::Test(test) => test.effort(value),
                Condition::Traversal(_) => 1,
            };
            kind.has_tests().iter().map(effort).sum()
        }
        _ => 1,
    };
    let path = if looks_at_path(kind) { traverser.path_length() } else { 0 };
    count.max(1).saturating_mul(weight::effort(value).saturating_add(path))
}

/// Whether a step walks through the values that a traverser remembers.
fn looks_at_path(kind: &Kind) -> bool {
    match kind {
        Kind::Select { .. }
        | Kind::SelectKeys { .. }
        | Kind::Where(_)
        | Kind::WhereStart(_)
        | Kind::WhereEnd(_)
        | Kind::Path { .. }
        | Kind::SimplePath { .. }
        | Kind::Math { .. } => true,
        Kind::Dedup { labels, .. } => !labels.is_empty(),
        Kind::Function(function) => matches!(
            function,
            Function::Concat(_) | Function::Format { .. } | Function::DateDiff(_) | Function::Lists(..)
        ),
        _ => false,
    }
}

/// The results of a change that begins a traversal: it is made once.
async fn begun(state: &mut StepState, kind: &Kind, context: &Context<'_>) -> Result<Option<Batch>> {
    if matches!(state, StepState::Once(true)) {
        return Ok(None);
    }
    *state = StepState::Once(true);
    let start = vec![context.traverser(crate::value::Value::Null)];
    made(kind, state, start, context).await.map(Some)
}

async fn buffered(
    kind: &Kind,
    left: &mut VecDeque<Batch>,
    is_over: &mut bool,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    if !*is_over {
        *is_over = true;
        upstream.demand = Demand::ALL;
        let (origins, lent) = (upstream.origins(), context.work.meter.lent());
        let result = match kind {
            // A count needs no more of its input than the number.
            Kind::Reduce(crate::plan::Reduction::Count) => reduce::count(upstream, &origins, context).await?,
            Kind::Profile(None) => profile::profile(upstream, context).await?,
            kind => at_end(kind, upstream.all(context).await?, &origins, context).await?,
        };
        count_made(kind, &result, lent, context).await?;
        left.push_back(result);
    }
    Ok(left.pop_front())
}

/// The result of a step once it has all its input.
async fn at_end(kind: &Kind, all: Batch, origins: &[u32], context: &Context<'_>) -> Result<Batch> {
    match kind {
        Kind::Fold(seed) => reduce::fold(seed.as_ref(), all, origins, context).await,
        Kind::Reduce(reduction) => reduce::reduce(*reduction, all, context).await,
        Kind::Order(by) => order::global(by, all, context).await,
        Kind::Tail(count) => Ok(cut::tail(*count, all)),
        Kind::Sample { count, by } => cut::sample(*count, by.as_ref(), all, context).await,
        Kind::Group(group) => group::group(group, all, origins, context).await,
        Kind::GroupCount { by, .. } => group::count(by, all, origins, context).await,
        Kind::Aggregate { key, by, .. } => group::aggregate(key, by, all, context).await,
        Kind::Cap(keys) => group::cap(keys, origins, context).await,
        Kind::Barrier { normalises_sacks } => barrier::barrier(*normalises_sacks, all, context).await,
        Kind::Reach(hop) => reach::reach(hop, all, context).await,
        Kind::CountReached(hop) => reach::count(hop, all, context).await,
        Kind::Discard => Ok(Batch::new()),
        other => Err(GremlinError::bad(format!("{other:?} does not collect its input"))),
    }
}

/// The result of a step for a part of a batch, whose values are counted before the step goes on to the next part.
async fn made(kind: &Kind, state: &mut StepState, part: Batch, context: &Context<'_>) -> Result<Batch> {
    let lent = context.work.meter.lent();
    let made = apply(kind, state, part, context).await?;
    count_made(kind, &made, lent, context).await?;
    Ok(made)
}

/// Counts the values that a step has made. What was lent to the step since `lent` pays for them first: nobody else can take this
/// memory in between.
async fn count_made(kind: &Kind, made: &Batch, lent: u64, context: &Context<'_>) -> Result<()> {
    if makes_values(kind) {
        for traverser in made {
            context.work.count_made(&traverser.value, lent)?;
            context.work.pause().await;
        }
    }
    context.work.meter.take_back(lent);
    Ok(())
}

/// Whether a step makes values of others that are small by themselves, but may hold the others many times. What grows by itself
/// is counted where it is made.
fn makes_values(kind: &Kind) -> bool {
    match kind {
        Kind::Select { labels, pop, .. } => 1 < labels.len() || is_list(*pop),
        Kind::SelectKeys { pop, .. } => is_list(*pop),
        Kind::Path { .. }
        | Kind::Fold(_)
        | Kind::Project { .. }
        | Kind::SelectColumn(_)
        | Kind::PropertyMap(_)
        | Kind::ElementMap { .. }
        | Kind::Reduce(_)
        | Kind::ReduceLocal(_)
        | Kind::Group(_)
        | Kind::GroupCount { .. }
        | Kind::Cap(_) => true,
        _ => false,
    }
}

/// Whether a selection makes a list of the values of a label.
fn is_list(pop: Pop) -> bool {
    matches!(pop, Pop::All | Pop::Mixed)
}

/// The result of a step for a batch.
async fn apply(kind: &Kind, state: &mut StepState, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    match (state, kind) {
        (StepState::Seen(seen), Kind::Dedup { labels, by }) => {
            cut::dedup(labels, by.as_ref(), seen, batch, context).await
        }
        (_, Kind::Degree(hop)) => reach::degree(hop, batch, context).await,
        (_, Kind::EdgeVertex(end)) => hop::edge_vertex(*end, batch, context).await,
        (
            _,
            Kind::Token(_)
            | Kind::Properties { .. }
            | Kind::PropertyMap(_)
            | Kind::ElementMap { .. }
            | Kind::Element,
        ) => property::apply(kind, batch, context).await,
        (_, Kind::Has(_) | Kind::HasAll(_) | Kind::HasKey { .. }) => filter::has(kind, batch, context).await,
        (
            _,
            Kind::Is(_)
            | Kind::Filter { .. }
            | Kind::LeadsTo(_)
            | Kind::Connective { .. }
            | Kind::Where(_)
            | Kind::WhereStart(_)
            | Kind::WhereEnd(_)
            | Kind::Coin(_)
            | Kind::SimplePath { .. }
            | Kind::Members { .. },
        ) => filter::apply(kind, batch, context).await,
        (_, Kind::Select { .. } | Kind::SelectKeys { .. } | Kind::SelectColumn(_) | Kind::Project { .. }) => {
            select::apply(kind, batch, context).await
        }
        (_, Kind::Path { between, by }) => path::path(between, by, batch, context).await,
        (_, Kind::Function(function)) => function::apply(function, batch, context).await,
        (_, Kind::Math { expression, by }) => function::math(expression, by, batch, context).await,
        (
            _,
            Kind::DedupLocal
            | Kind::RangeLocal { .. }
            | Kind::TailLocal(_)
            | Kind::SampleLocal(_)
            | Kind::ReduceLocal(_)
            | Kind::OrderLocal(_)
            | Kind::Index { .. }
            | Kind::Unfold
            | Kind::Constant(_)
            | Kind::Identity
            | Kind::Loops(_)
            | Kind::SackValue
            | Kind::SackUpdate { .. }
            | Kind::Fail(_),
        ) => local::apply(kind, batch, context).await,
        (
            _,
            Kind::Map(_)
            | Kind::FlatMap(_)
            | Kind::Local(_)
            | Kind::Coalesce(_)
            | Kind::Optional(_)
            | Kind::SideEffect(_),
        ) => branch::apply(kind, batch, context).await,
        (_, Kind::Aggregate { .. } | Kind::Group(_) | Kind::GroupCount { .. }) => {
            group::side_effect(kind, batch, context).await
        }
        (_, Kind::MergeVertex(maps)) => merge::vertex(maps, batch, context).await,
        (_, Kind::MergeEdge(maps)) => merge::edge(maps, batch, context).await,
        (_, kind) => change::apply(kind, batch, context).await,
    }
}
