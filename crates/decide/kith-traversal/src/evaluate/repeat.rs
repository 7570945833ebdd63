//! `repeat`.

use super::{
    bulk::merged,
    chain::{Chain, Demand, Passes, RunningPass, Upstream},
    context::Context,
    nested,
    traverser::Batch,
};
use crate::{
    error::Result,
    plan::{Repeat, RepeatEnd, is_stateless},
};

/// The most traversers that make a pass at a time if fewer are wanted. What they reach is kept, and may not be needed.
const CHUNK_MAX: usize = 4096;

/// The traversers that are emitted and returned next. `None` when no traverser is left.
///
/// If all are wanted, the traversers of a batch make each pass together. If few are wanted, few make their next pass, and as far
/// as is needed: those with the fewest passes behind them, as in TinkerPop, so that shorter paths come before longer ones. Where
/// all results have the same number of passes, those with the most go first, which leads to results soonest, and in the same
/// order.
///
/// Passes without a result are followed by more, of twice as many traversers each time.
pub(super) async fn next(
    repeat: &Repeat,
    passes: &mut Passes,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    let wanted = upstream.demand.clone();
    // Where traversers see what others have put aside, it makes a difference which pass comes first.
    let is_stateless = is_stateless(&repeat.body) && !nested::reads_own_side_effects(&repeat.body);
    let (mut demand, mut fruitless) = (wanted.clone(), 0);
    loop {
        upstream.demand = demand.clone();
        let mut returned = Batch::new();
        if passes.waiting.is_empty() && passes.running.is_empty() {
            let input = match is_stateless {
                true => upstream.next(context).await?,
                false => Some(upstream.all(context).await?).filter(|all| !all.is_empty()),
            };
            let Some(input) = input else { return Ok(None) };
            let mut input = merged(input, context).await;
            input.iter_mut().for_each(|traverser| traverser.enter_loop(repeat.name.clone()));
            let staying = before(repeat, input, &mut returned, context).await?;
            put(repeat, passes, 0, staying);
        } else {
            let demand = if is_stateless { demand.clone() } else { Demand::ALL };
            returned = go_on(repeat, &demand, passes, upstream, context).await?;
        }
        if !returned.is_empty() || wanted.is_all() {
            return Ok(Some(returned));
        }
        fruitless += 1;
        if passes_to_results(repeat) < fruitless {
            let most = wanted.least(CHUNK_MAX);
            (demand, fruitless) = (demand.doubled().limited(most), 0);
        }
    }
}

/// The number of passes after which there is a result, if that is certain; otherwise 1.
fn passes_to_results(repeat: &Repeat) -> u32 {
    match repeat.until {
        Some(RepeatEnd::Times(times)) if is_even(repeat) => times,
        _ => 1,
    }
}

/// Whether all results have made the same number of passes.
fn is_even(repeat: &Repeat) -> bool {
    matches!(repeat.until, Some(RepeatEnd::Times(_))) && repeat.emit.is_none()
}

/// Takes the traversers that are to make their next pass, as many as are wanted, with the number of those behind them. `None` if
/// a pass that has begun goes first.
fn taken(repeat: &Repeat, demand: &Demand, passes: &mut Passes) -> Option<(u32, Batch)> {
    let is_even = is_even(repeat);
    let running = passes.running.last().map(|running| running.pass);
    let (pass, batch) = if is_even { passes.waiting.back_mut()? } else { passes.waiting.front_mut()? };
    if running.is_some_and(|running| if is_even { *pass <= running } else { running <= *pass }) {
        return None;
    }
    let (pass, part) = (*pass, demand.part_of(batch));
    passes.waiting.retain(|(_, batch)| !batch.is_empty());
    Some((pass, part))
}

/// Adds traversers that have made a pass. They come after others with as many passes.
fn put(repeat: &Repeat, passes: &mut Passes, pass: u32, batch: Batch) {
    match passes.waiting.back_mut() {
        _ if batch.is_empty() => {}
        Some((known, waiting)) if *known == pass && !is_even(repeat) => waiting.extend(batch),
        _ => passes.waiting.push_back((pass, batch)),
    }
}

/// Goes on with a pass, or begins one. Returns what is emitted and returned after it.
async fn go_on(
    repeat: &Repeat,
    demand: &Demand,
    passes: &mut Passes,
    upstream: &Upstream<'_>,
    context: &Context<'_>,
) -> Result<Batch> {
    let mut returned = Batch::new();
    if let Some((pass, entering)) = taken(repeat, demand, passes) {
        begin(repeat, entering, pass, passes, upstream, context)?;
    }
    let Some((pass, mut staying)) = passed(demand, passes, context).await? else { return Ok(returned) };
    if !repeat.until_first {
        staying = leave(repeat, staying, &mut returned, context).await?;
    }
    if !repeat.emit_first {
        emit(repeat, &staying, &mut returned, context).await?;
    }
    let staying = before(repeat, staying, &mut returned, context).await?;
    put(repeat, passes, pass + 1, staying);
    Ok(returned)
}

/// Begins a pass: these traversers, which have `pass` passes behind them, enter the repeated traversal.
fn begin(
    repeat: &Repeat,
    entering: Batch,
    pass: u32,
    passes: &mut Passes,
    upstream: &Upstream<'_>,
    context: &Context<'_>,
) -> Result<()> {
    context.work.check_pass(pass)?;
    // All that enter are in the same passes. Traversers that the body makes anew, such as those of `count`, do not know these.
    let mut loops = entering.first().map(|traverser| traverser.loops.clone()).unwrap_or_default();
    if let Some((_, pass)) = loops.last_mut() {
        *pass += 1;
    }
    let body = match passes.spare.take() {
        Some(mut body) => {
            body.enter(entering);
            body
        }
        None => Chain::nested(&repeat.body, entering, upstream.origins()),
    };
    passes.running.push(RunningPass { pass, loops, body });
    Ok(())
}

/// The next traversers that have made the pass that began last, as many as are wanted, and the number of passes that were behind
/// them before. `None` once it has ended.
async fn passed(demand: &Demand, passes: &mut Passes, context: &Context<'_>) -> Result<Option<(u32, Batch)>> {
    let Some(running) = passes.running.last_mut() else { return Ok(None) };
    let (pass, is_all) = (running.pass, demand.is_all());
    let next = match is_all {
        true => Some(running.body.all(context).await?),
        false => running.body.next(demand.clone(), context).await?,
    };
    let has_ended = is_all || next.is_none();
    let mut after = next.unwrap_or_default();
    after.iter_mut().for_each(|traverser| traverser.loops.clone_from(&running.loops));
    if has_ended {
        passes.spare = passes.running.pop().map(|running| running.body);
    }
    let after = merged(after, context).await;
    Ok((!after.is_empty()).then_some((pass, after)))
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
