//! Steps with several ways on, and steps that take a nested traversal as a function.

use super::{
    by,
    chain::{Chain, Upstream},
    context::Context,
    nested,
    traverser::{Batch, Traverser},
};
use crate::{
    error::{GremlinError, Result},
    plan::{Choice, ChooseParts, Kind, OptionKey, Traversal, is_stateless},
    semantics::Test,
    value::Value,
};
use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

/// Steps that take a nested traversal for each traverser by itself.
pub(super) async fn apply(kind: &Kind, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let batch = nested::separate(kind, batch, context)?;
    match kind {
        Kind::Map(traversal) => {
            let values = nested::first(traversal, &batch, context).await?;
            let to = |(traverser, value): (&Traverser, Option<Value>)| value.map(|value| traverser.to(value));
            Ok(batch.iter().zip(values).filter_map(to).collect())
        }
        Kind::FlatMap(traversal) => {
            let each = nested::each(traversal, &batch, context).await?;
            Ok(batch.iter().zip(each).flat_map(|(from, results)| flat(from, results)).collect())
        }
        Kind::Local(traversal) => {
            let each = nested::each(traversal, &batch, context).await?;
            Ok(batch.iter().zip(each).flat_map(|(from, results)| nested::leave(results, from)).collect())
        }
        Kind::SideEffect(traversal) => {
            nested::each(traversal, &batch, context).await?;
            Ok(batch)
        }
        Kind::Optional(traversal) => optional(traversal, batch, context).await,
        Kind::Coalesce(traversals) => coalesce(traversals, batch, context).await,
        other => Err(GremlinError::bad(format!("{other:?} has no nested traversal"))),
    }
}

/// The results of a traversal; the traverser itself, if it has none.
async fn optional(traversal: &Traversal, batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let each = nested::each(traversal, &batch, context).await?;
    let mut reached = Batch::new();
    for (traverser, results) in batch.into_iter().zip(each) {
        if results.is_empty() {
            reached.push(traverser);
        } else {
            reached.extend(nested::leave(results, &traverser));
        }
    }
    Ok(reached)
}

/// The results that a nested traversal has for a traverser of one of these steps.
pub(super) fn left(kind: &Kind, from: &Traverser, results: Batch) -> Batch {
    match kind {
        Kind::FlatMap(_) | Kind::Coalesce(_) => flat(from, results).collect(),
        _ => nested::leave(results, from).collect(),
    }
}

/// Traversers at the values of the results. Their paths do not show how the nested traversal has reached these.
fn flat(from: &Traverser, results: Batch) -> impl Iterator<Item = Traverser> {
    results
        .into_iter()
        .map(|result| Traverser { bulk: from.bulk.saturating_mul(result.bulk), ..from.to(result.value) })
}

/// The results of the first traversal that has any, for each traverser.
async fn coalesce(traversals: &[Traversal], batch: Batch, context: &Context<'_>) -> Result<Batch> {
    let mut results: Vec<Option<Batch>> = vec![None; batch.len()];
    for traversal in traversals {
        let open: Vec<usize> = (0..batch.len()).filter(|at| results[*at].is_none()).collect();
        if open.is_empty() {
            break;
        }
        context.work.room_for(open.len())?;
        let entered: Batch = open.iter().map(|at| batch[*at].clone()).collect();
        let each = nested::each(traversal, &entered, context).await?;
        for (at, found) in open.into_iter().zip(each) {
            results[at] = (!found.is_empty()).then_some(found);
        }
    }
    let each = batch.iter().zip(results).filter_map(|(from, results)| Some((from, results?)));
    Ok(each.flat_map(|(from, results)| flat(from, results)).collect())
}

/// The next batch of `union`, `choose` or `branch`. Their traversals are entered by all traversers together: a `count` in one of
/// them counts all.
pub(super) async fn next(
    kind: &Kind,
    chains: &mut Option<VecDeque<Chain>>,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    loop {
        if let Some(current) = chains {
            while let Some(chain) = current.front_mut() {
                if let Some(batch) = chain.next(upstream.demand.clone(), context).await? {
                    return Ok(Some(batch));
                }
                current.pop_front();
            }
        }
        let is_begun = chains.is_some();
        if upstream.is_beginning() {
            let Kind::Union(traversals) = kind else { return Ok(None) };
            if is_begun {
                return Ok(None);
            }
            *chains = Some(traversals.iter().map(|branch| Chain::beginning(branch, context)).collect());
            continue;
        }
        let input = if options(kind).iter().all(|traversal| is_stateless(traversal)) {
            upstream.next(context).await?
        } else if is_begun {
            None
        } else {
            Some(upstream.all(context).await?)
        };
        let Some(input) = input else { return Ok(None) };
        *chains = Some(enter(kind, input, upstream, context).await?);
    }
}

