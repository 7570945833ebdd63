//! Nested traversals, evaluated for a whole batch at once.

use super::{
    chain::Chain,
    context::Context,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    plan::{Given, Traversal},
    value::Value,
};
use std::sync::Arc;

/// Evaluates a traversal for each of these traversers by itself, and returns the results of each. The bulk of a traverser does
/// not enter.
pub(super) async fn each(
    traversal: &Traversal,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Batch>> {
    let enter =
        |(at, traverser): (usize, &Traverser)| Traverser { bulk: 1, origin: at as u32, ..traverser.clone() };
    let inputs: Batch = batch.iter().enumerate().map(enter).collect();
    let origins: Arc<[u32]> = (0..batch.len() as u32).collect();
    let results = Chain::nested(traversal, inputs, origins).all(context).await?;
    let mut each: Vec<Batch> = batch.iter().map(|_| Batch::new()).collect();
    for result in results {
        each[result.origin as usize].push(result);
    }
    Ok(each)
}

/// The first result of a traversal for each of these traversers. `None` if it has none.
pub(super) async fn first(
    traversal: &Traversal,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Value>>> {
    let each = each(traversal, batch, context).await?;
    Ok(each.into_iter().map(|results| results.into_iter().next().map(|result| result.value)).collect())
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

/// What an argument is for each of these traversers. `None` if a traversal has no result, or a label is unknown.
pub(super) async fn given(
    given: &Given,
    batch: &[Traverser],
    context: &Context<'_>,
) -> Result<Vec<Option<Value>>> {
    match given {
        Given::Value(value) => Ok(batch.iter().map(|_| Some(value.clone())).collect()),
        Given::Label(label) => {
            let of = |traverser: &Traverser| {
                traverser
                    .labelled(label)
                    .last()
                    .map(|value| (*value).clone())
                    .or_else(|| context.side_effect(label))
            };
            Ok(batch.iter().map(of).collect())
        }
        Given::Traversal(traversal) => first(traversal, batch, context).await,
    }
}
