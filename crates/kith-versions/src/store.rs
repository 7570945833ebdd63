//! What a cluster agrees on about one store.

use crate::HistoryEntry;
use kith_types::{NodeId, StoreVersion};
use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
};
use strum::IntoStaticStr;

/// So many entries of the history are kept: enough to see a week of daily pushes of a store with their trouble, and a
/// record of a few kilobytes.
pub const HISTORY_MAX: usize = 100;
/// So many pushes that were cancelled before they began are remembered: the push that a cancel has overtaken begins within seconds.
pub const CANCELLED_MAX: usize = 16;
/// Versions kept beside the current one unless the definition says otherwise: the one before, and the one before that
/// while the one before is suspect.
const RETAIN_DEFAULT: u32 = 2;

/// Milliseconds since 1970, as the caller read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixMillis(pub u64);

/// Names one push, whoever asks for it and however often.
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

/// What a definition asks of the life-cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How many versions are kept beside the current one and those that are held.
    pub retain: u32,
    /// Bytes that all kept versions may take together at one replica; `None`: any.
    pub quota_bytes: Option<u64>,
    /// What a push must pass.
    pub guards: Guards,
}

impl Default for Policy {
    fn default() -> Self {
        Self { retain: RETAIN_DEFAULT, quota_bytes: None, guards: Guards::default() }
    }
}

/// What a push must pass before nodes fetch it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    /// Fewest records of a version.
    pub records_min: u64,
    /// A version may have so many per cent fewer records than the current one.
    pub drop_percent_max: Option<u8>,
    /// Who alone may push and, where callers show who they are, change the store.
    pub owner: Option<String>,
}

/// Where a version stands. The names are a contract of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum VersionState {
    /// It is served.
    Current,
    /// Nodes keep it: a swap or rollback away.
    Retained,
    /// It was rolled back: kept, but served again only by force.
    Blocked,
    /// Nodes fetch it.
    Fetching,
    /// Its push failed; nodes keep nothing of it.
    Failed,
}

impl VersionState {
    /// Its name in documents and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The state of that name.
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
    /// Its number.
    pub version: StoreVersion,
    /// Where it stands.
    pub state: VersionState,
    /// How many records it has.
    pub records: u64,
    /// Bytes of one replica.
    pub bytes: u64,
    /// When its push began.
    pub pushed_at: UnixMillis,
    /// Never cleaned up while set.
    pub held: bool,
    /// Nodes that do not have it: reads of it go to others until they repair themselves.
    pub excluded: BTreeSet<NodeId>,
}

/// The push under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Which.
    pub push: PushId,
    /// What it makes.
    pub version: StoreVersion,
    /// Who asked for it.
    pub who: String,
    /// Who runs it: whoever finds that one gone may recover.
    pub coordinator: String,
    /// Since when.
    pub since: UnixMillis,
    /// How many nodes may be left out.
    pub missing_max: u32,
    /// Whether it passed the guards.
    pub offered: bool,
    /// Nodes that have it ready. Known to the coordinator only: not part of what is written, so that a push whose
    /// coordinator is gone can only be taken back.
    pub ready: BTreeSet<NodeId>,
}

/// No push is accepted until somebody thaws the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frozen {
    /// Who froze it.
    pub who: String,
    /// Since when.
    pub since: UnixMillis,
}

/// A push that was cancelled before anybody knew of it: it does not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cancelled {
    /// Which.
    pub push: PushId,
    /// Who cancelled it.
    pub who: String,
}

/// Everything that is agreed on about one store's versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreState {
    /// What its definition asks for.
    pub policy: Policy,
    /// The greatest number ever used; 0: none.
    pub version_last: StoreVersion,
    /// Versions that are known, ascending.
    pub versions: Vec<VersionEntry>,
    /// The push under way.
    pub running: Option<Running>,
    /// Set while no push is accepted.
    pub frozen: Option<Frozen>,
    /// Pushes that were cancelled before they began, oldest first; the last [`CANCELLED_MAX`].
    pub cancelled: VecDeque<Cancelled>,
    /// What was done, oldest first; the last [`HISTORY_MAX`].
    pub history: VecDeque<HistoryEntry>,
}

impl StoreState {
    /// A store without a version. `version_last` is the greatest number that a store of this name ever used.
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

    /// The version that is served.
    pub fn current(&self) -> Option<&VersionEntry> {
        self.versions.iter().find(|entry| entry.state == VersionState::Current)
    }

    /// A version.
    pub fn version(&self, version: StoreVersion) -> Option<&VersionEntry> {
        self.versions.iter().find(|entry| entry.version == version)
    }

    pub(crate) fn version_mut(&mut self, version: StoreVersion) -> Option<&mut VersionEntry> {
        self.versions.iter_mut().find(|entry| entry.version == version)
    }

    /// The number of the version that is served, 0 if none is.
    pub(crate) fn current_version(&self) -> StoreVersion {
        self.current().map(|entry| entry.version).unwrap_or_default()
    }

    pub(crate) fn record(&mut self, entry: HistoryEntry) {
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(entry);
    }
}
