//! Evaluates plans on a node: one pass over its share of the keys or partitions.
//!
//! Lists stream from the source into the kernel that consumes them. A list is copied only if lists are the answer. Sets
//! over postings are evaluated partition by partition, so that an existence query stops at the first partition that proves
//! it (Moolle, Algorithm 3).

mod edges;
mod held;
mod lists;
mod partitions;
mod set;
mod share;
mod slices;
mod values;

pub use share::Share;
pub use slices::SliceSizes;
pub use values::evaluate_values;

use crate::sets::Scratch;
use crate::values::Watch;
use crate::{EvaluateError, GRAPH_BYTES_MAX, Operator, Value, ValueKind};
use held::EvaluationMemory;
use kith_schema::NeighbourSource;
use partitions::PartitionEvaluator;
use std::ops::ControlFlow;

/// Evaluates `plan` over a node's share. `cancelled` is called every few ten thousand ids.
///
/// # Errors
/// Those of [`Operator::check`] and [`Share::check`], before anything is read; [`EvaluateError::TooLarge`] above
/// [`GRAPH_BYTES_MAX`]; [`EvaluateError::LoadedGraph`]; [`EvaluateError::Cancelled`]; the errors of the source.
pub fn evaluate(
    plan: &Operator,
    share: &Share<'_>,
    source: &dyn NeighbourSource,
    scratch: &mut Scratch,
    cancelled: &dyn Fn() -> bool,
) -> Result<Value, EvaluateError> {
    let (watch, held) = (Watch::new(cancelled), EvaluationMemory::new(GRAPH_BYTES_MAX));
    Evaluator { share: *share, source, scratch, watch, held }.run(plan)
}

impl<'a> Evaluator<'a> {
    fn run(mut self, plan: &Operator) -> Result<Value, EvaluateError> {
        let kind = plan.check()?;
        if plan.needs_live_graph() {
            return Err(EvaluateError::LoadedGraph { operator: plan.name() });
        }
        self.share.check(self.source.partition_count())?;
        self.watch.look()?;
        let value = self.value(plan, kind);
        // This also cleans up after a failure.
        self.scratch.settle();
        value
    }

    fn value(&mut self, plan: &Operator, kind: ValueKind) -> Result<Value, EvaluateError> {
        match kind {
            ValueKind::Lists => self.lists(plan).map(Value::Lists),
            ValueKind::Set => self.set(plan).map(Value::Set),
            ValueKind::Neighbourhood => {
                self.neighbourhood(plan).map(|(ids, union)| Value::Neighbourhood { ids, union })
            }
            ValueKind::Tallies => self.tallies(plan).map(|(ids, counts)| Value::Tallies { ids, counts }),
            ValueKind::Edges => match plan {
                Operator::Edges(plan) => {
                    edges::read(plan, self.source, self.share.keys, &mut self.watch, self.held)
                        .map(Value::Edges)
                }
                other => Err(mistyped(other)),
            },
            ValueKind::Count => self.count(plan).map(Value::Count),
            ValueKind::Exists => self.exists(plan).map(Value::Exists),
            ValueKind::Objects | ValueKind::Associations => {
                Err(EvaluateError::LoadedGraph { operator: plan.name() })
            }
            ValueKind::Records | ValueKind::Groups => {
                Err(EvaluateError::Mistyped { operator: plan.name(), got: "a graph" })
            }
        }
    }

    /// Runs `work` while `ids` are held.
    fn beside<T>(
        &mut self,
        ids: &[u64],
        work: impl FnOnce(&mut Self) -> Result<T, EvaluateError>,
    ) -> Result<T, EvaluateError> {
        let before = self.held;
        self.held = before.beside(ids)?;
        let done = work(self);
        self.held = before;
        done
    }

    /// Returns the evaluation of plans that read only postings and member tables.
    fn by_partition(&mut self) -> PartitionEvaluator<'_, 'a> {
        PartitionEvaluator {
            partitions: self.share.partitions,
            source: self.source,
            scratch: self.scratch,
            watch: &mut self.watch,
            held: self.held,
        }
    }
}

/// One evaluation under way. The plan was checked before, but a mistyped operator is still refused and not assumed away.
struct Evaluator<'a> {
    share: Share<'a>,
    source: &'a dyn NeighbourSource,
    scratch: &'a mut Scratch,
    watch: Watch<'a>,
    held: EvaluationMemory,
}

/// Continues reading unless `result` is an error. An error is stored in `failed` and ends the reading.
fn go_on(result: Result<(), EvaluateError>, failed: &mut Option<EvaluateError>) -> ControlFlow<()> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            *failed = Some(error);
            ControlFlow::Break(())
        }
    }
}

/// The error for a plan that the check should have refused.
fn mistyped(operator: &Operator) -> EvaluateError {
    EvaluateError::Mistyped { operator: operator.name(), got: "another type" }
}

#[cfg(test)]
mod tests;
