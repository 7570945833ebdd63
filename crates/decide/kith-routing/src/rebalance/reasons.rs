//! The reasons why a shape is not planned, and why an execution does not begin, cannot be resumed, or is stopped.

use crate::placement::PlacementError;
use crate::{GroupRole, TableError};
use kith_types::{Epoch, GroupId, NodeId, PartitionId};
use thiserror::Error;

/// The reason why a shape cannot be planned. Nothing has changed.
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
    /// A node to add is already in use in the table.
    #[error("node {node} is in the routing table already")]
    NodeExists { node: NodeId },
    /// A group to add is already in the table.
    #[error("group {group} is in the routing table already")]
    GroupExists { group: GroupId },
    /// A node is in another group than the change concerns.
    #[error("node {node} belongs to group {got}, not {expected}")]
    OtherGroup {
        node: NodeId,
        /// The group of its entry.
        got: GroupId,
        /// The group that the change concerns.
        expected: GroupId,
    },
    /// The group has a role for which the change is impossible.
    #[error("group {group} is {}", describe(*.role))]
    GroupRole {
        group: GroupId,
        /// The current role.
        role: GroupRole,
    },
    /// No group would remain to serve.
    #[error("group {group} is the last one that serves: restore or add another first")]
    LastServingGroup { group: GroupId },
    /// A group to be removed still serves.
    #[error(
        "group {group} still serves its partitions: take it out with `kith cluster drain-group`, then remove it"
    )]
    GroupServes { group: GroupId },
    /// A store would have no serving group left.
    #[error(
        "store {store} is served by group {group} only: raise its replication or restore another group first"
    )]
    StoreOnlyThere {
        store: String,
        /// The group to be taken out.
        group: GroupId,
    },
    /// The answers of several replicas of a store must agree, and too few groups would remain.
    #[error(
        "{required} replicas of store {store} must agree, and without group {group} {left} would answer: restore another group first"
    )]
    AnswersMissing {
        store: String,
        /// The group to be taken out.
        group: GroupId,
        /// The number of groups that would remain.
        left: usize,
        /// The number of answers that must agree.
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
    /// The groups of a ring are ranks, which follow from its nodes. They cannot be added or taken out.
    #[error("a ring has no groups to add or take out: add or drain nodes")]
    RingHasNoGroups,
    /// No live node has the data to copy.
    #[error("no live node can give {}partition {partition}", .store.as_ref().map(|s| format!("store {s}, ")).unwrap_or_default())]
    NoDonor {
        /// The store, if the refusal concerns one.
        store: Option<String>,
        partition: PartitionId,
    },
    /// The number of sizes of a store is not the number of partitions.
    #[error("store {store} gives sizes of {got} partitions, the cluster has {expected}")]
    Sizes {
        store: String,
        /// The number of sizes given.
        got: usize,
        /// The number of partitions of the cluster.
        expected: usize,
    },
    /// With empty batches, a rebalance would never end.
    #[error("a batch holds at least one partition")]
    EmptyBatch,
    /// The remaining nodes cannot hold the partitions.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// The resulting table is invalid.
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

/// The reason why the execution is stopped until a user decides.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum StopReason {
    /// A node that should receive a partition is down.
    #[error("stealer {node} is down: bring it back and go on, or abort")]
    StealerDown { node: NodeId },
    /// A node that should receive a partition cannot store it.
    #[error("stealer {node} cannot take partition {partition}: mend it and go on, or abort")]
    StealerFailed {
        node: NodeId,
        /// The partition that it should receive.
        partition: PartitionId,
    },
    /// No live node can supply a partition.
    #[error(
        "no live node can give partition {partition} to {stealer}: bring a replica back and go on, or abort"
    )]
    NoDonor {
        /// The partition.
        partition: PartitionId,
        /// The node that waits for it.
        stealer: NodeId,
    },
    /// One copy failed too often.
    #[error(
        "partition {partition} could not be copied from {donor} to {stealer}: go on to try again, or abort"
    )]
    CopyFailed {
        partition: PartitionId,
        /// The node that gives the data.
        donor: NodeId,
        /// The node that receives the data.
        stealer: NodeId,
    },
    /// Another process changed the table.
    #[error("the routing table was changed by another, to epoch {in_force}: abort, then plan anew")]
    TableChanged {
        /// The epoch in force.
        in_force: Epoch,
    },
}

/// The reason why a plan cannot begin.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum BeginRefusal {
    /// A push is running, and what it fetches depends on the current table.
    #[error("a push of store {store} is running: wait for it or abort it, then rebalance")]
    PushRunning { store: String },
    /// Files that the previous rebalance gave up still wait for the end of their grace period. If they were wanted again,
    /// both rebalances would work on them.
    #[error("the last rebalance has {left} given-up partitions to reclaim: wait for their grace to end")]
    NotSettled { left: usize },
    /// The plan was made for another table.
    #[error("the plan starts from epoch {planned}, but epoch {in_force} is in force: plan anew")]
    TableChanged {
        /// The epoch of the plan.
        planned: Epoch,
        /// The epoch of the table in force.
        in_force: Epoch,
    },
    /// The plan is inconsistent, for example because it is damaged.
    #[error("the plan does not lead to a valid table: {reason}")]
    Invalid {
        /// The inconsistency.
        reason: String,
    },
}

/// The reason why a stored execution cannot be resumed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResumeRefusal {
    /// The table in force is neither the one before nor the one after the current step.
    #[error("the rebalance stands at epoch {stored}, but epoch {in_force} is in force, by another's change")]
    TableChanged {
        /// The stored epoch.
        stored: Epoch,
        /// The epoch of the table in force.
        in_force: Epoch,
    },
    /// The stored state is inconsistent.
    #[error("the stored rebalance makes no sense: {reason}")]
    Invalid {
        /// The inconsistency.
        reason: String,
    },
}
