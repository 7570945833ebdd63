//! Steps that put something aside, or collect it in a map.

use super::{
    bulk::by_origin,
    by,
    chain::Chain,
    context::Context,
    reduce::{added, single},
    step::PART_EFFORT_MAX,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::{GremlinError, Result},
    plan::{ByArgument, Group, Kind, Label},
    value::{Map, Operator, Value},
};
use indexmap::{IndexMap, map::Entry};
use std::sync::Arc;

/// `group` that returns a map, for each origin.
pub(super) async fn group(
    group: &Group,
    all: Batch,
    origins: &[u32],
    context: &Context<'_>,
) -> Result<Batch> {
    let mut collected = by_origin(all);
    let mut results = Batch::with_capacity(origins.len());
    for origin in origins {
        let members = collected.remove(origin).unwrap_or_default();
        let map = grouped(group, members, context).await?;
        results.push(single(Value::Map(Arc::new(map)), *origin, context));
    }
    Ok(results)
}

/// The value of each group. All groups are evaluated at once: each is an origin of the traversal that makes the values.
async fn grouped(group: &Group, members: Batch, context: &Context<'_>) -> Result<Map> {
    let keys = by::values(&group.keys, &members, context).await?;
    context.work.meter.lend(weight::of_entries(keys.len(), 1))?;
    let mut groups: IndexMap<Value, u32> = IndexMap::new();
    let mut inputs = Batch::with_capacity(members.len());
    for (traverser, key) in members.into_iter().zip(keys) {
        let Some(key) = key else { continue };
        context.work.look_at(&key).await;
        let next = groups.len() as u32;
        let origin = *groups.entry(key).or_insert(next);
        inputs.push(Traverser { origin, ..traverser });
    }
    let origins: Arc<[u32]> = (0..groups.len() as u32).collect();
    let results = Chain::nested(&group.values, inputs, origins).all(context).await?;
    let mut values: Vec<Option<Value>> = vec![None; groups.len()];
    for result in results {
        values[result.origin as usize].get_or_insert(result.value);
    }
    Ok(groups.into_keys().zip(values).filter_map(|(key, value)| Some((key, value?))).collect())
}

/// `groupCount` that returns a map, for each origin.
pub(super) async fn count(
    by: &ByArgument,
    all: Batch,
    origins: &[u32],
    context: &Context<'_>,
) -> Result<Batch> {
    let keys = by::values(by, &all, context).await?;
    let mut maps: IndexMap<u32, Map> = origins.iter().map(|origin| (*origin, Map::new())).collect();
    for (traverser, key) in all.iter().zip(keys) {
        if let Some(key) = &key {
            context.work.look_at(key).await;
        }
        if let (Some(key), Some(map)) = (key, maps.get_mut(&traverser.origin)) {
            count_up(map, key, traverser.bulk, context)?;
        }
    }
    Ok(maps.into_iter().map(|(origin, map)| single(Value::Map(Arc::new(map)), origin, context)).collect())
}

fn count_up(map: &mut Map, key: Value, bulk: i64, context: &Context<'_>) -> Result<()> {
    if !map.contains_key(&key) {
        context.work.count_values(std::iter::once(&key))?;
        context.work.count_bytes(2 * weight::VALUE_BYTES)?;
    }
    let count = map.entry(key).or_insert(Value::Long(0));
    let before = if let Value::Long(before) = count { *before } else { 0 };
    *count = Value::Long(added(before, bulk)?);
    Ok(())
}

/// Steps whose result is a side effect. The traversers pass.
pub(super) async fn side_effect(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    match kind {
        Kind::Aggregate { key, by, .. } => aggregate(key, by, batch, context).await,
        Kind::GroupCount { key: Some(key), by } => {
            let keys = by::values(by, &batch, context).await?;
            context.side_effects.change(key, &context.work, |before| {
                let mut map = map_of(before);
                for (traverser, key) in batch.iter().zip(keys) {
                    key.into_iter().try_for_each(|key| count_up(&mut map, key, traverser.bulk, context))?;
                }
                Ok(Value::Map(Arc::new(map)))
            })?;
            Ok(batch)
        }
        Kind::Group(group) => {
            let Some(key) = &group.key else { return Ok(batch) };
            let more = grouped(group, batch.clone(), context).await?;
            context.work.count_values(more.keys().chain(more.values()))?;
            context.work.count_bytes(more.len() as u64 * weight::VALUE_BYTES)?;
            context.side_effects.change(key, &context.work, |before| {
                let mut map = map_of(before);
                for (key, value) in more {
                    match map.entry(key) {
                        Entry::Vacant(entry) => drop(entry.insert(value)),
                        Entry::Occupied(mut entry) => {
                            let before = std::mem::take(entry.get_mut());
                            *entry.get_mut() = joined(before, value, context)?;
                        }
                    }
                }
                Ok(Value::Map(Arc::new(map)))
            })?;
            Ok(batch)
        }
        other => Err(GremlinError::bad(format!("{other:?} is no side effect"))),
    }
}

