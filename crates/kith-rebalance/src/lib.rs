//! Changes the shape of a live cluster: which partitions move, in which order, and what is known at each moment about where
//! they are (Voldemort §5.7).
//!
//! [`plan`] is a pure function of the table in force and the [`TargetShape`]. Its result, a [`RebalancePlan`], can print
//! itself. [`RebalanceState`] executes one plan through copies, epoch changes, failures, restarts and aborts; a thin shell
//! carries out its actions. Neither of them copies a byte or reads a clock.
//!
//! See `docs/design/0006-rebalance.md`.
//!
//! ```
//! use kith_rebalance::{PlanOptions, TargetShape, plan};
//! use kith_routing::{NodeEntry, placement};
//! use kith_types::{GroupId, NodeId, PartitionCount};
//!
//! let partitions = PartitionCount::new(24).expect("24 is a valid count");
//! let table = placement::uniform_table(2, 3, partitions, 1).expect("six nodes can hold 24 partitions");
//! let node = NodeEntry { id: NodeId(6), group: GroupId(0), ..NodeEntry::default() };
//! let plan = plan(&table, &TargetShape::AddNodes(vec![node]), &[], &PlanOptions::default());
//! let plan = plan.expect("the shape fits the table");
//! assert_eq!(plan.moves().count(), 6, "the fourth node of a group takes a quarter of its partitions");
//! ```

mod batches;
mod commit;
mod copies;
mod donors;
mod execute;
mod give_back;
mod holdings;
mod outlive;
mod parts;
mod plan;
mod print;
mod reasons;
mod shape;
mod state;
mod stored;
mod totals;
mod undo;

pub use execute::{CopyFault, RebalanceAction, RebalanceEvent};
pub use parts::{AddedGroup, Batch, Move, MovedStore, PlanStep, Roster, StoreSizes};
pub use plan::{PlanOptions, RebalancePlan, plan};
pub use reasons::{BeginRefusal, PlanRefusal, ResumeRefusal, StopReason};
pub use shape::TargetShape;
pub use state::{Conditions, Progress, RebalanceState};
pub use stored::{Ending, Phase, RebalanceParts, Reclaim, Transfer, TransferState};
pub use totals::{NodeTotals, PairTotals};
