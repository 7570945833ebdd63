//! Why a shape is not planned, and why an execution does not begin, does not go on, or waits for a person.

use kith_routing::placement::PlacementError;
use kith_routing::{GroupRole, TableError};
use kith_types::{Epoch, GroupId, NodeId, PartitionId};
use thiserror::Error;

/// A shape cannot be planned; nothing has changed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PlanRefusal {
    /// A node is not in the table.
    #[error("node {node} is not in the routing table")]
    UnknownNode { node: NodeId },
    /// A group is not in the table.
    #[error("group {group} is not in the routing table")]
    UnknownGroup { group: GroupId },
    /// A node to add is in the table, in use.
    #[error("node {node} is in the routing table already")]
    NodeExists { node: NodeId },
    /// A group to add is in the table.
    #[error("group {group} is in the routing table already")]
    GroupExists { group: GroupId },
    /// A node is listed with another group than the change is about.
    #[error("node {node} belongs to group {got}, not {expected}")]
    OtherGroup {
        node: NodeId,
        /// Its entry's group.
        got: GroupId,
        /// The group that the change is about.
        expected: GroupId,
    },
    /// A group has another role than the change starts from.
    #[error("group {group} is {}", describe(*.role))]
    GroupRole {
        group: GroupId,
        /// What it is now.
        role: GroupRole,
    },
    /// No group would be left to serve.
    #[error("group {group} is the last one that serves: restore or add another first")]
    LastServingGroup { group: GroupId },
    /// A store would have no group left that serves it.
    #[error(
        "store {store} is served by group {group} only: raise its replication or restore another group first"
    )]
    StoreOnlyThere {
        store: String,
        /// The group to be taken out.
        group: GroupId,
    },
    /// A store's answers must agree, and too few groups would be left to give them.
    #[error(
        "{required} replicas of store {store} must agree, and without group {group} {left} would answer: restore another group first"
    )]
    AnswersMissing {
        store: String,
        /// The group to be taken out.
        group: GroupId,
        /// Groups that would be left.
        left: usize,
        /// Answers that must agree.
        required: usize,
    },
    /// Nodes that lack a version would have to answer for it.
    #[error(
        "without group {group} nodes that do not have store {store} yet would have to answer for partition {partition}: they fetch it by themselves, try again"
    )]
    StoreBehind {
        store: String,
        /// The group to be taken out.
        group: GroupId,
        /// The first such partition.
        partition: PartitionId,
    },
    /// A ring has ranks, which come from its nodes; they are not added or taken out.
    #[error("a ring has no groups to add or take out: add or drain nodes")]
    RingHasNoGroups,
    /// Nobody alive has what is to be copied.
    #[error("no live node can give {}partition {partition}", .store.as_ref().map(|s| format!("store {s}, ")).unwrap_or_default())]
    NoDonor {
        /// The store, if it is about one.
        store: Option<String>,
        partition: PartitionId,
    },
    /// The sizes of a store are not one per partition.
    #[error("store {store} gives sizes of {got} partitions, the cluster has {expected}")]
    Sizes {
        store: String,
        /// As given.
        got: usize,
        /// Partitions of the cluster.
        expected: usize,
    },
    /// Batches of nothing would never end.
    #[error("a batch holds at least one partition")]
    EmptyBatch,
    /// The nodes that would be left cannot hold the partitions.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The table that would result contradicts itself.
    #[error(transparent)]
    Table(#[from] TableError),
}

fn describe(role: GroupRole) -> &'static str {
    match role {
        GroupRole::Serving => "serving already",
        GroupRole::Maintenance => "taken out already",
        GroupRole::Joining => "still being filled",
    }
}

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
