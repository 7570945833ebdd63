//! Evaluates plans over a graph.
//!
//! Each step pulls batches of traversers from the step before it (`chain/`). A nested traversal is evaluated once for a
//! whole batch (`nested.rs`).

mod barrier;
mod branch;
mod bulk;
mod by;
mod chain;
mod change;
mod context;
mod cut;
mod elements;
mod filter;
mod function;
mod group;
mod hop;
mod known;
mod local;
mod merge;
mod meter;
mod nested;
mod new;
mod order;
mod path;
mod profile;
mod property;
mod reach;
mod reduce;
mod repeat;
mod scan;
mod scope;
mod search;
mod select;
mod shortest;
mod side_effects;
mod singly;
mod size;
mod step;
mod tally;
mod traverser;
mod verdicts;
mod weight;
mod wheres;
mod work;

pub use meter::{Meter, SharedMemory};
pub(crate) use nested::reads_own_side_effects;
pub use tally::Clock;
pub use weight::{of_edges, of_json, of_properties, of_vertices};
pub use work::Limits;

use crate::{
    error::Result,
    graph::Graph,
    plan::TraversalPlan,
    value::{TraversalMetrics, Value, Vertex},
};
use chain::{Chain, Demand, Link, Upstream};
use context::Context;
use std::sync::Arc;
use tally::Profile;
use traverser::Batch;

/// The next batch of a step. Chains call it, and it evaluates steps, which may have chains of their own.
async fn advance(link: &mut Link, upstream: Upstream<'_>, context: &Context<'_>) -> Result<Option<Batch>> {
    step::next(link, upstream, context).await
}

/// A traversal under way.
pub struct Evaluation<'a> {
    context: Context<'a>,
    chain: Chain,
    with_properties: bool,
    returned: u64,
    /// How much the next batch is asked for.
    demand: Demand,
}

/// The number of traversers that the first batch is asked for if the caller takes results in batches, by how much it grows from
/// batch to batch, and the most. A caller who leaves after the first batch has caused little more work than that.
const BATCH_FIRST: usize = 1 << 10;
const BATCH_GROWTH: usize = 4;
const BATCH_MAX: usize = 64 << 10;

impl<'a> Evaluation<'a> {
    /// Begins the evaluation of a plan.
    pub fn new(plan: &'a TraversalPlan, graph: &'a dyn Graph, limits: Limits) -> Self {
        let with_paths = plan.with_paths();
        let side_effects = nested::side_effects(&plan.traversal);
        let mut context = Context::new(graph, &plan.source, limits, with_paths, side_effects);
        context.is_read_only = !plan.changes_graph();
        context.profile = plan.is_profiled().then(|| Profile::new(&|| 0));
        let chain = Chain::of(plan);
        Self { context, chain, with_properties: false, returned: 0, demand: Demand::ALL }
    }

    /// Sets what counts the memory, in the place of a meter of its own. The graph may share it.
    pub fn with_meter(mut self, meter: Arc<Meter>) -> Self {
        self.context.work.meter = meter;
        self
    }

    /// Gives the clock by which `profile` tells how long steps take, and `timeLimit` when its time is over. Without one, all
    /// times are 0.
    pub fn with_clock(mut self, clock: Clock<'a>) -> Self {
        self.context.clock = clock;
        self.context.profile = self.context.profile.take().map(|_| Profile::new(clock));
        self
    }

    /// Counts and times the steps, as `profile` does, also if the traversal has no such step.
    pub fn with_metrics(mut self) -> Self {
        let clock = self.context.clock;
        self.context.profile.get_or_insert_with(|| Profile::new(clock));
        self
    }

    /// Sets that the caller takes results batch by batch, and may leave before the end.
    pub fn in_batches(mut self) -> Self {
        self.demand = Demand::of(BATCH_FIRST);
        self
    }

    /// Sets whether results that are vertices come with their properties.
    pub fn with_properties(mut self, with_properties: bool) -> Self {
        self.with_properties = with_properties;
        self
    }

    /// Sets whether `addE` replaces an edge that exists already. Without this, it fails.
    pub fn replacing_edges(mut self, replaces_edges: bool) -> Self {
        self.context.replaces_edges = replaces_edges;
        self
    }

    /// The next results, each with how often it occurs. `None` at the end. A batch may be empty.
    ///
    /// # Errors
    /// The traversal cannot be evaluated, or exceeds a limit. It must not be asked again afterwards.
    pub async fn next(&mut self) -> Result<Option<Vec<(Value, i64)>>> {
        let demand = self.demand.clone();
        if !demand.is_all() {
            self.demand = Demand::of(demand.least(0).saturating_mul(BATCH_GROWTH).min(BATCH_MAX));
        }
        let Some(batch) = self.chain.next(demand, &self.context).await? else {
            self.context.graph.settle().await?;
            return Ok(None);
        };
        let lent = self.context.work.meter.lent();
        // Before anything walks through them: what they share is written out in their coded form.
        for traverser in &batch {
            let bytes = size::of_result(&traverser.value, &self.context)?;
            self.context.work.count_bytes(bytes)?;
            self.context.work.pause().await;
            self.returned += bytes;
        }
        let mut results =
            batch.into_iter().map(|traverser| (traverser.value, traverser.bulk)).collect::<Vec<_>>();
        self.context.refresh(&mut results).await?;
        if self.with_properties {
            self.context.materialize(&mut results).await?;
        }
        self.context.complete_all(&mut results).await?;
        self.context.work.meter.take_back(lent);
        Ok(Some(results))
    }

    /// About how many bytes all results until now take.
    pub fn returned_bytes(&self) -> u64 {
        self.returned
    }

    /// All results that are left.
    ///
    /// # Errors
    /// As [`Evaluation::next`].
    pub async fn all(self) -> Result<Vec<(Value, i64)>> {
        Ok(self.all_with_metrics().await?.0)
    }

    /// All results that are left, and what was counted of the steps, if that was wanted.
    ///
    /// # Errors
    /// As [`Evaluation::next`].
    pub async fn all_with_metrics(mut self) -> Result<(Vec<(Value, i64)>, Option<TraversalMetrics>)> {
        self.demand = Demand::ALL;
        let mut all = Vec::new();
        while let Some(batch) = self.next().await? {
            all.extend(batch);
        }
        let metrics = self.metrics();
        Ok((all, metrics))
    }

    /// The counts of the steps so far, if they were wanted.
    pub fn metrics(&self) -> Option<TraversalMetrics> {
        profile::metrics(&self.chain.steps(), &self.context)
    }
}

/// A reference to a vertex, without its properties.
fn reference(vertex: &Arc<Vertex>) -> Arc<Vertex> {
    match vertex.properties {
        None => Arc::clone(vertex),
        Some(_) => Arc::new(Vertex { properties: None, ..(**vertex).clone() }),
    }
}
