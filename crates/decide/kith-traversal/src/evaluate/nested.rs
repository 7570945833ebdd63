//! Nested traversals, evaluated for a whole batch at once.

use super::{
    chain::{Chain, Demand},
    context::Context,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    plan::{Kind, Label, Step, StepArgument, Traversal, any_step, side_effect_of},
    value::Value,
};
use std::{collections::HashMap, sync::Arc};

/// Evaluates a traversal for each of these traversers by itself, and returns the results of each. The bulk of a traverser does
/// not enter.
pub(super) async fn each(
    traversal: &Traversal,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Batch>> {
    if !reads_own_side_effects(traversal) {
        let mut each = Vec::with_capacity(batch.len());
        for part in batch.chunks(at_once(traversal)) {
            each.extend(together(traversal, part, context).await?);
        }
        return Ok(each);
    }
    // Each traverser sees what those before it have put aside.
    let mut each = Vec::with_capacity(batch.len());
    for traverser in batch {
        each.extend(together(traversal, std::slice::from_ref(traverser), context).await?);
    }
    Ok(each)
}

/// The number of traversers for which a traversal with a `repeat` is evaluated together: each of them may have many paths.
const REPEATED_AT_ONCE: usize = 64;

/// The number of traversers for which a traversal is evaluated together.
fn at_once(traversal: &Traversal) -> usize {
    match any_step(traversal, &|step| matches!(step.kind, Kind::Repeat(_))) {
        true => REPEATED_AT_ONCE,
        false => usize::MAX,
    }
}

async fn together(traversal: &Traversal, batch: &[Traverser], context: &Context<'_>) -> Result<Vec<Batch>> {
    let results = entered(traversal, batch, context)?.all(context).await?;
    let mut each: Vec<Batch> = batch.iter().map(|_| Batch::new()).collect();
    for result in results {
        each[result.origin as usize].push(result);
    }
    Ok(each)
}

/// The traversal, entered by each of these traversers as an origin of its own.
fn entered(traversal: &Traversal, batch: &[Traverser], context: &Context<'_>) -> Result<Chain> {
    context.work.room_for(batch.len())?;
    let enter =
        |(at, traverser): (usize, &Traverser)| Traverser { bulk: 1, origin: at as u32, ..traverser.clone() };
    let inputs: Batch = batch.iter().enumerate().map(enter).collect();
    let origins: Arc<[u32]> = (0..batch.len() as u32).collect();
    Ok(Chain::nested(traversal, inputs, origins))
}

/// The side effects that the steps of a traversal add to, before anything is added.
pub(super) fn side_effects(traversal: &Traversal) -> HashMap<Label, Value> {
    let mut empty = HashMap::new();
    for step in crate::plan::all_steps(traversal) {
        let value = match &step.kind {
            Kind::Aggregate { .. } => Value::BulkSet(Arc::default()),
            _ => Value::Map(Arc::default()),
        };
        empty.extend(side_effect_of(&step.kind).map(|key| (key.clone(), value)));
    }
    empty
}

/// Whether a traversal may read the side effects that it adds to.
pub(crate) fn reads_own_side_effects(traversal: &Traversal) -> bool {
    let is_own = |key: &Label| any_step(traversal, &|step| side_effect_of(&step.kind) == Some(key));
    any_step(traversal, &|step| match &step.kind {
        Kind::Select { labels, .. } | Kind::Cap(labels) => labels.iter().any(is_own),
        Kind::Where(_) | Kind::SelectKeys { .. } => {
            any_step(traversal, &|it| side_effect_of(&it.kind).is_some())
        }
        Kind::WhereStart(label) | Kind::WhereEnd(label) => is_own(label),
        _ => false,
    })
}

/// Whether a traversal does more than to return results, so that it makes a difference whether it goes on.
pub(super) fn has_effects(traversal: &Traversal) -> bool {
    any_step(traversal, &acts) || reads_own_side_effects(traversal)
}

fn acts(step: &Step) -> bool {
    side_effect_of(&step.kind).is_some() || step.kind.is_change()
}

/// Traversers that enter the traversals of a step. If these have side effects or change the graph, each of those that a
/// traverser stands for enters by itself.
pub(super) fn separate(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    if !crate::plan::nested(kind).into_iter().any(|traversal| any_step(traversal, &acts)) {
        return Ok(batch);
    }
    let mut separate = Batch::with_capacity(batch.len());
    for traverser in batch {
        let count = usize::try_from(traverser.bulk).unwrap_or(0);
        context.work.count_traversers(count)?;
        context.work.room_for(count)?;
        separate.extend(std::iter::repeat_n(Traverser { bulk: 1, ..traverser }, count));
    }
    Ok(separate)
}

/// The first result of a traversal for each of these traversers. `None` if it has none. The traversal goes on only until each of
/// them has one, unless it has side effects.
pub(super) async fn first(
    traversal: &Traversal,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Value>>> {
    if any_step(traversal, &acts) {
        let each = each(traversal, batch, context).await?;
        return Ok(each
            .into_iter()
            .map(|results| results.into_iter().next().map(|result| result.value))
            .collect());
    }
    let mut all = Vec::with_capacity(batch.len());
    for part in batch.chunks(at_once(traversal)) {
        all.extend(first_together(traversal, part, context).await?);
    }
    Ok(all)
}

/// As [`first`], for traversers that are evaluated together.
async fn first_together(
    traversal: &Traversal,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Value>>> {
    let mut chain = entered(traversal, batch, context)?;
    let mut first: Vec<Option<Value>> = vec![None; batch.len()];
    let (mut missing, mut demand) = (batch.len(), Demand::of(batch.len()));
    while 0 < missing
        && let Some(results) = chain.next(demand.clone(), context).await?
    {
        for result in results {
            let slot = &mut first[result.origin as usize];
            missing -= usize::from(slot.is_none());
            slot.get_or_insert(result.value);
        }
        let found = (0_u32..).zip(&first).filter(|(_, result)| result.is_some()).map(|(origin, _)| origin);
        demand = Demand::of(missing).without(missing, found);
    }
    Ok(first)
}

/// Whether a traversal has a result for each of these traversers.
pub(super) async fn exists(
    traversal: &Traversal,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    Ok(first(traversal, batch, context).await?.iter().map(Option::is_some).collect())
}

/// Results of a nested traversal as traversers of the outer one: with the origin and the bulk of the traverser that entered.
pub(super) fn leave(results: Batch, entered: &Traverser) -> impl Iterator<Item = Traverser> + '_ {
    results.into_iter().map(|result| Traverser {
        origin: entered.origin,
        bulk: result.bulk.saturating_mul(entered.bulk),
        ..result
    })
}

/// The value of an argument for each of these traversers. `None` if a traversal has no result, or a label is unknown.
pub(super) async fn given(
    given: &StepArgument,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Value>>> {
    match given {
        StepArgument::Value(value) => Ok(batch.iter().map(|_| Some(value.clone())).collect()),
        StepArgument::Label(label) => {
            let aside = context.side_effects.get(label, &context.work)?;
            let of = |traverser: &Traverser| {
                traverser.labelled(label).last().map(|value| (*value).clone()).or_else(|| aside.clone())
            };
            Ok(batch.iter().map(of).collect())
        }
        StepArgument::Traversal(traversal) => first(traversal, batch, context).await,
    }
}
