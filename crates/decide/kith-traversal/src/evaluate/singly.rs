//! Steps with a nested traversal of which few results are wanted: the first traverser enters it alone, and it goes on only as far as
//! it is asked for.

use super::{
    branch,
    chain::{Chain, Demand, Upstream},
    context::Context,
    nested,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    plan::{Kind, Traversal},
};
use std::{mem, slice};

/// The traversers in `flatMap`, `local`, `optional` or `coalesce`.
#[derive(Debug, Default)]
pub(super) struct EnteredProgress {
    /// The traverser that is in the nested traversal.
    entered: Option<Entered>,
    /// Those that have not entered it.
    waiting: Batch,
    /// How many enter it next.
    count: usize,
}

/// A traverser in a nested traversal.
#[derive(Debug)]
struct Entered {
    traverser: Traverser,
    chain: Chain,
    /// Which of the traversals of a `coalesce` it is.
    branch: usize,
    /// Whether the traversal has had a result.
    has_result: bool,
}

/// The next batch. If all are wanted, all traversers of a batch enter the nested traversal together; otherwise one by one at first,
/// and more each time, in their order.
pub(super) async fn next(
    kind: &Kind,
    progress: &mut EnteredProgress,
    upstream: &mut Upstream<'_>,
    context: &Context<'_>,
) -> Result<Option<Batch>> {
    let (wanted, traversals) = (upstream.demand.clone(), traversals(kind));
    let is_whole = wanted.is_all() || traversals.iter().any(nested::has_effects);
    loop {
        if let Some(entered) = &mut progress.entered {
            let results = entered.next(kind, traversals, &wanted, context).await?;
            match results {
                Some(results) if results.is_empty() => continue,
                Some(results) => return Ok(Some(results)),
                None => progress.entered = None,
            }
        }
        progress.count = if is_whole { usize::MAX } else { progress.count.saturating_mul(2).max(1) };
        if progress.waiting.is_empty() {
            upstream.demand = wanted.limited(progress.count);
            let Some(batch) = upstream.next(context).await? else { return Ok(None) };
            progress.waiting = batch;
        }
        let mut part = match is_whole {
            true => mem::take(&mut progress.waiting),
            false => wanted.limited(progress.count).part_of(&mut progress.waiting),
        };
        match part.len() {
            0 => continue,
            1 if !is_whole && part[0].bulk == 1 => {
                progress.entered =
                    part.pop().zip(traversals.first()).map(|(it, first)| Entered::new(it, first));
            }
            _ => return branch::apply(kind, part, context).await.map(Some),
        }
    }
}

fn traversals(kind: &Kind) -> &[Traversal] {
    match kind {
        Kind::FlatMap(traversal) | Kind::Local(traversal) | Kind::Optional(traversal) => {
            slice::from_ref(traversal)
        }
        Kind::Coalesce(traversals) => traversals,
        _ => &[],
    }
}

impl Entered {
    fn new(traverser: Traverser, traversal: &Traversal) -> Self {
        let entering = Traverser { origin: 0, bulk: 1, ..traverser.clone() };
        let chain = Chain::nested(traversal, vec![entering], [0].into());
        Self { traverser, chain, branch: 0, has_result: false }
    }

    /// The next results; `None` at the end.
    async fn next(
        &mut self,
        kind: &Kind,
        traversals: &[Traversal],
        wanted: &Demand,
        context: &Context<'_>,
    ) -> Result<Option<Batch>> {
        if let Some(results) = self.chain.next(Demand::of(wanted.least(1)), context).await? {
            self.has_result |= !results.is_empty();
            return Ok(Some(branch::left(kind, &self.traverser, results)));
        }
        if self.has_result {
            return Ok(None);
        }
        self.branch += 1;
        match (kind, traversals.get(self.branch)) {
            (Kind::Coalesce(_), Some(traversal)) => {
                let branch = self.branch;
                *self = Self { branch, ..Self::new(self.traverser.clone(), traversal) };
                Ok(Some(Batch::new()))
            }
            (Kind::Optional(_), _) => {
                self.has_result = true;
                Ok(Some(vec![self.traverser.clone()]))
            }
            _ => Ok(None),
        }
    }
}
