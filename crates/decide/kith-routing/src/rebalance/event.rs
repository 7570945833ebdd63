//! The events of an execution, and the actions that it asks for.

use crate::rebalance::{RebalanceEnding, StopReason};
use crate::{RoutingTable, TableParts};
use kith_types::{Epoch, NodeId, PartitionId};

/// The party at fault for a failed copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFault {
    /// The connection broke or timed out, so another attempt may succeed.
    Transient,
    /// The donor lacks the data, or its data is damaged. Another replica is asked.
    Donor,
    /// The stealer cannot store the data, for example because its disk is full.
    Stealer,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebalanceEvent {
    /// A stealer has a copy, which is verified, synced and opened. The number is that of [`RebalanceAction::Copy`].
    Copied(usize),
    /// A copy failed.
    CopyFailed(usize, CopyFault),
    /// A node is down. Copies to it that were running are lost, finished ones are not.
    NodeDown(NodeId),
    /// A node is up again.
    NodeUp(NodeId),
    /// The table of [`RebalanceAction::Commit`] is in force.
    Committed,
    /// The table of the commit is not in force; this one is.
    CommitRefused(Box<RoutingTable>),
    /// Every process that routes uses a table of at least this epoch.
    InUse(Epoch),
    /// A node has freed exactly what [`RebalanceAction::Reclaim`] named.
    Reclaimed(NodeId, PartitionId, Vec<u32>),
    /// A node will never confirm, because it was wiped or has left for good.
    Emptied(NodeId),
    /// A user says that the reason for the stop is gone.
    Continue,
    /// A user wants to undo the rebalance, except for its finished batches.
    Abort,
}

/// An action. Each action is returned once. After a restart, actions that are not known to be done are returned again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RebalanceAction {
    /// Tell the stealer to copy all kept versions of the stores from the donor. Idempotent.
    Copy(usize),
    /// Stop copying. Data that has arrived may stay, because it is verified before it is used.
    Cancel(usize),
    /// Put this table in force, on condition that the previous one is in force and that no other driver has taken over. If
    /// the outcome is unknown, resume from the stored state.
    Commit(Box<TableParts>),
    /// Tell the node to free a partition of these stores. No table in use names it as an owner.
    Reclaim(NodeId, PartitionId, Vec<u32>),
    /// Report the reason to a user.
    Stopped(StopReason),
    /// The rebalance is over.
    Ended(RebalanceEnding),
}
