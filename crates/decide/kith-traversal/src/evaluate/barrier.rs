//! `barrier`: collects all traversers, merges those that are equal, and normalises sacks.

use super::{
    bulk::{by_origin, merged, merged_by},
    context::Context,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    semantics::number,
    value::{Operator, Value},
};

pub(super) async fn barrier(normalises_sacks: bool, all: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut all = match context.source.sack.as_ref().and_then(|(_, operator)| *operator) {
        Some(operator) => with_sacks(operator, all, context).await?,
        None => merged(all, context).await,
    };
    if !context.source.is_bulked {
        all.iter_mut().for_each(|traverser| traverser.bulk = 1);
    }
    if !normalises_sacks {
        return Ok(all);
    }
    let mut normalised = Batch::with_capacity(all.len());
    for (_, batch) in by_origin(all) {
        normalised.extend(with_norm(batch)?);
    }
    normalised.sort_by_key(|traverser| traverser.origin);
    Ok(normalised)
}

/// Merges traversers that only the bulk and the sack tell apart. An operator makes one sack of theirs.
async fn with_sacks(operator: Operator, all: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut failure = None;
    let same = |known: &Traverser, traverser: &Traverser| known.is_same_but_for_sack(traverser);
    let merge = |known: &mut Traverser, traverser: Traverser| {
        let sack = known.sack.take().unwrap_or_default();
        match context.work.applied(operator, sack, &traverser.sack.unwrap_or_default()) {
            Ok(sack) => known.sack = Some(sack),
            Err(error) => failure = Some(error),
        }
        known.bulk = known.bulk.saturating_add(traverser.bulk);
    };
    let merged = merged_by(all, same, merge, context).await;
    failure.map_or(Ok(merged), Err)
}

/// Divides each sack by the sum of all.
fn with_norm(mut batch: Batch) -> Result<Batch> {
    let mut sum = Value::Double(0.0);
    for traverser in &batch {
        let sack = traverser.sack.as_ref().filter(|sack| sack.is_number()).ok_or_else(|| {
            GremlinError::bad("barrier(normSack) needs numbers as sacks, which withSack() gives")
        })?;
        sum = number::add(&sum, &number::multiply(sack, &Value::Long(traverser.bulk))?)?;
    }
    for traverser in &mut batch {
        let sack = traverser.sack.take().unwrap_or_default();
        traverser.sack = Some(number::fraction(&sack, &sum)?);
    }
    Ok(batch)
}
