//! Steps that turn one value into another without asking the graph, and steps about the members of a value.

use super::{
    by,
    chain::Upstream,
    context::Context,
    order, reduce, size,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::{GremlinError, Result},
    plan::{Kind, Label, Reduction},
    semantics::lists,
    value::{Map, Value},
};
use kith_types::ErrorCode;
use rand::seq::IndexedRandom;
use std::sync::Arc;

pub(super) async fn apply(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut reached = Batch::with_capacity(batch.len());
    for traverser in batch {
        let value = &traverser.value;
        count_copies(kind, value, context)?;
        context.work.pause().await;
        match kind {
            Kind::Identity => reached.push(traverser),
            Kind::Constant(constant) => reached.push(traverser.to(constant.clone())),
            Kind::Unfold => reached.extend(unfolded(value)?.into_iter().map(|value| traverser.to(value))),
            Kind::Loops(name) => reached.push(traverser.to(Value::Int(loops(name.as_ref(), &traverser)))),
            Kind::SackValue => reached.push(traverser.to(traverser.sack.clone().unwrap_or_default())),
            Kind::SackUpdate { operator, by } => {
                let made = by::values(by, std::slice::from_ref(&traverser), context).await?;
                let Some(Some(made)) = made.into_iter().next() else { continue };
                let mut traverser = traverser;
                let sack = traverser.sack.take().unwrap_or_default();
                traverser.sack = Some(context.work.applied(*operator, sack, &made)?);
                reached.push(traverser);
            }
            Kind::Fail(message) => return Err(failed(message.as_ref())),
            Kind::OrderLocal(by) => reached.push(traverser.to(order::local(by, value, context).await?)),
            Kind::ReduceLocal(reduction) => {
                reached.extend(reduced(*reduction, value)?.map(|value| traverser.to(value)));
            }
            Kind::RangeLocal { low, high } => reached.push(traverser.to(ranged(value, *low, *high)?)),
            Kind::TailLocal(count) => reached.push(traverser.to(tail(value, *count)?)),
            kind => reached.push(traverser.to(of_members(kind, value, context)?)),
        }
    }
    Ok(reached)
}

/// Counts what a step makes of the members of a value, before it does.
fn count_copies(kind: &Kind, value: &Value, context: &Context<'_>) -> Result<()> {
    match kind {
        Kind::Unfold => {
            let count = size::members(value);
            let each = weight::TRAVERSER_BYTES + 2 * weight::VALUE_BYTES;
            context.work.meter.room(count.saturating_mul(each))
        }
        // The members, the pairs of them and their places, and the list of these.
        Kind::Index { .. } => {
            context.work.count_copy(value)?;
            context.work.count_bytes(size::members(value).saturating_mul(4 * weight::VALUE_BYTES))
        }
        Kind::DedupLocal
        | Kind::RangeLocal { .. }
        | Kind::TailLocal(_)
        | Kind::SampleLocal(_)
        | Kind::OrderLocal(_) => match value {
            Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) | Value::Map(_) => {
                context.work.count_copy(value)
            }
            _ => Ok(()),
        },
        // A bulk set is not written out to be counted.
        Kind::ReduceLocal(_) if !matches!(value, Value::BulkSet(_)) => {
            context.work.meter.room(size::members(value).saturating_mul(weight::VALUE_BYTES))
        }
        _ => Ok(()),
    }
}

/// `inject`: its values before those that come from the steps before. In a nested traversal, they follow the first traverser
/// that enters, as in TinkerPop.
pub(super) async fn inject(
    values: &[Value],
    is_over: &mut bool,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    if *is_over {
        return upstream.next(context).await;
    }
    *is_over = true;
    let Some(origin) = upstream.origins().first().copied() else { return Ok(None) };
    let mut batch = match upstream.is_nested() {
        true => upstream.next(context).await?.unwrap_or_default(),
        false => Batch::new(),
    };
    let after = batch.iter().position(|traverser| traverser.origin != origin).unwrap_or(batch.len());
    let injected = values.iter().map(|value| Traverser { origin, ..context.traverser(value.clone()) });
    batch.splice(after..after, injected.collect::<Batch>());
    Ok(Some(batch))
}

fn failed(message: Option<&Value>) -> GremlinError {
    let message = message.and_then(Value::as_text).unwrap_or("fail() step triggered");
    GremlinError::new(ErrorCode::TraversalFailed, message)
}

