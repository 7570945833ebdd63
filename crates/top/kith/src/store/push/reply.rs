//! The result of a push, as JSON. The field names are a contract: see `docs/loading.md`.

use crate::{
    publish::DroppedLines,
    store::{FollowedReply, build::ChangesReply},
};
use serde::Serialize;

/// A version that was pushed and serves.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PushReply {
    pub store: String,
    pub version: u64,
    pub records: u64,
    pub bytes: u64,
    /// Always true: a push that does not swap is an error.
    pub swapped: bool,
    /// The name of the push in the store's history.
    pub push: String,
    /// The version that was served before; `null` if there was none.
    pub before: Option<u64>,
    /// The command that undoes the push; `null` if there was no version before.
    pub undo: Option<String>,
    /// Nodes that do not have the version yet and get no reads of it; they fetch it on their own. `null` if the router no
    /// longer answered.
    pub excluded: Option<Vec<u32>>,
    /// Rows that were dropped because another row with the same key was kept.
    pub duplicates: u64,
    /// Invalid rows that were dropped, by reason.
    pub dropped: Vec<DroppedLines>,
    /// The differences from the previous schema of records, and the fields that the rows lack.
    pub schema_changes: Vec<String>,
    /// A time that is probably in another unit than milliseconds.
    pub warning: Option<String>,
    /// `null` unless the push was a delta.
    pub changes: Option<ChangesReply>,
    /// The duration in microseconds of the one write that made it current; `null` if an earlier call made it current.
    pub flip_us: Option<u64>,
    /// The other routers that the push waited for afterwards.
    pub routers: Vec<FollowedReply>,
    pub seconds: f64,
}
