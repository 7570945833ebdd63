//! `path`, `simplePath` and `cyclicPath`.

use super::{
    by,
    context::Context,
    traverser::{Batch, Traverser},
    weight,
};
use crate::{
    error::{GremlinError, Result},
    plan::{ByArgument, Label, PathPart},
    value::{Path, Set, Value},
};
use std::{collections::HashSet, sync::Arc};

/// `path`: what a traverser had, each value as its `by` makes it.
pub(super) async fn path(
    between: &PathPart,
    by: &[ByArgument],
    batch: Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    context.work.meter.lend(places(&batch))?;
    let paths = paths(between, by, &batch, context).await?;
    let to = |(traverser, path): (&Traverser, Option<Path>)| {
        path.map(|path| traverser.to(Value::Path(Arc::new(path))))
    };
    Ok(batch.iter().zip(paths).filter_map(to).collect())
}

/// Whether the values of each path are all different (`is_simple`), or not.
pub(super) async fn simple(
    is_simple: bool,
    between: &PathPart,
    by: &[ByArgument],
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<bool>> {
    let is_distinct = |path: &Path| {
        let mut seen = HashSet::with_capacity(path.objects.len());
        path.objects.iter().all(|value| seen.insert(value))
    };
    let _places = context.work.meter.reserve(places(batch))?;
    let paths = paths(between, by, batch, context).await?;
    Ok(paths.iter().map(|path| path.as_ref().is_some_and(|path| is_distinct(path) == is_simple)).collect())
}

/// The bytes of the places of all paths, and of the parts of them that are made.
fn places(batch: &[Traverser]) -> u64 {
    let lengths = batch.iter().map(Traverser::path_length);
    lengths.fold(0, u64::saturating_add).saturating_mul(2 * weight::VALUE_BYTES)
}

/// The part of each path, as the `by` make it. `None` if one of these has no value.
async fn paths(
    between: &PathPart,
    by: &[ByArgument],
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Path>>> {
    let part = |traverser: &Traverser| Ok(Some(part(traverser.path(), between)?));
    let mut paths: Vec<Option<Path>> = batch.iter().map(part).collect::<Result<_>>()?;
    if by.is_empty() {
        return Ok(paths);
    }
    let longest = paths.iter().flatten().map(|path| path.objects.len()).max().unwrap_or(0);
    // Values that the same `by` modulates are asked for together.
    for turn in 0..by.len().min(longest) {
        let (mut entered, mut places) = (Batch::new(), Vec::new());
        for (at, path) in paths.iter().enumerate() {
            context.work.room_for(path.as_ref().map_or(0, |path| path.objects.len()))?;
            let objects = path.iter().flat_map(|path| path.objects.iter().enumerate());
            for (index, object) in objects.filter(|(index, _)| index % by.len() == turn) {
                entered.push(Traverser { value: object.clone(), bulk: 1, ..batch[at].clone() });
                places.push((at, index));
            }
        }
        let values = by::values(&by[turn], &entered, context).await?;
        for ((at, index), value) in places.into_iter().zip(values) {
            match (value, &mut paths[at]) {
                (Some(value), Some(path)) => path.objects[index] = value,
                (_, path) => *path = None,
            }
        }
    }
    Ok(paths)
}

/// The values from one label to another.
///
/// # Errors
/// The path lacks one of the labels.
fn part(path: Path, between: &PathPart) -> Result<Path> {
    let lacks =
        |end: &str, label: &Label| GremlinError::bad(format!("could not locate path {end}-label: {label}"));
    let (mut from, mut to) = (0, path.objects.len());
    if let Some(label) = &between.from {
        let has = |labels: &Set| labels.contains(&Value::String(Arc::clone(label)));
        from = path.labels.iter().position(has).ok_or_else(|| lacks("from", label))?;
    }
    if let Some(label) = &between.to {
        let has = |labels: &Set| labels.contains(&Value::String(Arc::clone(label)));
        to = path.labels.iter().rposition(has).ok_or_else(|| lacks("to", label))? + 1;
    }
    let to = to.max(from);
    Ok(Path { labels: path.labels[from..to].to_vec(), objects: path.objects[from..to].to_vec() })
}
