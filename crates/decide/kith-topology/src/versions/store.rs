//! The state of one store on which the cluster agrees.

use crate::versions::HistoryEntry;
use kith_types::{NodeId, StoreVersion};
use kith_wire::documents::DefinitionDocument;
use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
};
use strum::IntoStaticStr;

/// The number of entries of the history that are kept. It is enough to see a week of a store's daily pushes with their
/// failures, in a record of a few kilobytes.
pub const HISTORY_MAX: usize = 100;
/// The number of remembered pushes that were cancelled before they began. A push that a cancel has overtaken begins
/// within seconds.
pub const CANCELLED_MAX: usize = 16;

/// Milliseconds since 1970, as read by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub u64);

/// Identifies one push, however often it is requested.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PushId(pub String);

impl From<&str> for PushId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

impl fmt::Display for PushId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The parts of a definition that matter here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The number of versions that are kept besides the current one and held ones.
    pub retain: u32,
    /// The number of bytes that all kept versions may have together at one replica; `None` for no limit.
    pub quota_bytes: Option<u64>,
    /// The guards that a push must pass.
    pub guards: Guards,
}

impl Default for Policy {
    fn default() -> Self {
        Self { retain: DefinitionDocument::RETAIN_DEFAULT, quota_bytes: None, guards: Guards::default() }
    }
}

/// The guards that a push must pass before nodes fetch its version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// The fewest records of a version.
    pub records_min: u64,
    /// The percentage by which a version may have fewer records than the current one; `None` for no limit.
    pub drop_percent_max: Option<u8>,
    /// The only user who may push and, if callers prove their identity, change the store.
    pub owner: Option<String>,
}

/// The state of a version. The names are a contract of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum VersionState {
    /// It is served.
    Current,
    /// Nodes keep it, so that a swap or rollback can serve it.
    Retained,
    /// It was rolled back. It is kept, but served again only with `force`.
    Blocked,
    /// Nodes are fetching it.
    Fetching,
    /// Its push failed. Nodes keep nothing of it.
    Failed,
}

impl VersionState {
    /// Returns its name in documents and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the state with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        use VersionState::{Blocked, Current, Failed, Fetching, Retained};
        [Current, Retained, Blocked, Fetching, Failed].into_iter().find(|state| state.name() == name)
    }

    /// Whether nodes keep its files, so that it can be served.
    pub fn is_kept(self) -> bool {
        matches!(self, VersionState::Current | VersionState::Retained | VersionState::Blocked)
    }
}

/// One version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionEntry {
    /// The version number.
    pub version: StoreVersion,
    /// The state.
    pub state: VersionState,
    /// The number of records.
    pub records: u64,
    /// The bytes of one replica.
    pub bytes: u64,
    /// The time when its push began.
    pub pushed_at: UnixMillis,
    /// Whether it is protected from removal.
    pub held: bool,
    /// The nodes that do not have it. Reads of it go to other nodes until they have repaired themselves.
    pub excluded: BTreeSet<NodeId>,
}

/// A running push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningPush {
    /// The id of the push.
    pub push: PushId,
    /// The version that it makes.
    pub version: StoreVersion,
    /// The user who started it.
    pub who: String,
    /// The coordinator that runs it. If it is gone, any router may recover the push.
    pub coordinator: String,
    /// The time when it began.
    pub since: UnixMillis,
    /// The number of nodes that may be left out.
    pub missing_max: u32,
    /// Whether it has passed the guards.
    pub offered: bool,
    /// The nodes that are ready. Only the coordinator knows them, because they are not written. So a push whose coordinator
    /// is gone can only be taken back.
    pub ready: BTreeSet<NodeId>,
}

/// A frozen store accepts no pushes until it is thawed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreezeRecord {
    /// The user who froze it.
    pub who: String,
    /// The time when it was frozen.
    pub since: UnixMillis,
}

/// A push that was cancelled before it began. It will not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CancelledPush {
    /// The id of the push.
    pub push: PushId,
    /// The user who cancelled it.
    pub who: String,
}

/// Everything that the cluster agrees on about one store's versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// The parts of its definition that matter here.
    pub policy: Policy,
    /// The greatest number ever used; 0 if none was.
    pub version_last: StoreVersion,
    /// The known versions, ascending.
    pub versions: Vec<VersionEntry>,
    /// The running push.
    pub running: Option<RunningPush>,
    /// The freeze; `None` unless pushes are refused.
    pub frozen: Option<FreezeRecord>,
    /// The last [`CANCELLED_MAX`] pushes that were cancelled before they began, oldest first.
    pub cancelled: VecDeque<CancelledPush>,
    /// The last [`HISTORY_MAX`] actions, oldest first.
    pub history: VecDeque<HistoryEntry>,
}

impl StoreState {
    /// Returns a store without a version. `version_last` is the greatest number that a store with this name ever used.
    pub fn new(policy: Policy, version_last: StoreVersion) -> Self {
        Self {
            policy,
            version_last,
            versions: Vec::new(),
            running: None,
            frozen: None,
            cancelled: VecDeque::new(),
            history: VecDeque::new(),
        }
    }

    /// Returns the served version.
    pub fn current(&self) -> Option<&VersionEntry> {
        self.versions.iter().find(|entry| entry.state == VersionState::Current)
    }

    /// Returns a version.
    pub fn version(&self, version: StoreVersion) -> Option<&VersionEntry> {
        self.versions.iter().find(|entry| entry.version == version)
    }

    pub(crate) fn version_mut(&mut self, version: StoreVersion) -> Option<&mut VersionEntry> {
        self.versions.iter_mut().find(|entry| entry.version == version)
    }

    /// Returns the number of the served version, or 0 if there is none.
    pub(crate) fn current_version(&self) -> StoreVersion {
        self.current().map(|entry| entry.version).unwrap_or_default()
    }

    pub(crate) fn record(&mut self, entry: HistoryEntry) {
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(entry);
    }

    /// Whether the push with this id is running.
    pub fn runs(&self, push: &PushId) -> bool {
        self.running.as_ref().is_some_and(|running| running.push == *push)
    }

    pub(crate) fn bytes_kept(&self) -> u64 {
        let kept = self.versions.iter().filter(|entry| entry.state.is_kept());
        kept.map(|entry| entry.bytes).fold(0, u64::saturating_add)
    }

    /// Returns how many bytes the quota leaves for a version beside the kept ones; `None` if there is no quota. The guards
    /// only check the size that the pusher reports; a node that fetches the version can check its real size against this.
    pub fn quota_left_bytes(&self) -> Option<u64> {
        Some(self.policy.quota_bytes?.saturating_sub(self.bytes_kept()))
    }
}
