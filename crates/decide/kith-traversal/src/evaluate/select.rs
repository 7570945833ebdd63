//! `select` and `project`.

use super::{
    by,
    context::Context,
    nested, scope, size,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::{GremlinError, Result},
    plan::{ByArgument, Kind, Label},
    value::{Map, Pop, Value},
};
use std::sync::Arc;

pub(super) async fn apply(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    match kind {
        Kind::SelectColumn(column) => {
            let of = |traverser: &Traverser| {
                context
                    .work
                    .meter
                    .room(size::members(&traverser.value).saturating_mul(3 * weight::VALUE_BYTES))?;
                Ok(traverser.to(by::column(*column, &traverser.value)?))
            };
            batch.iter().map(of).collect()
        }
        Kind::Project { keys, by } => project(keys, by, batch, context).await,
        Kind::Select { pop, labels, by } => match &labels[..] {
            [label] => one(*pop, label, by, batch, context).await,
            labels => several(*pop, labels, by, batch, context).await,
        },
        Kind::SelectKeys { traversal, by, pop } => {
            let keys = nested::first(traversal, &batch, context).await?;
            let mut reached = Batch::new();
            for (traverser, key) in batch.into_iter().zip(keys) {
                let value = match key {
                    Some(key) => scope::value(*pop, &key, &traverser, context)?,
                    None => None,
                };
                let Some(value) = value else { continue };
                let entered = [traverser.to(value)];
                let made = by::in_turn(by, 0, &entered, context).await?;
                reached.extend(made.into_iter().flatten().map(|value| traverser.to(value)));
            }
            Ok(reached)
        }
        other => Err(GremlinError::bad(format!("{other:?} is no selection"))),
    }
}

/// `select(label)`: the value itself. Traversers without it do not pass.
async fn one(
    pop: Pop,
    label: &Label,
    by: &[ByArgument],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let mut entered = Batch::with_capacity(batch.len());
    let mut from = Batch::with_capacity(batch.len());
    for traverser in batch {
        if let Some(value) = scope::value(pop, &Value::String(label.clone()), &traverser, context)? {
            entered.push(traverser.to(value));
            from.push(traverser);
        }
    }
    let made = by::in_turn(by, 0, &entered, context).await?;
    let to = |(traverser, value): (Traverser, Option<Value>)| value.map(|value| traverser.to(value));
    Ok(from.into_iter().zip(made).filter_map(to).collect())
}

/// `select` of several labels: a map. Traversers that lack one do not pass.
async fn several(
    pop: Pop,
    labels: &[Label],
    by: &[ByArgument],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    context.work.meter.lend(weight::of_entries(batch.len(), labels.len()))?;
    let mut maps: Vec<Option<Map>> = vec![Some(Map::new()); batch.len()];
    for (at, label) in labels.iter().enumerate() {
        let key = Value::String(label.clone());
        let (mut entered, mut indexes) = (Batch::new(), Vec::new());
        for (index, traverser) in batch.iter().enumerate() {
            match scope::value(pop, &key, traverser, context)? {
                Some(value) if maps[index].is_some() => {
                    entered.push(traverser.to(value));
                    indexes.push(index);
                }
                _ => maps[index] = None,
            }
        }
        let made = by::in_turn(by, at, &entered, context).await?;
        for (index, value) in indexes.into_iter().zip(made) {
            match (value, &mut maps[index]) {
                (Some(value), Some(map)) => drop(map.insert(key.clone(), value)),
                _ => maps[index] = None,
            }
        }
    }
    let to =
        |(traverser, map): (&Traverser, Option<Map>)| map.map(|map| traverser.to(Value::Map(Arc::new(map))));
    Ok(batch.iter().zip(maps).filter_map(to).collect())
}

/// `project`: a map of what each `by` makes of the value. Keys without a value are left out.
async fn project(keys: &[Label], by: &[ByArgument], batch: Batch, context: &Context<'_>) -> Result<Batch> {
    context.work.meter.lend(weight::of_entries(batch.len(), keys.len()))?;
    let mut maps = vec![Map::new(); batch.len()];
    for (at, key) in keys.iter().enumerate() {
        let values = by::in_turn(by, at, &batch, context).await?;
        for (map, value) in maps.iter_mut().zip(values) {
            if let Some(value) = value {
                map.insert(Value::String(key.clone()), value);
            }
        }
    }
    Ok(batch.iter().zip(maps).map(|(traverser, map)| traverser.to(Value::Map(Arc::new(map)))).collect())
}