fn loops(name: Option<&Label>, traverser: &Traverser) -> i32 {
    let mut loops = traverser.loops.iter().rev();
    let found = loops.find(|(known, _)| name.is_none() || known.as_ref() == name);
    found.map_or(0, |(_, count)| *count as i32)
}

/// `unfold`: the members of a value, the entries of a map, or the value itself.
fn unfolded(value: &Value) -> Result<Vec<Value>> {
    match value {
        Value::Map(map) => Ok(map.iter().map(|(key, value)| by::entry(key, value)).collect()),
        other => Ok(lists::values(other)?.unwrap_or_else(|| vec![other.clone()])),
    }
}

fn reduced(reduction: Reduction, value: &Value) -> Result<Option<Value>> {
    let members = match (reduction, value) {
        (Reduction::Count, Value::Map(map)) => return Ok(Some(Value::Long(map.len() as i64))),
        (_, Value::BulkSet(members)) => return reduce::reduced(reduction, members.iter().cloned()),
        (_, value) => lists::values(value)?.unwrap_or_else(|| vec![value.clone()]),
    };
    reduce::reduced(reduction, members.into_iter().map(|value| (value, 1)))
}

/// `range(local)`: some members of a list, or some entries of a map. Other values stay as they are.
fn ranged(value: &Value, low: i64, high: i64) -> Result<Value> {
    let part = |count: usize| {
        let low = usize::try_from(low).unwrap_or(0).min(count);
        let high = usize::try_from(high).unwrap_or(count).clamp(low, count);
        low..high
    };
    if let Value::Map(map) = value {
        let part = part(map.len());
        let entries = map.iter().skip(part.start).take(part.len());
        let kept: Map = entries.map(|(key, value)| (key.clone(), value.clone())).collect();
        return Ok(Value::Map(Arc::new(kept)));
    }
    let Some(members) = lists::values(value)? else { return Ok(value.clone()) };
    let kept = members[part(members.len())].to_vec();
    Ok(match value {
        Value::Set(_) | Value::BulkSet(_) => Value::Set(Arc::new(kept.into_iter().collect())),
        _ => Value::list(kept),
    })
}

/// `tail(local)`: the last members of a list, or the last entries of a map.
fn tail(value: &Value, count: i64) -> Result<Value> {
    let length = match value {
        Value::Map(map) => map.len(),
        value => lists::values(value)?.map_or(0, |members| members.len()),
    };
    let low = (length as i64).saturating_sub(count).max(0);
    ranged(value, low, -1)
}

fn of_members(kind: &Kind, value: &Value, context: &Context<'_>) -> Result<Value> {
    match (kind, lists::values(value)?) {
        (Kind::DedupLocal, Some(members)) => Ok(Value::Set(Arc::new(members.into_iter().collect()))),
        (Kind::SampleLocal(count), Some(members)) => {
            let count = usize::try_from(*count).unwrap_or(0);
            Ok(Value::list(members.sample(&mut *context.random.lock(), count).cloned().collect::<Vec<_>>()))
        }
        (Kind::Index { is_map }, _) => Ok(indexed(unfolded(value)?, *is_map)),
        (Kind::SampleLocal(count), None) if matches!(value, Value::Map(_)) => {
            Ok(sampled(value, *count, context))
        }
        (Kind::DedupLocal | Kind::SampleLocal(_), None) => Ok(value.clone()),
        (other, _) => Err(GremlinError::bad(format!("{other:?} is not about one value"))),
    }
}

/// Some entries of a map.
fn sampled(map: &Value, count: i64, context: &Context<'_>) -> Value {
    let Value::Map(map) = map else { return map.clone() };
    let entries: Vec<(&Value, &Value)> = map.iter().collect();
    let count = usize::try_from(count).unwrap_or(0);
    let mut random = context.random.lock();
    let chosen = entries.sample(&mut *random, count).map(|(key, value)| ((*key).clone(), (*value).clone()));
    Value::Map(Arc::new(chosen.collect()))
}

/// `index`: each member with its place, as pairs or as a map from places to members.
fn indexed(members: Vec<Value>, is_map: bool) -> Value {
    let indexes = (0..).map(Value::Int);
    if is_map {
        return Value::Map(Arc::new(indexes.zip(members).collect()));
    }
    let pair = |(member, index): (Value, Value)| Value::list([member, index]);
    Value::list(members.into_iter().zip(indexes).map(pair).collect::<Vec<_>>())
}