fn map_of(value: Option<Value>) -> Map {
    match value {
        Some(Value::Map(map)) => Arc::unwrap_or_clone(map),
        _ => Map::new(),
    }
}

/// The value of a group whose members came in two batches.
fn joined(before: Value, more: Value, context: &Context<'_>) -> Result<Value> {
    match (&before, &more) {
        (Value::List(_), Value::List(_)) | (Value::Map(_), Value::Map(_)) => {
            context.work.applied(Operator::AddAll, before, &more)
        }
        _ if before.is_number() && more.is_number() => context.work.applied(Operator::Sum, before, &more),
        _ => Ok(before),
    }
}

/// `aggregate`: adds values to a side effect.
pub(super) async fn aggregate(
    key: &Label,
    by: &ByArgument,
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    let values = by::values(by, &batch, context).await?;
    for value in values.iter().flatten() {
        context.work.count_values(std::iter::once(value))?;
        context.work.pause().await;
    }
    context.work.count_bytes(values.len() as u64 * 2 * weight::VALUE_BYTES)?;
    let operator = context.operator_of(key);
    let last = batch.last().map(|traverser| traverser.origin);
    // Of several nested traversals, the last one assigns last.
    let counts = |traverser: &Traverser| operator != Some(Operator::Assign) || Some(traverser.origin) == last;
    let added = batch.iter().zip(values).filter(|(traverser, _)| counts(traverser));
    let added: Vec<(Value, i64)> =
        added.filter_map(|(traverser, value)| Some((value?, traverser.bulk))).collect();
    let mut added = added.into_iter().peekable();
    match operator {
        None => {
            while added.peek().is_some() {
                context.work.pause().await;
                let part = part(&mut added, context);
                let count = part.iter().map(|(_, bulk)| usize::try_from(*bulk).unwrap_or(0));
                context.side_effects.add(
                    key,
                    &context.work,
                    count.fold(0, usize::saturating_add),
                    part.into_iter(),
                )?;
            }
        }
        // These take what is added as a whole.
        Some(operator @ (Operator::AddAll | Operator::Assign)) => {
            let mut all = IndexMap::new();
            count_all(&mut all, added);
            let added = Value::BulkSet(Arc::new(all.into_iter().collect()));
            context.side_effects.change(key, &context.work, |before| {
                context.work.applied(
                    operator,
                    before.unwrap_or_else(|| Value::BulkSet(Arc::default())),
                    &added,
                )
            })?;
        }
        Some(operator) => {
            context.work.count_each(batch.iter().map(|traverser| traverser.bulk))?;
            context.side_effects.change(key, &context.work, |before| {
                added
                    .flat_map(|(value, bulk)| std::iter::repeat_n(value, bulk.max(0) as usize))
                    .try_fold(before.unwrap_or_default(), |before, value| {
                        context.work.applied(operator, before, &value)
                    })
            })?;
        }
    }
    context.work.give_way(batch.iter().map(|traverser| &traverser.value)).await;
    Ok(batch)
}

/// As many of these values as can be looked at before a pause.
fn part(left: &mut impl Iterator<Item = (Value, i64)>, context: &Context<'_>) -> Vec<(Value, i64)> {
    let (mut part, mut effort) = (Vec::new(), 0_u64);
    while effort < PART_EFFORT_MAX {
        let Some(next) = left.next() else { break };
        effort = effort.saturating_add(weight::effort(&next.0));
        part.push(next);
    }
    context.work.note_effort(effort);
    part
}

/// Adds values to those of a bulk set.
pub(super) fn count_all(counts: &mut IndexMap<Value, i64>, added: impl Iterator<Item = (Value, i64)>) {
    for (value, bulk) in added {
        let count = counts.entry(value).or_insert(0);
        *count = count.saturating_add(bulk);
    }
}

/// `cap`: side effects. One by itself, several as a map.
pub(super) async fn cap(keys: &[Label], origins: &[u32], context: &Context<'_>) -> Result<Batch> {
    let of = |key: &Label| {
        context
            .side_effects
            .get(key, &context.work)?
            .ok_or_else(|| GremlinError::bad(format!("there is no side effect {key:?}")))
    };
    let value = match keys {
        [key] => of(key)?,
        keys => {
            let entry = |key: &Label| Ok((Value::String(key.clone()), of(key)?));
            Value::Map(Arc::new(keys.iter().map(entry).collect::<Result<Map>>()?))
        }
    };
    Ok(origins.iter().map(|origin| single(value.clone(), *origin, context)).collect())
}
