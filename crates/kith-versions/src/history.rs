//! The audit record of a store: what was done, by whom, and how it ended.

use crate::{PushId, UnixMillis};
use kith_types::StoreVersion;
use strum::IntoStaticStr;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Action {
    /// A push ended.
    Push,
    /// Another version was swapped in.
    Swap,
    /// An older version was swapped in and the current one blocked.
    Rollback,
    /// A version was taken from the clean-up.
    Hold,
    /// And given back to it.
    Release,
    /// A version was blocked.
    Block,
    /// And unblocked.
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
    /// Its name in documents and on the command line.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The action of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        use Action::{Block, Define, Freeze, Hold, Push, Release, Repair, Rollback, Swap, Thaw, Unblock};
        let all = [Push, Swap, Rollback, Hold, Release, Block, Unblock, Repair, Define, Freeze, Thaw];
        all.into_iter().find(|action| action.name() == name)
    }
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It failed, and why; what was served before is served still.
    Failed(String),
    /// Somebody ended it, and who or what did; what was served before is served still.
    Cancelled(String),
}

/// One line of the audit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// When.
    pub at: UnixMillis,
    /// Who.
    pub who: String,
    /// What.
    pub action: Action,
    /// Of which version.
    pub version: StoreVersion,
    /// Which version was served before; 0: none.
    pub before: StoreVersion,
    /// Which push, if one.
    pub push: Option<PushId>,
    /// How it ended.
    pub outcome: Outcome,
}
