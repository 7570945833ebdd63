//! Changes the shape of a live cluster: which partitions move, in which order, and where they are at each moment
//! (Voldemort §5.7; `docs/design/0006-rebalance.md`). `kith_router::admin` drives it. Nothing here copies a byte or reads a
//! clock.
//!
//! ```text
//! table in force + TargetShape ──► plan() ──► RebalancePlan ──► RebalanceState ◄──► events, actions of the shell
//! ```
//!
//! [`plan`] is a pure function. [`RebalanceState`] executes one plan through copies, changes of the table, failures,
//! restarts and aborts.
//!
//! - `shape`, `planning`, `batches`, `donors`: from the shape to moves in batches. `plan`, `parts`: the result. `outlive` and
//!   `reasons`: what is refused, and why.
//! - `print`, `totals`: the plan and its cost for people.
//! - `event`, `execute`, `state`, `copies`, `commit`: the events and actions, and what follows from them.
//! - `give_back`, `undo`: when former owners free their copies, and how a rebalance is aborted.
//! - `stored`: the part that outlives the driver.
//!
//! A node owns a partition in the table only after it has copied it, and a former owner keeps its copy until no process
//! uses an old table and the grace period is over.
//!
//! ```
//! use kith_routing::rebalance::{PlanOptions, TargetShape, plan};
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
//!
//! To add a change of shape, begin with a variant of [`TargetShape`].

mod batches;
mod commit;
mod copies;
mod donors;
mod event;
mod execute;
mod give_back;
mod holdings;
mod outlive;
mod parts;
mod plan;
mod planning;
mod print;
mod reasons;
mod shape;
mod state;
mod stored;
mod totals;
mod undo;

pub use event::{CopyFault, RebalanceAction, RebalanceEvent};
pub use parts::{AddedGroup, Batch, Move, MovedStore, NodeTotals, PairTotals, PlanStep, Roster, StoreSizes};
pub use plan::{PlanOptions, RebalancePlan};
pub use planning::plan;
pub use reasons::{BeginRefusal, PlanRefusal, ResumeRefusal, StopReason};
pub use shape::TargetShape;
pub use state::{Conditions, Progress, RebalanceState};
pub use stored::{Phase, RebalanceEnding, RebalanceParts, Reclaim, Transfer, TransferState};
