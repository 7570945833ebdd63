//! `order`.

use super::{
    by,
    context::Context,
    size,
    step::PART_EFFORT_MAX,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::Result,
    plan::ByArgument,
    semantics,
    value::{Map, Order, Value},
};
use rand::seq::SliceRandom;
use std::{cmp::Ordering, sync::Arc};

/// `order`: the traversers of each origin. Those for which a `by` has no value do not pass.
pub(super) async fn global(by: &[(ByArgument, Order)], all: Batch, context: &Context<'_>) -> Result<Batch> {
    let _keys = context.work.meter.reserve(weight::of_rows(all.len(), by.len() + 1))?;
    let keys = keys(by, &all, context).await?;
    let keyed: Vec<(Vec<Value>, Traverser)> =
        keys.into_iter().zip(all).filter_map(|(key, traverser)| Some((key?, traverser))).collect();
    Ok(sorted(by, keyed, context).await)
}

/// `order(local)`: the members of a list, or the entries of a map. Other values stay as they are.
pub(super) async fn local(by: &[(ByArgument, Order)], value: &Value, context: &Context<'_>) -> Result<Value> {
    let count = usize::try_from(size::members(value)).unwrap_or(usize::MAX);
    context.work.room_for(count)?;
    let _keys = context.work.meter.reserve(weight::of_rows(count, by.len() + 1))?;
    if let Value::Map(map) = value {
        let entries: Vec<(Value, Value)> =
            map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let as_values = entries.iter().map(|(key, value)| context.traverser(by::entry(key, value))).collect();
        let keyed = keyed(by, as_values, entries, context).await?;
        return Ok(Value::Map(Arc::new(sorted(by, keyed, context).await.into_iter().collect::<Map>())));
    }
    let Some(members) = semantics::lists::values(value)? else { return Ok(value.clone()) };
    let batch = members.iter().map(|member| context.traverser(member.clone())).collect();
    let keyed = keyed(by, batch, members, context).await?;
    Ok(Value::list(sorted(by, keyed, context).await))
}

async fn keyed<T>(
    by: &[(ByArgument, Order)],
    batch: Batch,
    items: Vec<T>,
    context: &Context<'_>,
) -> Result<Vec<(Vec<Value>, T)>> {
    let keys = keys(by, &batch, context).await?;
    Ok(keys.into_iter().zip(items).filter_map(|(key, item)| Some((key?, item))).collect())
}

/// The result of each `by` for each value. `None` if one has no value.
async fn keys(
    by: &[(ByArgument, Order)],
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Vec<Value>>>> {
    let mut keys: Vec<Option<Vec<Value>>> = vec![Some(Vec::with_capacity(by.len())); batch.len()];
    for (by, _) in by {
        let values = by::values(by, batch, context).await?;
        for (key, value) in keys.iter_mut().zip(values) {
            *key = key.take().zip(value).map(|(mut key, value)| {
                key.push(comparable(value));
                key
            });
        }
    }
    Ok(keys)
}

/// Tokens are sorted among texts by their names: the keys of `elementMap` are both.
fn comparable(value: Value) -> Value {
    match value {
        Value::Symbol(symbol) => Value::text(symbol.name()),
        value => value,
    }
}

/// Sorts by the keys. Items with equal keys stay in their order.
async fn sorted<T: Send>(
    by: &[(ByArgument, Order)],
    mut keyed: Vec<(Vec<Value>, T)>,
    context: &Context<'_>,
) -> Vec<T> {
    if by.iter().any(|(_, order)| *order == Order::Shuffle) {
        keyed.shuffle(&mut *context.random.lock());
    }
    let (keys, items): (Vec<Vec<Value>>, Vec<T>) = keyed.into_iter().unzip();
    let mut efforts: Vec<u64> = Vec::with_capacity(keys.len());
    for key in &keys {
        efforts.push(key.iter().map(weight::effort).sum());
        context.work.note_effort(key.len() as u64 + efforts.last().copied().unwrap_or_default());
        context.work.pause().await;
    }
    let compare = |a: usize, b: usize| {
        let each = by.iter().zip(keys[a].iter().zip(&keys[b])).map(|((_, order), (a, b))| match order {
            Order::Ascending => semantics::order(a, b),
            Order::Descending => semantics::order(a, b).reverse(),
            Order::Shuffle => Ordering::Equal,
        });
        each.fold(Ordering::Equal, Ordering::then)
    };
    let mut sorted: Vec<usize> = (0..keys.len()).collect();
    // Merges of ever longer runs. Unlike the standard sort, they can give way in between.
    let (mut run, mut effort) = (1, 0);
    while run < sorted.len() {
        let mut merged = Vec::with_capacity(sorted.len());
        for pair in sorted.chunks(2 * run) {
            let (mut a, mut b) = pair.split_at(run.min(pair.len()));
            while let ([first, rest @ ..], [other, others @ ..]) = (a, b) {
                effort += efforts[*first].min(efforts[*other]);
                if compare(*first, *other).is_le() {
                    merged.push(*first);
                    a = rest;
                } else {
                    merged.push(*other);
                    b = others;
                }
                if PART_EFFORT_MAX < effort {
                    effort = 0;
                    context.work.give_way_now().await;
                }
            }
            merged.extend_from_slice(a);
            merged.extend_from_slice(b);
        }
        sorted = merged;
        run *= 2;
    }
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    sorted.into_iter().filter_map(|at| items[at].take()).collect()
}
