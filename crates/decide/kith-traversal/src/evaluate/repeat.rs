//! `repeat`.

use super::{
    bulk::merged,
    chain::{Chain, Passes, Upstream, is_stateless},
    context::Context,
    nested,
    traverser::Batch,
};
use crate::{
    error::Result,
    plan::{Repeat, RepeatEnd},
};

/// The traversers that the next pass emits and returns. `None` when no traverser is left.
pub(super) async fn next(
    repeat: &Repeat,
    passes: &mut Passes,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    if passes.entering.is_empty() {
        passes.is_begun = false;
        let Some(input) = input(repeat, upstream, context).await? else { return Ok(None) };
        let mut input = merged(input, context).await;
        input.iter_mut().for_each(|traverser| traverser.enter_loop(repeat.name.clone()));
        (passes.entering, passes.pass) = (input, 0);
    }
    let mut returned = Batch::new();
    let entering = std::mem::take(&mut passes.entering);
    if !passes.is_begun {
        passes.is_begun = true;
        passes.entering = before(repeat, entering, &mut returned, context).await?;
        return Ok(Some(returned));
    }
    let mut staying = pass(repeat, entering, passes, upstream, context).await?;
    if !repeat.until_first {
        staying = leave(repeat, staying, &mut returned, context).await?;
    }
    if !repeat.emit_first {
        emit(repeat, &staying, &mut returned, context).await?;
    }
    passes.entering = before(repeat, staying, &mut returned, context).await?;
    Ok(Some(returned))
}

/// One pass through the repeated traversal.
async fn pass(
    repeat: &Repeat,
    entering: Batch,
    passes: &mut Passes,
    upstream: &Upstream<'_>,
    context: &Context<'_>,
) -> Result<Batch> {
    context.work.check_pass(passes.pass)?;
    passes.pass += 1;
    // All traversers of a pass are in the same passes. Those that a step made anew, such as `count`, know of none.
    let mut loops = entering.first().map(|traverser| traverser.loops.clone()).unwrap_or_default();
    if let Some((_, pass)) = loops.last_mut() {
        *pass += 1;
    }
    let body = match passes.body.take() {
        Some(mut body) => {
            body.enter(entering);
            body
        }
        None => Chain::nested(&repeat.body, entering, upstream.origins()),
    };
    let mut after = passes.body.insert(body).all(context).await?;
    after.iter_mut().for_each(|traverser| traverser.loops.clone_from(&loops));
    Ok(merged(after, context).await)
}

/// The traversers that make the passes together: a batch, or all if a step of the traversal counts or collects traversers.
async fn input(repeat: &Repeat, upstream: &mut Upstream<'_>, context: &Context<'_>) -> Result<Option<Batch>> {
    if is_stateless(&repeat.body) {
        return upstream.next(context).await;
    }
    let all = upstream.all(context).await?;
    Ok((!all.is_empty()).then_some(all))
}

/// The treatment of traversers before a pass, if `until` or `emit` stand before `repeat`.
async fn before(
    repeat: &Repeat,
    mut batch: Batch,
    returned: &mut Batch,
    context: &Context<'_>,
) -> Result<Batch> {
    if repeat.until_first {
        batch = leave(repeat, batch, returned, context).await?;
    }
    if repeat.emit_first {
        emit(repeat, &batch, returned, context).await?;
    }
    Ok(batch)
}

/// Returns the traversers for which `repeat` ends, and keeps the others.
async fn leave(repeat: &Repeat, batch: Batch, returned: &mut Batch, context: &Context<'_>) -> Result<Batch> {
    let ends: Vec<bool> = match &repeat.until {
        None => return Ok(batch),
        Some(RepeatEnd::Times(times)) => {
            batch.iter().map(|it| it.loops.last().is_some_and(|(_, pass)| pass >= times)).collect()
        }
        Some(RepeatEnd::Traversal(traversal)) => nested::exists(traversal, &batch, context).await?,
    };
    let mut staying = Batch::new();
    for (mut traverser, ends) in batch.into_iter().zip(ends) {
        if ends {
            traverser.loops.pop();
            returned.push(traverser);
        } else {
            staying.push(traverser);
        }
    }
    Ok(staying)
}

/// Returns copies of the traversers that are emitted.
async fn emit(repeat: &Repeat, batch: &Batch, returned: &mut Batch, context: &Context<'_>) -> Result<()> {
    let emitted: Vec<bool> = match &repeat.emit {
        None => return Ok(()),
        Some(None) => vec![true; batch.len()],
        Some(Some(traversal)) => nested::exists(traversal, batch, context).await?,
    };
    context.work.room_for(batch.len())?;
    for (traverser, _) in batch.iter().zip(emitted).filter(|(_, emitted)| *emitted) {
        let mut traverser = traverser.clone();
        traverser.loops.pop();
        returned.push(traverser);
    }
    Ok(())
}
