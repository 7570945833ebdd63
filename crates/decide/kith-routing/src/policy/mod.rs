//! Replica policies: which node gets which key (Moolle §III-C).
//!
//! A new policy is one file here, one line in [`ALL`] and one fixture in `testdata/policy/`. The contract test then runs it.

mod adjust;
mod balance;
mod borrow;
mod cover;
mod draft;
mod groups;
mod hybrid;
mod least_loaded;
mod least_pending;
mod n_groups;
mod one_group;
mod round_robin;
mod set_cover;
mod set_cover_norbert;
mod state;

pub use draft::Draft;
pub use state::{Cursors, PolicyState};

use crate::{Candidates, FanOutPlan, GroupLimit, LoadSnapshot};
use kith_types::{PartitionCount, PartitionId};
use rand::Rng;
use thiserror::Error;

/// Every policy that users can name.
pub static ALL: &[&dyn ReplicaPolicy] = &[
    &round_robin::RoundRobin,
    &set_cover::SetCover,
    &set_cover_norbert::SetCoverNorbert,
    &one_group::OneGroup,
    &n_groups::NGroups,
    &adjust::AdjustPolicy,
    &borrow::BorrowPolicy,
    &hybrid::Hybrid,
    &least_loaded::LeastLoaded,
    &least_pending::LeastPending,
];

/// Returns the policy with this name.
pub fn by_name(name: &str) -> Option<&'static dyn ReplicaPolicy> {
    ALL.iter().copied().find(|policy| policy.name() == name)
}

/// Decides which node gets which key of a query.
///
/// Implementors may assume nothing about `keys`, which may repeat or be empty, or about `state`, which may have been used
/// with another policy or table. They must:
/// - assign every key to exactly one replica that may serve now, if there is one for each key;
/// - otherwise fail with every partition that has none;
/// - decide by their arguments alone, so that equal seeds give equal plans.
pub trait ReplicaPolicy: Send + Sync {
    /// The name that users type.
    fn name(&self) -> &'static str;

    /// One line about the purpose of the policy.
    fn summary(&self) -> &'static str;

    /// Assigns each key to a node.
    ///
    /// # Errors
    /// If a partition has no replica that may serve now, or does not exist.
    fn plan(&self, inputs: &PolicyInputs<'_>, state: &mut PolicyState, rng: &mut dyn Rng) -> PlanResult;
}

/// The inputs of a policy, besides its state and randomness. Cheap to create and to copy.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInputs<'a> {
    /// The replicas that may serve now.
    pub view: Candidates<'a>,
    /// The partition of each key.
    pub keys: &'a [PartitionId],
    /// The number of groups that may take part, as the fan-out controller decided.
    pub limit: GroupLimit,
    /// The load of the nodes.
    pub load: &'a LoadSnapshot,
}

/// A plan, or the reason why there is none.
pub type PlanResult = Result<FanOutPlan, PlanError>;

/// The reason why there is no plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum PlanError {
    /// These partitions have no replica that may serve now.
    #[error("no replica of {} can serve now", list(.partitions))]
    NoReplica {
        /// The partitions, ascending, distinct.
        partitions: Vec<PartitionId>,
    },
    /// A key names a partition that the table does not have.
    #[error("partition {partition} does not exist: the table has {partition_count}")]
    UnknownPartition {
        partition: PartitionId,
        /// The number of partitions.
        partition_count: PartitionCount,
    },
}

/// The number of partitions that a message names. The others are counted.
const PARTITIONS_NAMED_MAX: usize = 8;

fn list(partitions: &[PartitionId]) -> String {
    let named: Vec<String> =
        partitions.iter().take(PARTITIONS_NAMED_MAX).map(|partition| format!("{partition}")).collect();
    let rest = partitions.len().saturating_sub(PARTITIONS_NAMED_MAX);
    let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    format!("{}{more}", named.join(", "))
}

/// Plans the keys that have a replica and leaves out the others, for callers that accept a partial answer.
/// [`crate::Execution`] reports the keys that its plan leaves out as missing.
///
/// # Errors
/// Only if a key names a partition that does not exist.
pub fn plan_what_is_up(
    policy: &dyn ReplicaPolicy,
    inputs: &PolicyInputs<'_>,
    state: &mut PolicyState,
    rng: &mut dyn Rng,
) -> PlanResult {
    let lost = match policy.plan(inputs, state, rng) {
        Err(PlanError::NoReplica { partitions }) => partitions,
        other => return other,
    };
    let keys = inputs.keys;
    let is_up = |key: &u32| lost.binary_search(&keys[*key as usize]).is_err();
    let kept: Vec<u32> = (0..keys.len() as u32).filter(is_up).collect();
    let kept_keys: Vec<PartitionId> = kept.iter().map(|key| keys[*key as usize]).collect();
    let mut plan = policy.plan(&PolicyInputs { keys: &kept_keys, ..*inputs }, state, rng)?;
    for assignment in &mut plan.assignments {
        assignment.keys.iter_mut().for_each(|key| *key = kept[*key as usize]);
    }
    Ok(plan)
}
