//! The output of `kith store` as JSON. Field names are a contract (`docs/stores.md`).

use kith_wire::{
    documents::{DefinitionDocument, StoreDocument},
    v1,
};
use serde::Serialize;

/// A store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoreReply {
    pub store: String,
    /// The version that is served; `null`: none yet.
    pub version: Option<u64>,
    pub records: u64,
    pub bytes: u64,
    /// The number of versions that are kept, including the current one.
    pub kept: usize,
    #[serde(flatten)]
    pub definition: DefinitionDocument,
    /// The schema of the records that are served, in its canonical form; only `kith store describe` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served_schema: Option<String>,
    pub running: Option<RunningReply>,
    /// `null`: pushes are accepted.
    pub frozen: Option<FrozenReply>,
}

/// A freeze: pushes and loads are refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FrozenReply {
    pub who: String,
    /// Milliseconds since 1970.
    pub since: u64,
}

/// A push under way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunningReply {
    pub push: String,
    pub version: u64,
    pub who: String,
    pub by: String,
    /// Milliseconds since 1970.
    pub since: u64,
}

/// A version of a store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionReply {
    pub version: u64,
    pub state: String,
    pub records: u64,
    pub bytes: u64,
    /// Milliseconds since 1970.
    pub pushed_at: u64,
    pub held: bool,
    /// The nodes that do not have the version yet.
    pub excluded: Vec<u32>,
}

/// One entry in the history of a store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryReply {
    /// Milliseconds since 1970.
    pub at: u64,
    pub who: String,
    pub action: String,
    pub version: u64,
    /// The version that was served before; 0: none.
    pub before: u64,
    pub push: Option<String>,
    /// `done`, the reason for the failure, or who or what cancelled it.
    pub result: String,
}

/// The result of a swap or rollback.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SwapReply {
    pub store: String,
    pub version: u64,
    /// The version that was served before.
    pub before: u64,
    /// The state of the previous version now; `null`: it is no longer kept.
    pub before_state: Option<String>,
    /// The command that undoes the change; `null`: nothing does.
    pub undo: Option<String>,
    /// The duration of the single write that made the change, in microseconds; 0: that version was already served.
    pub flip_us: u64,
    /// The other routers that the change waited for.
    pub routers: Vec<FollowedReply>,
}

/// The state of a router after a change of the served version.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FollowedReply {
    pub router: u32,
    /// `seen`: it serves the version; `expired`: it has lost the metadata store, and its answers say so; `unknown`.
    pub state: String,
}

impl From<v1::FollowedRouter> for FollowedReply {
    fn from(wire: v1::FollowedRouter) -> Self {
        Self { router: wire.router, state: wire.state }
    }
}

impl From<StoreDocument> for StoreReply {
    fn from(document: StoreDocument) -> Self {
        let current = document.current();
        let (version, records, bytes) =
            current.map_or((None, 0, 0), |it| (Some(it.version), it.records, it.bytes));
        let is_kept = |state: &str| matches!(state, "current" | "retained" | "blocked");
        Self {
            version,
            records,
            bytes,
            kept: document.versions.iter().filter(|version| is_kept(&version.state)).count(),
            served_schema: None,
            running: document.running.map(|running| RunningReply {
                push: running.push,
                version: running.version,
                who: running.who,
                by: running.coordinator,
                since: running.since,
            }),
            frozen: document.frozen.map(|frozen| FrozenReply { who: frozen.who, since: frozen.since }),
            store: document.name,
            definition: document.definition,
        }
    }
}

/// Returns the versions of a store, ascending.
pub fn versions(document: &StoreDocument) -> Vec<VersionReply> {
    let versions = document.versions.iter().map(|version| VersionReply {
        version: version.version,
        state: version.state.clone(),
        records: version.records,
        bytes: version.bytes,
        pushed_at: version.pushed_at,
        held: version.held,
        excluded: version.excluded.clone(),
    });
    versions.collect()
}

/// Returns the history of a store, the oldest entry first.
pub fn history(document: &StoreDocument) -> Vec<HistoryReply> {
    let entries = document.history.iter().map(|entry| HistoryReply {
        at: entry.at,
        who: entry.who.clone(),
        action: entry.action.clone(),
        version: entry.version,
        before: entry.before,
        push: entry.push.clone(),
        result: match (&entry.cancelled, &entry.failed) {
            (Some(why), _) => format!("cancelled: {why}"),
            (None, Some(reason)) => format!("failed: {reason}"),
            (None, None) => "done".to_owned(),
        },
    });
    entries.collect()
}

impl SwapReply {
    /// Returns the result of a change, from the record of the store after it.
    pub fn new(document: &StoreDocument, reply: v1::StoreReply, is_rollback: bool) -> Self {
        let v1::StoreReply { before, flip_us, routers, .. } = reply;
        let state = document.versions.iter().find(|version| version.version == before);
        let state = state.map(|version| version.state.clone());
        let force = if is_rollback { " --force" } else { "" };
        let name = &document.name;
        Self {
            store: name.clone(),
            version: document.current().map_or(0, |current| current.version),
            before,
            undo: state.is_some().then(|| format!("kith store swap {name} {before}{force}")),
            before_state: state,
            flip_us,
            routers: routers.into_iter().map(FollowedReply::from).collect(),
        }
    }
}
