//! The audit record of a store: what was done, by whom, and with which outcome.

use crate::versions::{PushId, UnixMillis};
use kith_types::StoreVersion;
use strum::IntoStaticStr;

/// The action that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// A push ended.
    Push,
    /// Another version was swapped in.
    Swap,
    /// An older version was swapped in and the current one blocked.
    Rollback,
    /// A version was protected from removal.
    Hold,
    /// The protection of a version was ended.
    Release,
    /// A version was blocked.
    Block,
    /// A version was unblocked.
    Unblock,
    /// A node that lacked a version has it now.
    Repair,
    /// The definition was changed.
    Define,
    /// Pushes are refused from now on.
    Freeze,
    /// Pushes are accepted again.
    Thaw,
}

impl Action {
    /// Returns its name in documents and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the action with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        use Action::{Block, Define, Freeze, Hold, Push, Release, Repair, Rollback, Swap, Thaw, Unblock};
        let all = [Push, Swap, Rollback, Hold, Release, Block, Unblock, Repair, Define, Freeze, Thaw];
        all.into_iter().find(|action| action.name() == name)
    }
}

/// The outcome of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It failed, for this reason. What was served before is still served.
    Failed(String),
    /// It was cancelled, for this reason. What was served before is still served.
    Cancelled(String),
}

/// One entry of the audit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The time.
    pub at: UnixMillis,
    /// The user.
    pub who: String,
    /// The action.
    pub action: Action,
    /// The version.
    pub version: StoreVersion,
    /// The version that was served before; 0 if there was none.
    pub before: StoreVersion,
    /// The push, if it concerns one.
    pub push: Option<PushId>,
    /// The outcome.
    pub outcome: Outcome,
}
