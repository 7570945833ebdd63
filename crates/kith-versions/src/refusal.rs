//! Why a command is refused: a stable code, what stands against it, what to do.

mod help;

use crate::PushId;
use kith_types::{ErrorCode, NodeId, PartitionId, StoreVersion};
use thiserror::Error;

/// Why a command is refused. Nothing has changed then. Codes are a contract: `docs/errors.md`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Refusal {
    /// Another push of the store is under way.
    #[error("{push} of version {} runs already, by {who}", version.0)]
    PushRunning {
        push: PushId,
        /// What it makes.
        version: StoreVersion,
        /// Who asked for it.
        who: String,
    },
    /// The push of this id has ended well before.
    #[error("{push} has ended before: it made version {}", version.0)]
    AlreadyPushed {
        push: PushId,
        /// What it made.
        version: StoreVersion,
    },
    /// The push is not under way: it ended, or was given up.
    #[error("{push} does not run any more")]
    PushEnded { push: PushId },
    /// Somebody ended the push.
    #[error("{push} was cancelled: {why}")]
    PushCancelled {
        push: PushId,
        /// Who or what ended it.
        why: String,
    },
    /// The push that is to be cancelled serves already.
    #[error("{push} cannot be cancelled: its version {} serves already", version.0)]
    PushServed {
        push: PushId,
        /// What it made.
        version: StoreVersion,
    },
    /// Nothing is under way that could be cancelled.
    #[error("no push is under way")]
    NoPush,
    /// The store takes no pushes.
    #[error("the store is frozen, by {who}: it takes no push or load, and is not dropped")]
    StoreFrozen {
        /// Who froze it.
        who: String,
    },
    /// A rebalance is under way.
    #[error("rebalance {rebalance} runs")]
    RebalanceRunning { rebalance: String },
    /// Version numbers grow.
    #[error("version {} is not above {}, the last one used", version.0, last.0)]
    VersionNotNewer {
        version: StoreVersion,
        /// The greatest that was ever used.
        last: StoreVersion,
    },
    /// No number is left above it.
    #[error("version {} is not below {}, the end of the numbers", version.0, StoreVersion::MAX.0)]
    VersionTooGreat {
        /// As asked, or the last one used.
        version: StoreVersion,
    },
    /// A number so far above the clock that it would leave few for those that come after it.
    #[error("version {} is more than a day ahead of the clock: at most {} is taken", version.0, most.0)]
    VersionAhead {
        version: StoreVersion,
        /// The greatest that is taken now.
        most: StoreVersion,
    },
    /// There is no such version.
    #[error("there is no version {}", version.0)]
    UnknownVersion {
        version: StoreVersion,
        /// The versions there are.
        known: Vec<StoreVersion>,
    },
    /// Nodes do not keep it: its push failed or has not ended.
    #[error("version {} is {state}: nodes do not have it", version.0)]
    VersionNotKept {
        version: StoreVersion,
        /// Where it stands.
        state: &'static str,
    },
    /// It was rolled back or blocked.
    #[error("version {} is blocked: it was rolled back, or somebody blocked it", version.0)]
    VersionBlocked { version: StoreVersion },
    /// It is served.
    #[error("version {} is the current one", version.0)]
    VersionCurrent { version: StoreVersion },
    /// Nothing to roll back to.
    #[error("no version older than {} can be served", current.0)]
    NothingOlder {
        /// The version that is served; 0: none.
        current: StoreVersion,
    },
    /// A rollback to a newer version.
    #[error("version {} is not older than {}, the current one", to.0, current.0)]
    NotOlder {
        to: StoreVersion,
        /// The version that is served.
        current: StoreVersion,
    },
    /// Nodes have not said that they are ready.
    #[error("version {} is not ready on {} of the nodes", version.0, nodes.len())]
    NotPrepared {
        version: StoreVersion,
        /// Who is missing.
        nodes: Vec<NodeId>,
    },
    /// A push is to be served that has not passed the guards.
    #[error("{push} has not said what it holds")]
    NotOffered { push: PushId },
    /// So many nodes lack it that a partition has no replica.
    #[error("no node that has version {} holds partition {}", version.0, partition.0)]
    PartitionUncovered {
        /// Which version.
        version: StoreVersion,
        /// The first such partition.
        partition: PartitionId,
    },
    /// Too few records.
    #[error("{records} records, and the store asks for at least {records_min}")]
    TooFewRecords {
        /// Of the push.
        records: u64,
        /// Of the definition.
        records_min: u64,
    },
    /// Too many records fewer than before.
    #[error(
        "{records} records, {} % fewer than the {records_before} of version {}, and at most {drop_percent_max} % are allowed",
        percent(*records, *records_before), before.0
    )]
    RecordsDropped {
        /// Of the push.
        records: u64,
        /// Of the current version.
        records_before: u64,
        /// The current version.
        before: StoreVersion,
        /// Of the definition.
        drop_percent_max: u8,
    },
    /// Too many bytes.
    #[error(
        "{bytes} bytes beside the {bytes_kept} of versions that are kept, and the quota is {quota_bytes}"
    )]
    OverQuota {
        /// Of the push.
        bytes: u64,
        /// Of the versions that are kept.
        bytes_kept: u64,
        /// Of the definition.
        quota_bytes: u64,
    },
    /// Somebody else's store.
    #[error("the store is {owner}'s, and {who} is not {owner}")]
    NotOwner {
        /// Who may.
        owner: String,
        /// Who asked.
        who: String,
    },
    /// Somebody else's store, and it is known who asks.
    #[error("the store is {owner}'s, and {who} is neither {owner} nor an administrator")]
    OthersStore {
        /// Who may.
        owner: String,
        /// Who asked.
        who: String,
    },
}

impl Refusal {
    /// The stable code.
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

/// How many per cent fewer `records` is than `before`, rounded up so that it never reads as allowed.
fn percent(records: u64, before: u64) -> u128 {
    let fewer = u128::from(before.saturating_sub(records)) * 100;
    fewer.div_ceil(u128::from(before).max(1))
}
