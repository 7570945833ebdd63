//! The steps of a traversal under way. Each pulls batches from the one before it.

mod demand;
mod state;

pub(super) use demand::Demand;
pub(super) use state::{Passes, RangeProgress, RunningPass, ScanProgress, StepState, is_writing_beginning};

use super::{
    context::Context,
    traverser::{Batch, Traverser},
};
use crate::{
    error::Result,
    plan::{Step, Traversal, TraversalPlan},
    value::Value,
};
use futures::future::BoxFuture;
use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{self, Poll},
};

/// The stack grows when fewer bytes than these are left. A step needs about 15,000 of them in a build without optimization.
const STACK_LEFT: usize = 128 << 10;
/// By how many bytes the stack grows.
const STACK_MORE: usize = 2 << 20;

/// A traversal under way: the traversers that enter it, and its steps.
#[derive(Debug)]
pub(super) struct Chain {
    feed: Feed,
    links: Vec<Link>,
}

/// The input of the first step.
#[derive(Debug)]
pub(super) struct Feed {
    batches: VecDeque<Batch>,
    /// The origins of the traversers. Steps that count or collect have a result for each of them.
    pub origins: Arc<[u32]>,
    /// Whether the traversal stands by itself, so that its first step begins it.
    pub is_whole: bool,
}

/// A step and its state.
#[derive(Debug)]
pub(super) struct Link {
    pub step: Arc<Step>,
    pub state: StepState,
    /// Whether no later step reads a label, so that traversers with different ones can become one.
    pub forgets_labels: bool,
    /// Results beyond what was wanted when they were made.
    left: Batch,
}

/// The steps before a step, and how many of their results are wanted.
pub(super) struct Upstream<'a> {
    feed: &'a mut Feed,
    links: &'a mut [Link],
    pub demand: Demand,
}

/// The next batch of a step. It is polled inside the polls of all steps after it, so a long traversal needs a deep stack. The
/// stack grows when little of it is left.
pub(super) struct BatchFuture<'a>(BoxFuture<'a, Result<Option<Batch>>>);

impl Future for BatchFuture<'_> {
    type Output = Result<Option<Batch>>;

    fn poll(mut self: Pin<&mut Self>, polling: &mut task::Context<'_>) -> Poll<Self::Output> {
        stacker::maybe_grow(STACK_LEFT, STACK_MORE, || self.0.as_mut().poll(polling))
    }
}

impl Feed {
    fn next(&mut self, demand: &Demand) -> Option<Batch> {
        let first = self.batches.front_mut()?;
        let part = demand.part_of(first);
        if first.is_empty() {
            self.batches.pop_front();
        }
        Some(part)
    }
}

impl Chain {
    /// All of a plan.
    pub fn of(plan: &TraversalPlan) -> Self {
        let mut chain = Self::whole(&plan.traversal);
        if let Some(link) = plan.last_read.and_then(|after| chain.links.get_mut(after - 1)) {
            link.forgets_labels = true;
        }
        chain
    }

    /// A traversal that stands by itself.
    pub fn whole(traversal: &Traversal) -> Self {
        let feed = Feed { batches: VecDeque::new(), origins: [0].into(), is_whole: true };
        Self { feed, links: links(traversal) }
    }

    /// A branch at the beginning of a traversal, such as those of `g.union()`. If its first step cannot begin a traversal, one
    /// traverser enters it.
    pub fn beginning(traversal: &Traversal, context: &Context<'_>) -> Self {
        match traversal.first() {
            Some(step) if state::can_begin(&step.kind) => Self::whole(traversal),
            _ => Self::nested(traversal, vec![context.traverser(Value::Null)], [0].into()),
        }
    }

    /// A nested traversal, which these traversers enter.
    pub fn nested(traversal: &Traversal, batch: Batch, origins: Arc<[u32]>) -> Self {
        let feed = Feed { batches: [batch].into(), origins, is_whole: false };
        Self { feed, links: links(traversal) }
    }

