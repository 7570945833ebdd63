//! The reasons why a command is refused: a stable code, the reason, and what to do.

mod help;

use crate::versions::PushId;
use kith_types::{ErrorCode, NodeId, PartitionId, StoreVersion};
use thiserror::Error;

/// The reason why a command is refused. Nothing has changed then. The codes are a contract: see `docs/errors.md`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Refusal {
    /// Another push of the store is running.
    #[error("{push} of version {} runs already, by {who}", version.0)]
    PushRunning {
        push: PushId,
        /// The version that it makes.
        version: StoreVersion,
        /// The user who started it.
        who: String,
    },
    /// The push with this id has already succeeded.
    #[error("{push} has ended before: it made version {}", version.0)]
    AlreadyPushed {
        push: PushId,
        /// The version that it made.
        version: StoreVersion,
    },
    /// The push is no longer running: it ended or was given up.
    #[error("{push} does not run any more")]
    PushEnded { push: PushId },
    /// The push was cancelled.
    #[error("{push} was cancelled: {why}")]
    PushCancelled {
        push: PushId,
        /// The subject or the event that cancelled it.
        why: String,
    },
    /// The version of the push that should be cancelled is already served.
    #[error("{push} cannot be cancelled: its version {} serves already", version.0)]
    PushServed {
        push: PushId,
        /// The version that it made.
        version: StoreVersion,
    },
    /// There is no push to cancel.
    #[error("no push is under way")]
    NoPush,
    /// The store accepts no pushes.
    #[error("the store is frozen, by {who}: it takes no push or load, and is not dropped")]
    StoreFrozen {
        /// The user who froze it.
        who: String,
    },
    /// A rebalance is running.
    #[error("rebalance {rebalance} {}", rebalance_state(.is_stopped))]
    RebalanceRunning {
        rebalance: String,
        /// Whether it waits for an operator.
        is_stopped: bool,
    },
    /// Version numbers must increase.
    #[error("version {} is not above {}, the last one used", version.0, last.0)]
    VersionNotNewer {
        version: StoreVersion,
        /// The greatest number that was ever used.
        last: StoreVersion,
    },
    /// There are no numbers above it.
    #[error("version {} is not below {}, the end of the numbers", version.0, StoreVersion::MAX.0)]
    VersionTooGreat {
        /// The requested number, or the last one used.
        version: StoreVersion,
    },
    /// The number is so far above the clock that it would leave few for later versions.
    #[error("version {} is more than a day ahead of the clock: at most {} is taken", version.0, most.0)]
    VersionAhead {
        version: StoreVersion,
        /// The greatest number that is accepted now.
        most: StoreVersion,
    },
    /// There is no such version.
    #[error("there is no version {}", version.0)]
    UnknownVersion {
        version: StoreVersion,
        /// The existing versions.
        known: Vec<StoreVersion>,
    },
    /// Nodes do not keep it, because its push failed or has not ended.
    #[error("version {} is {state}: nodes do not have it", version.0)]
    VersionNotKept {
        version: StoreVersion,
        /// The state of the version.
        state: &'static str,
    },
    /// The version was rolled back or blocked.
    #[error("version {} is blocked: it was rolled back, or somebody blocked it", version.0)]
    VersionBlocked { version: StoreVersion },
    /// The version is already served.
    #[error("version {} is the current one", version.0)]
    VersionCurrent { version: StoreVersion },
    /// There is no version to roll back to.
    #[error("no version older than {} can be served", current.0)]
    NothingOlder {
        /// The served version; 0 if there is none.
        current: StoreVersion,
    },
    /// The target of a rollback is newer than the current version.
    #[error("version {} is not older than {}, the current one", to.0, current.0)]
    NotOlder {
        to: StoreVersion,
        /// The served version.
        current: StoreVersion,
    },
    /// Some nodes are not ready.
    #[error("version {} is not ready on {} of the nodes", version.0, nodes.len())]
    NotPrepared {
        version: StoreVersion,
        /// The nodes that are not ready.
        nodes: Vec<NodeId>,
    },
    /// A push that has not passed the guards should be served.
    #[error("{push} has not said what it holds")]
    NotOffered { push: PushId },
    /// So many nodes lack the version that a partition has no replica.
    #[error("no node that has version {} holds partition {}", version.0, partition.0)]
    PartitionUncovered {
        /// The version.
        version: StoreVersion,
        /// The first such partition.
        partition: PartitionId,
    },
    /// The version has too few records.
    #[error("{records} records, and the store asks for at least {records_min}")]
    TooFewRecords {
        /// The records of the push.
        records: u64,
        /// The minimum of the definition.
        records_min: u64,
    },
    /// The number of records drops by too much.
    #[error(
        "{records} records, {} % fewer than the {records_before} of version {}, and at most {drop_percent_max} % are allowed",
        percent(*records, *records_before), before.0
    )]
    RecordsDropped {
        /// The records of the push.
        records: u64,
        /// The records of the current version.
        records_before: u64,
        /// The current version.
        before: StoreVersion,
        /// The limit of the definition.
        drop_percent_max: u8,
    },
    /// The version has too many bytes.
    #[error(
        "{bytes} bytes beside the {bytes_kept} of versions that are kept, and the quota is {quota_bytes}"
    )]
    OverQuota {
        /// The bytes of the push.
        bytes: u64,
        /// The bytes of the kept versions.
        bytes_kept: u64,
        /// The quota of the definition.
        quota_bytes: u64,
    },
    /// The store belongs to another user.
    #[error("the store is {owner}'s, and {who} is not {owner}")]
    NotOwner {
        /// The owner.
        owner: String,
        /// The caller.
        who: String,
    },
    /// The store belongs to another user, and the identity of the caller is proven.
    #[error("the store is {owner}'s, and {who} is neither {owner} nor an administrator")]
    OthersStore {
        /// The owner.
        owner: String,
        /// The caller.
        who: String,
    },
}

