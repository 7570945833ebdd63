//! Why an execution does not begin, does not go on, or waits for a person.

use kith_types::{Epoch, NodeId, PartitionId};
use thiserror::Error;

/// Why the execution waits for a person.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum StopReason {
    /// A node that is to get a partition is down.
    #[error("stealer {node} is down: bring it back and go on, or abort")]
    StealerDown { node: NodeId },
    /// A node that is to get a partition cannot take it.
    #[error("stealer {node} cannot take partition {partition}: mend it and go on, or abort")]
    StealerFailed {
        node: NodeId,
        /// What it was to get.
        partition: PartitionId,
    },
    /// Nobody alive can give a partition.
    #[error(
        "no live node can give partition {partition} to {stealer}: bring a replica back and go on, or abort"
    )]
    NoDonor {
        /// What is missing.
        partition: PartitionId,
        /// Who waits for it.
        stealer: NodeId,
    },
    /// One copy failed too often.
    #[error(
        "partition {partition} could not be copied from {donor} to {stealer}: go on to try again, or abort"
    )]
    CopyFailed {
        partition: PartitionId,
        /// Who gives.
        donor: NodeId,
        /// Who gets.
        stealer: NodeId,
    },
    /// Somebody else changed the table.
    #[error("the routing table was changed by another, to epoch {in_force}: abort, then plan anew")]
    TableChanged {
        /// The epoch in force.
        in_force: Epoch,
    },
}

/// A plan may not be begun.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum BeginRefusal {
    /// A push runs, and what it fetches is where the table says now.
    #[error("a push of store {store} is running: wait for it or abort it, then rebalance")]
    PushRunning { store: String },
    /// Files that the rebalance before gave up still wait for their grace; were they wanted
    /// again, two hands would be on them.
    #[error("the last rebalance has {left} given-up partitions to reclaim: wait for their grace to end")]
    NotSettled { left: usize },
    /// The plan was made for another table.
    #[error("the plan starts from epoch {planned}, but epoch {in_force} is in force: plan anew")]
    TableChanged {
        /// The plan's.
        planned: Epoch,
        /// The table's.
        in_force: Epoch,
    },
    /// The plan contradicts itself, as a damaged one may.
    #[error("the plan does not lead to a valid table: {reason}")]
    Invalid {
        /// What contradicts what.
        reason: String,
    },
}

/// A stored execution does not fit the table in force.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeRefusal {
    /// The table is neither the one before nor the one after the current step.
    #[error("the rebalance stands at epoch {stored}, but epoch {in_force} is in force, by another's change")]
    TableChanged {
        /// As stored.
        stored: Epoch,
        /// The table's.
        in_force: Epoch,
    },
    /// What was stored contradicts itself.
    #[error("the stored rebalance makes no sense: {reason}")]
    Invalid {
        /// What contradicts what.
        reason: String,
    },
}
