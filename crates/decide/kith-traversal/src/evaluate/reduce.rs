//! Steps that make one value of many, for each origin.

use super::{
    bulk::by_origin,
    chain::Upstream,
    context::Context,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::{GremlinError, Result},
    plan::Reduction,
    semantics::{self, number},
    value::{Operator, Value},
};
use std::collections::HashMap;

/// `count`. Traversers are counted as they come.
pub(super) async fn count(
    upstream: &mut Upstream<'_>,
    origins: &[u32],
    context: &Context<'_>,
) -> Result<Batch> {
    let mut counts: HashMap<u32, i64> = origins.iter().map(|origin| (*origin, 0)).collect();
    while let Some(batch) = upstream.next(context).await? {
        for traverser in batch {
            let count = counts.entry(traverser.origin).or_insert(0);
            *count = added(*count, traverser.bulk)?;
        }
    }
    Ok(origins.iter().map(|origin| single(Value::Long(counts[origin]), *origin, context)).collect())
}

/// The sum of numbers of traversers. Bulks end at the largest number that a `Long` has, so that one stands for any larger one.
///
/// # Errors
/// It does not fit in a `Long`.
pub(super) fn added(count: i64, bulk: i64) -> Result<i64> {
    count.checked_add(bulk).filter(|count| *count != i64::MAX).ok_or_else(|| {
        GremlinError::bad(
            "long overflow: there are more traversers than fit in a Long, so that they cannot be counted",
        )
    })
}

/// A traverser with what became of all traversers of an origin. It has no path but its value.
pub(super) fn single(value: Value, origin: u32, context: &Context<'_>) -> Traverser {
    Traverser { origin, ..context.traverser(value) }
}

/// `fold`: a list, or what an operator makes of all values.
pub(super) async fn fold(
    seed: Option<&(Value, Operator)>,
    all: Batch,
    origins: &[u32],
    context: &Context<'_>,
) -> Result<Batch> {
    context.work.count_each(all.iter().map(|traverser| traverser.bulk))?;
    let count = all.iter().map(|traverser| traverser.bulk.max(0).unsigned_abs());
    let places = count.fold(0, u64::saturating_add).saturating_mul(weight::VALUE_BYTES);
    context.work.meter.lend(places)?;
    let mut collected = by_origin(all);
    let mut results = Batch::with_capacity(origins.len());
    for origin in origins {
        let batch = collected.remove(origin).unwrap_or_default();
        let value = match seed {
            None => Value::list(repeated(batch).collect::<Vec<_>>()),
            Some((seed, operator)) => {
                let mut folded = seed.clone();
                for value in repeated(batch) {
                    folded = context.work.applied(*operator, folded, &value)?;
                    context.work.pause().await;
                }
                folded
            }
        };
        results.push(single(value, *origin, context));
    }
    Ok(results)
}

/// The values of traversers, each as often as its bulk says.
pub(super) fn repeated(batch: Batch) -> impl Iterator<Item = Value> {
    batch.into_iter().flat_map(|traverser| {
        let bulk = usize::try_from(traverser.bulk).unwrap_or(0);
        std::iter::repeat_n(traverser.value, bulk)
    })
}

/// `sum`, `mean`, `min` and `max`. Without any value there is no result.
pub(super) async fn reduce(reduction: Reduction, all: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut origins: Vec<(u32, Batch)> = by_origin(all).into_iter().collect();
    origins.sort_by_key(|(origin, _)| *origin);
    let mut results = Batch::new();
    for (origin, batch) in origins {
        let mut values = batch.into_iter().map(|traverser| (traverser.value, traverser.bulk));
        let value = match reduction {
            Reduction::Min | Reduction::Max => {
                let mut best = None;
                for next in values {
                    context.work.look_at(&next.0).await;
                    let both = best.map(|best| (best, 1)).into_iter().chain([next]);
                    best = reduced(reduction, both)?;
                }
                best
            }
            _ => reduced(reduction, &mut values)?,
        };
        if let Some(value) = value {
            results.push(single(value, origin, context));
        }
    }
    Ok(results)
}

/// The result of a reduction of values, each with how often it occurs. `None` if there are none, or only nulls.
pub(super) fn reduced(
    reduction: Reduction,
    values: impl Iterator<Item = (Value, i64)>,
) -> Result<Option<Value>> {
    match reduction {
        Reduction::Count => {
            let mut bulks = values.map(|(_, bulk)| bulk);
            Ok(Some(Value::Long(bulks.try_fold(0, added)?)))
        }
        Reduction::Sum => {
            let mut sum = number::Sum::default();
            values.into_iter().try_for_each(|(value, bulk)| sum.add(&value, bulk))?;
            Ok(sum.finish())
        }
        Reduction::Mean => {
            let mut mean = number::Mean::default();
            values.into_iter().try_for_each(|(value, bulk)| mean.add(&value, bulk))?;
            mean.finish()
        }
        Reduction::Min => extreme(values, semantics::least),
        Reduction::Max => extreme(values, semantics::greatest),
    }
}

fn extreme(
    values: impl Iterator<Item = (Value, i64)>,
    choose: fn(&Value, &Value) -> Result<Value>,
) -> Result<Option<Value>> {
    let mut best: Option<Value> = None;
    for (value, _) in values {
        best = Some(match best {
            None => value,
            Some(best) => choose(&best, &value)?,
        });
    }
    Ok(best)
}
