//! Changing the shape of a live cluster: which partitions move, in which order, and
//! what is known at each moment about where they are (Voldemort §5.7).
//!
//! [`plan`] is a pure function of the table in force and the [`TargetShape`]; its result,
//! a [`RebalancePlan`], prints itself. [`RebalanceState`] carries one plan through
//! copies, epoch changes, failures, restarts and abort; a thin shell does what it says.
//! Neither copies a byte, and neither reads a clock.
//!
//! See `docs/design/0006-rebalance.md`.

mod batches;
mod donors;
mod execute;
mod give_back;
mod holdings;
mod outlive;
mod plan;
mod print;
mod reasons;
mod shape;
mod state;
mod totals;
mod undo;

pub use execute::{CopyFault, RebalanceAction, RebalanceEvent};
pub use plan::{
    AddedGroup, Batch, Move, MovedStore, PlanOptions, PlanStep, RebalancePlan, Roster, StoreSizes, plan,
};
pub use reasons::{BeginRefusal, ResumeRefusal, StopReason};
pub use shape::{PlanRefusal, TargetShape};
pub use state::{
    Conditions, Ending, Phase, Progress, RebalanceParts, RebalanceState, Reclaim, Transfer, TransferState,
};
pub use totals::{NodeTotals, PairTotals};