fn options(kind: &Kind) -> Vec<&Traversal> {
    match kind {
        Kind::Union(traversals) => traversals.iter().collect(),
        Kind::Choose(choose) => choose.options.iter().map(|(_, traversal)| traversal).collect(),
        _ => Vec::new(),
    }
}

async fn enter(
    kind: &Kind,
    input: Batch,
    upstream: &Upstream<'_>,
    context: &Context<'_>,
) -> Result<VecDeque<Chain>> {
    let known = upstream.origins();
    // A traversal that nobody enters has no result, also if it counts.
    let chain = |(traversal, batch): (Traversal, Batch)| {
        let entered: HashSet<u32> = batch.iter().map(|traverser| traverser.origin).collect();
        let origins: Arc<[u32]> = known.iter().copied().filter(|origin| entered.contains(origin)).collect();
        (!origins.is_empty()).then(|| Chain::nested(&traversal, batch, origins))
    };
    match kind {
        Kind::Choose(choose) => {
            let (mut entered, passed) = chosen(choose, input, context).await?;
            let traversals = choose.options.iter().map(|(_, traversal)| traversal.clone());
            let identity: Traversal = [].into();
            entered.push(passed);
            Ok(traversals.chain([identity]).zip(entered).filter_map(chain).collect())
        }
        kind => {
            let options = options(kind);
            context.work.room_for(input.len().saturating_mul(options.len()))?;
            let all = options.into_iter().map(|traversal| (traversal.clone(), input.clone()));
            Ok(all.filter_map(chain).collect())
        }
    }
}

/// The traversers that enter each option, and those that enter none and pass.
async fn chosen(choose: &ChooseParts, input: Batch, context: &Context<'_>) -> Result<(Vec<Batch>, Batch)> {
    let values: Vec<Option<Value>> = match &choose.choice {
        Choice::Exists(traversal) => nested::exists(traversal, &input, context)
            .await?
            .into_iter()
            .map(|exists| Some(exists.into()))
            .collect(),
        Choice::By(by) => by::values(by, &input, context).await?,
        Choice::Test(test) => {
            input.iter().map(|it| Ok(Some(test.holds(&it.value)?.into()))).collect::<Result<_>>()?
        }
    };
    if choose.takes_all {
        context.work.room_for(input.len().saturating_mul(choose.options.len()))?;
    }
    let tests = tests(choose, &values, context).await?;
    let mut entered: Vec<Batch> = choose.options.iter().map(|_| Batch::new()).collect();
    let mut passed = Batch::new();
    for (at, (traverser, value)) in input.into_iter().zip(values).enumerate() {
        let mut is_matched = false;
        for (option, (key, _)) in choose.options.iter().enumerate() {
            let matches = match key {
                OptionKey::Any => value.is_some() && choose.takes_all,
                OptionKey::Test(_) | OptionKey::Traversal(_) => {
                    tests[option][at] && (choose.takes_all || !is_matched)
                }
                OptionKey::NoMatch | OptionKey::Unproductive => false,
            };
            if matches {
                is_matched |= !matches!(key, OptionKey::Any);
                entered[option].push(traverser.clone());
            }
        }
        if is_matched {
            continue;
        }
        let mut defaults = defaults(choose, value.is_some()).peekable();
        if defaults.peek().is_none() && !choose.takes_all {
            passed.push(traverser);
            continue;
        }
        defaults.for_each(|option| entered[option].push(traverser.clone()));
    }
    Ok((entered, passed))
}

/// The options of traversers that no other option takes.
fn defaults(choose: &ChooseParts, has_value: bool) -> impl Iterator<Item = usize> {
    let is_default = move |key: &OptionKey| match key {
        OptionKey::NoMatch => has_value,
        OptionKey::Unproductive => !has_value,
        _ => false,
    };
    let options = choose.options.iter().enumerate();
    options.filter(move |(_, (key, _))| is_default(key)).map(|(option, _)| option)
}

/// For each option, whether its key matches the value of each traverser.
async fn tests(
    choose: &ChooseParts,
    values: &[Option<Value>],
    context: &Context<'_>,
) -> Result<Vec<Vec<bool>>> {
    let is_true = |test: &Test, value: &Option<Value>| match value {
        Some(value) => test.holds(value),
        None => Ok(false),
    };
    let mut all = Vec::with_capacity(choose.options.len());
    for (key, _) in &choose.options {
        all.push(match key {
            OptionKey::Test(test) => {
                values.iter().map(|value| is_true(test, value)).collect::<Result<_>>()?
            }
            OptionKey::Traversal(traversal) => {
                let entered: Batch =
                    values.iter().map(|value| context.traverser(value.clone().unwrap_or_default())).collect();
                let exists = nested::exists(traversal, &entered, context).await?;
                exists.into_iter().zip(values).map(|(exists, value)| exists && value.is_some()).collect()
            }
            _ => vec![false; values.len()],
        });
    }
    Ok(all)
}
