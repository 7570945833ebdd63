//! `order`.

use super::{
    by,
    context::Context,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    plan::By,
    semantics,
    value::{Map, Order, Value},
};
use rand::seq::SliceRandom;
use std::{cmp::Ordering, sync::Arc};

/// `order`: the traversers of each origin. Those for which a `by` has no value do not pass.
pub(super) async fn global(by: &[(By, Order)], all: Batch, context: &Context<'_>) -> Result<Batch> {
    let keys = keys(by, &all, context).await?;
    let mut keyed: Vec<(Vec<Value>, Traverser)> =
        keys.into_iter().zip(all).filter_map(|(key, traverser)| Some((key?, traverser))).collect();
    sort(by, &mut keyed, context);
    Ok(keyed.into_iter().map(|(_, traverser)| traverser).collect())
}

/// `order(local)`: the members of a list, or the entries of a map. Other values stay as they are.
pub(super) async fn local(by: &[(By, Order)], value: &Value, context: &Context<'_>) -> Result<Value> {
    if let Value::Map(map) = value {
        let entries: Vec<(Value, Value)> =
            map.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let as_values = entries.iter().map(|(key, value)| context.traverser(by::entry(key, value))).collect();
        let mut keyed = keyed(by, as_values, entries, context).await?;
        sort(by, &mut keyed, context);
        return Ok(Value::Map(Arc::new(keyed.into_iter().map(|(_, entry)| entry).collect::<Map>())));
    }
    let Some(members) = semantics::lists::values(value)? else { return Ok(value.clone()) };
    let batch = members.iter().map(|member| context.traverser(member.clone())).collect();
    let mut keyed = keyed(by, batch, members, context).await?;
    sort(by, &mut keyed, context);
    Ok(Value::list(keyed.into_iter().map(|(_, member)| member).collect::<Vec<_>>()))
}

async fn keyed<T>(
    by: &[(By, Order)],
    batch: Batch,
    items: Vec<T>,
    context: &Context<'_>,
) -> Result<Vec<(Vec<Value>, T)>> {
    let keys = keys(by, &batch, context).await?;
    Ok(keys.into_iter().zip(items).filter_map(|(key, item)| Some((key?, item))).collect())
}

/// What each `by` makes of each value. `None` if one has no value.
async fn keys(
    by: &[(By, Order)],
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

fn sort<T>(by: &[(By, Order)], keyed: &mut [(Vec<Value>, T)], context: &Context<'_>) {
    if by.iter().any(|(_, order)| *order == Order::Shuffle) {
        keyed.shuffle(&mut *context.random.lock());
    }
    keyed.sort_by(|(a, _), (b, _)| {
        let each = by.iter().zip(a.iter().zip(b)).map(|((_, order), (a, b))| match order {
            Order::Ascending => semantics::order(a, b),
            Order::Descending => semantics::order(a, b).reverse(),
            Order::Shuffle => Ordering::Equal,
        });
        each.fold(Ordering::Equal, Ordering::then)
    });
}
