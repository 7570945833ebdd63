//! Steps that let a part of the traversers pass, whatever these are: the first, the last, those that are new, or some at random.

use super::{
    bulk::by_origin,
    by,
    chain::{RangeProgress, Upstream},
    context::Context,
    scope,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::Result,
    plan::{ByArgument, Label},
    semantics::number,
    value::{GType, Value},
};
use rand::{RngExt, rngs::StdRng};
use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

/// `range`, `limit` and `skip`, counted for each origin. A batch of bulked traversers may be cut in the middle of one.
///
/// It asks for one traverser per origin first, then for twice as many each time: what stands before it may let few pass.
pub(super) async fn range(
    (low, high): (i64, i64),
    passed: &mut RangeProgress,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    if high != -1 {
        let origins = upstream.origins();
        if origins.iter().all(|origin| passed.counts.get(origin).copied().unwrap_or(0) >= high) {
            return Ok(None);
        }
        let left = |origin: &u32| high.saturating_sub(passed.counts.get(origin).copied().unwrap_or(0)).max(0);
        let wanted = origins.iter().map(|origin| usize::try_from(left(origin)).unwrap_or(0));
        let wanted = wanted.fold(0, usize::saturating_add);
        let finished = origins.iter().copied().filter(|origin| left(origin) == 0);
        upstream.demand = upstream.demand.without(wanted.max(passed.asked.saturating_mul(2)), finished);
        passed.asked = wanted.max(passed.asked.saturating_mul(2));
    }
    let Some(batch) = upstream.next(context).await? else { return Ok(None) };
    let mut kept = Batch::new();
    for traverser in batch {
        let before = passed.counts.entry(traverser.origin).or_insert(0);
        let (from, to) = (*before, before.saturating_add(traverser.bulk));
        *before = to;
        let to = if high == -1 { to } else { to.min(high) };
        let bulk = to - from.max(low);
        if bulk > 0 {
            kept.push(Traverser { bulk, ..traverser });
        }
    }
    Ok(Some(kept))
}

/// `timeLimit`: the batches that come within this time after the first. Once it is over, the steps before are asked for no more,
/// although in `repeat` more may enter them.
pub(super) async fn time_limit(
    limit: Duration,
    (began, is_over): (&mut Option<u64>, &mut bool),
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    let passed = |began: u64| limit.as_nanos() <= u128::from((context.clock)().saturating_sub(began));
    *is_over = *is_over || began.is_some_and(passed);
    if *is_over {
        return Ok(None);
    }
    let Some(batch) = upstream.next(context).await? else { return Ok(None) };
    if !batch.is_empty() {
        *is_over = passed(*began.get_or_insert_with(|| (context.clock)()));
    }
    Ok((!*is_over).then_some(batch))
}

/// `tail`: the last traversers of each origin.
pub(super) fn tail(count: i64, all: Batch) -> Batch {
    let mut left: HashMap<u32, i64> = HashMap::new();
    let mut kept = Batch::new();
    for traverser in all.into_iter().rev() {
        let left = left.entry(traverser.origin).or_insert(count);
        let bulk = traverser.bulk.min(*left);
        *left -= bulk;
        if bulk > 0 {
            kept.push(Traverser { bulk, ..traverser });
        }
    }
    kept.reverse();
    kept
}