fn rebalance_state(is_stopped: &bool) -> &'static str {
    if *is_stopped { "has stopped and waits for an operator" } else { "runs" }
}

impl Refusal {
    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Refusal::PushRunning { .. } => ErrorCode::PushRunning,
            Refusal::AlreadyPushed { .. } => ErrorCode::AlreadyPushed,
            Refusal::PushEnded { .. } => ErrorCode::PushEnded,
            Refusal::PushCancelled { .. } => ErrorCode::PushCancelled,
            Refusal::PushServed { .. } => ErrorCode::PushServed,
            Refusal::NoPush => ErrorCode::NoPush,
            Refusal::StoreFrozen { .. } => ErrorCode::StoreFrozen,
            Refusal::RebalanceRunning { .. } => ErrorCode::RebalanceRunning,
            Refusal::VersionNotNewer { .. } => ErrorCode::VersionNotNewer,
            Refusal::VersionTooGreat { .. } | Refusal::VersionAhead { .. } => ErrorCode::VersionTooGreat,
            Refusal::UnknownVersion { .. } => ErrorCode::UnknownVersion,
            Refusal::VersionNotKept { .. } => ErrorCode::VersionNotKept,
            Refusal::VersionBlocked { .. } => ErrorCode::VersionBlocked,
            Refusal::VersionCurrent { .. } => ErrorCode::VersionCurrent,
            Refusal::NothingOlder { .. } => ErrorCode::NothingOlder,
            Refusal::NotOlder { .. } => ErrorCode::NotOlder,
            Refusal::NotPrepared { .. } | Refusal::NotOffered { .. } => ErrorCode::NotPrepared,
            Refusal::PartitionUncovered { .. } => ErrorCode::PartitionUncovered,
            Refusal::TooFewRecords { .. } => ErrorCode::TooFewRecords,
            Refusal::RecordsDropped { .. } => ErrorCode::RecordsDropped,
            Refusal::OverQuota { .. } => ErrorCode::OverQuota,
            Refusal::NotOwner { .. } => ErrorCode::StoreOwner,
            Refusal::OthersStore { .. } => ErrorCode::PermissionDenied,
        }
    }
}

/// Returns by how many per cent `records` is below `before`, rounded up so that a refused drop never looks allowed.
fn percent(records: u64, before: u64) -> u128 {
    let fewer = u128::from(before.saturating_sub(records)) * 100;
    fewer.div_ceil(u128::from(before).max(1))
}
