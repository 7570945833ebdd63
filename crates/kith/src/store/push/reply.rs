//! What a push did, as JSON: field names are a contract (`docs/loading.md`).

use crate::{
    publish::Dropped,
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
    /// Always: a push that does not swap fails.
    pub swapped: bool,
    /// Names the push in the store's history.
    pub push: String,
    /// The version that was served before; `null`: none.
    pub before: Option<u64>,
    /// What takes it back; `null`: there is nothing to go back to.
    pub undo: Option<String>,
    /// Nodes that do not have it yet and are not asked for it: they fetch it by themselves. `null`: the router could not be asked any more.
    pub excluded: Option<Vec<u32>>,
    /// Rows dropped because another with their key was kept.
    pub duplicates: u64,
    /// Wrong rows that were dropped, by reason.
    pub dropped: Vec<Dropped>,
    /// What changed with the schema of records.
    pub schema_changes: Vec<String>,
    /// `null` unless it was a delta.
    pub changes: Option<ChangesReply>,
    /// Microseconds of the one write that made it current; `null`: an earlier call wrote it.
    pub flip_us: Option<u64>,
    /// The other routers that were waited for after it.
    pub routers: Vec<FollowedReply>,
    pub seconds: f64,
}