/// `dedup`: traversers with a value, or values of labels, that has not come before.
pub(super) async fn dedup(
    labels: &[Label],
    by: Option<&ByArgument>,
    seen: &mut HashMap<u32, HashSet<Value>>,
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let by = by.unwrap_or(&ByArgument::Identity);
    let _keys = context.work.meter.reserve(weight::of_rows(batch.len(), labels.len()))?;
    let keys: Vec<Option<Value>> = if labels.is_empty() {
        by::values(by, &batch, context).await?
    } else {
        let mut keys: Vec<Option<Vec<Value>>> = vec![Some(Vec::new()); batch.len()];
        for label in labels {
            let of = |traverser: &Traverser| Ok(traverser.to(scope::last(label, traverser, context)?));
            let entered: Batch = batch.iter().map(of).collect::<Result<_>>()?;
            let values = by::values(by, &entered, context).await?;
            for (key, value) in keys.iter_mut().zip(values) {
                *key = key.take().zip(value).map(|(mut key, value)| {
                    key.push(value);
                    key
                });
            }
        }
        keys.into_iter().map(|key| key.map(Value::list)).collect()
    };
    let mut new = Batch::new();
    for (traverser, key) in batch.into_iter().zip(keys) {
        let Some(key) = key else { continue };
        let seen = seen.entry(traverser.origin).or_default();
        if !seen.contains(&key) {
            // It is kept until the end.
            context
                .work
                .count_bytes(weight::of_kept(&key).saturating_add(weight::of_rows(1, labels.len())))?;
            seen.insert(key);
            new.push(Traverser { bulk: 1, ..traverser });
        }
    }
    Ok(new)
}

/// `coin`: each traverser passes with this probability.
pub(super) fn coin(probability: f64, batch: Batch, context: &Context<'_>) -> Batch {
    let mut random = context.random.lock();
    let mut bulk = |traverser: Traverser| {
        let bulk = heads(probability, traverser.bulk, &mut random);
        (bulk > 0).then_some(Traverser { bulk, ..traverser })
    };
    batch.into_iter().filter_map(&mut bulk).collect()
}

/// A greater bulk is not thrown one by one.
const THROWS_MAX: i64 = 10_000;

/// The number of heads among this number of coins. For a large bulk, it is drawn from the normal distribution, which is then a
/// close approximation.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the number is random")]
fn heads(probability: f64, bulk: i64, random: &mut StdRng) -> i64 {
    if bulk <= THROWS_MAX {
        return (0..bulk).filter(|_| random.random::<f64>() < probability).count() as i64;
    }
    let (mean, variance) = (bulk as f64 * probability, bulk as f64 * probability * (1.0 - probability));
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * random.random::<f64>()).cos();
    ((mean + normal * variance.sqrt()).round() as i64).clamp(0, bulk)
}

/// `sample`: some traversers of each origin, drawn at random, those with a greater weight more often.
pub(super) async fn sample(
    count: i64,
    by: Option<&ByArgument>,
    all: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let drawn = |traverser: &Traverser| traverser.bulk.min(count).max(0);
    context.work.count_each(all.iter().map(drawn))?;
    let each = all.iter().map(|traverser| usize::try_from(drawn(traverser)).unwrap_or(0));
    context.work.room_for(each.fold(0, usize::saturating_add))?;
    let weights = match by {
        None => vec![Some(Value::Double(1.0)); all.len()],
        Some(by) => by::values(by, &all, context).await?,
    };
    let weighted = all.into_iter().zip(weights).filter_map(|(traverser, weight)| {
        match number::as_number(&weight?, Some(GType::Double)) {
            Ok(Value::Double(weight)) => Some((traverser, weight)),
            _ => None,
        }
    });
    let mut random = context.random.lock();
    // The weights decide about keys; the greatest keys are a weighted sample (Efraimidis and Spirakis, 2006).
    let mut keyed: Vec<(f64, Traverser)> = weighted
        .flat_map(|(traverser, weight)| {
            let one = Traverser { bulk: 1, ..traverser.clone() };
            (0..drawn(&traverser)).map(move |_| (weight, one.clone()))
        })
        .map(|(weight, traverser)| (random.random::<f64>().powf(1.0 / weight), traverser))
        .collect();
    keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let origins = by_origin(keyed.into_iter().map(|(_, traverser)| traverser).collect());
    Ok(origins.into_values().flat_map(|batch| batch.into_iter().take(count.max(0) as usize)).collect())
}