    /// Starts the steps again with new traversers. What a `limit` did not want of the earlier ones is gone. `dedup` keeps its
    /// memory, and `timeLimit` its time.
    pub fn enter(&mut self, batch: Batch) {
        self.feed.batches = [batch].into();
        for link in &mut self.links {
            link.left.clear();
            if !matches!(link.state, StepState::Seen(_) | StepState::Repeat(_) | StepState::Limited { .. }) {
                link.state = state::begin(&link.step.kind);
            }
        }
    }

    /// The next batch of results, of which no more are made than are wanted, as far as that is possible. `None` at the end.
    pub fn next<'a>(&'a mut self, demand: Demand, context: &'a Context<'_>) -> BatchFuture<'a> {
        Upstream { feed: &mut self.feed, links: &mut self.links, demand }.pull(context)
    }

    /// The steps themselves.
    pub fn steps(&self) -> Vec<Arc<Step>> {
        self.links.iter().map(|link| Arc::clone(&link.step)).collect()
    }

    /// All results that are left.
    pub async fn all(&mut self, context: &Context<'_>) -> Result<Batch> {
        Upstream { feed: &mut self.feed, links: &mut self.links, demand: Demand::ALL }.all(context).await
    }
}

impl<'a> Upstream<'a> {
    /// The next batch of the last of these steps, with as many traversers as are wanted at most. `None` at the end.
    pub fn pull(self, context: &'a Context<'_>) -> BatchFuture<'a> {
        BatchFuture(Box::pin(async move {
            let demand = self.demand;
            let Some((link, links)) = self.links.split_last_mut() else {
                return Ok(self.feed.next(&demand));
            };
            if !link.left.is_empty() {
                return Ok(Some(demand.part_of(&mut link.left)));
            }
            let upstream = Upstream { feed: self.feed, links, demand: demand.clone() };
            let running = context.profile.as_ref().map(|it| it.begin(&link.step, context.graph.take_notes()));
            let lent = context.work.meter.lent();
            let mut batch = super::advance(link, upstream, context).await?;
            context.work.meter.take_back(lent);
            context.work.meter.check()?;
            if let (Some(profile), Some(running)) = (&context.profile, &running) {
                profile.end(running, batch.as_ref(), context.graph.take_notes());
            }
            if let Some(batch) = &mut batch {
                context.work.count_traversers(batch.len())?;
                if link.forgets_labels {
                    batch.iter_mut().for_each(Traverser::forget_labels);
                } else if !link.step.labels.is_empty() {
                    batch.iter_mut().for_each(|traverser| traverser.label(&link.step.labels));
                }
            }
            context.work.give_way(batch.iter().flatten().map(|traverser| &traverser.value)).await;
            Ok(batch.map(|batch| {
                link.left = batch;
                demand.part_of(&mut link.left)
            }))
        }))
    }

    /// The next batch of the steps before, which stay.
    pub async fn next(&mut self, context: &Context<'_>) -> Result<Option<Batch>> {
        let demand = self.demand.clone();
        Upstream { feed: &mut *self.feed, links: &mut *self.links, demand }.pull(context).await
    }

    /// All traversers that the steps before still return.
    pub async fn all(&mut self, context: &Context<'_>) -> Result<Batch> {
        self.demand = Demand::ALL;
        let mut all = Batch::new();
        while let Some(batch) = self.next(context).await? {
            all.extend(batch);
        }
        Ok(all)
    }

    /// The steps themselves.
    pub fn steps(&self) -> Vec<Arc<Step>> {
        self.links.iter().map(|link| Arc::clone(&link.step)).collect()
    }

    /// Whether the step after these begins a traversal that stands by itself.
    pub fn is_beginning(&self) -> bool {
        self.links.is_empty() && self.feed.is_whole
    }

    /// Whether the steps belong to a nested traversal.
    pub fn is_nested(&self) -> bool {
        !self.feed.is_whole
    }

    pub fn origins(&self) -> Arc<[u32]> {
        Arc::clone(&self.feed.origins)
    }
}

fn links(traversal: &Traversal) -> Vec<Link> {
    let link = |step: &Arc<Step>| {
        let (state, left) = (state::begin(&step.kind), Batch::new());
        Link { step: Arc::clone(step), state, forgets_labels: false, left }
    };
    traversal.iter().map(link).collect()
}
