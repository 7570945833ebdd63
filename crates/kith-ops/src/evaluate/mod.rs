//! What a node does with a plan: one pass over its share of the keys or partitions.
//!
//! Lists stream from the source into the kernel that consumes them; a list is
//! copied only where lists are the answer. Sets over postings are evaluated
//! partition by partition, so that an existence stops at the first partition
//! that proves it (Moolle, Algorithm 3).

mod aggregate;
mod compute;
mod lists;
mod lookup;
mod partitions;
mod set;
mod values;
mod watch;

pub use aggregate::{aggregate, aggregate_fetched};
pub use compute::{best, compute, compute_fetched};
pub use lookup::{LookupKeys, Room, lookup};
pub use values::evaluate_values;

use crate::sets::Scratch;
use crate::{EvaluateError, NeighbourSource, Operator, Value, ValueKind};
use kith_types::PartitionId;
use watch::Watch;

/// What of a fan-out one node works on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share<'a> {
    /// The keys that the request carries, distinct, in its order: [`Operator::Keys`].
    pub keys: &'a [u64],
    /// The partitions that [`Operator::Postings`] and [`Operator::Members`] read.
    pub partitions: &'a [PartitionId],
}

/// Evaluates `plan` over a node's share. `cancelled` is asked every few ten thousand ids.
///
/// # Errors
/// [`EvaluateError::Mistyped`], [`EvaluateError::TooDeep`] and [`EvaluateError::NotAscending`] before
/// anything is read; [`EvaluateError::Cancelled`]; what the source fails with.
pub fn evaluate(
    plan: &Operator,
    share: &Share<'_>,
    source: &dyn NeighbourSource,
    scratch: &mut Scratch,
    cancelled: &dyn Fn() -> bool,
) -> Result<Value, EvaluateError> {
    let kind = plan.check()?;
    // An earlier evaluation may have failed half-way.
    scratch.union.clear();
    scratch.tally.clear();
    let mut evaluator = Evaluator { share: *share, source, scratch, watch: Watch::new(cancelled) };
    evaluator.watch.look()?;
    match kind {
        ValueKind::Lists => evaluator.lists(plan).map(Value::Lists),
        ValueKind::Set => evaluator.set(plan).map(Value::Set),
        ValueKind::Neighbourhood => {
            evaluator.neighbourhood(plan).map(|(ids, union)| Value::Neighbourhood { ids, union })
        }
        ValueKind::Tallies => evaluator.tallies(plan).map(|(ids, counts)| Value::Tallies { ids, counts }),
        ValueKind::Count => evaluator.count(plan).map(Value::Count),
        ValueKind::Exists => evaluator.exists(plan).map(Value::Exists),
        ValueKind::Records | ValueKind::Groups => {
            Err(EvaluateError::Mistyped { operator: plan.name(), got: "a graph" })
        }
    }
}

/// One evaluation under way. The plan was checked; what does not fit is still refused, not assumed.
struct Evaluator<'a> {
    share: Share<'a>,
    source: &'a dyn NeighbourSource,
    scratch: &'a mut Scratch,
    watch: Watch<'a>,
}

/// The refusal of a plan that the check should have refused.
fn mistyped(operator: &Operator) -> EvaluateError {
    EvaluateError::Mistyped { operator: operator.name(), got: "another type" }
}
