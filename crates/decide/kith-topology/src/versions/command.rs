//! The commands to a store, and the effects of granted ones.

use crate::versions::{Holders, Policy, PushId, StoreState, UnixMillis};
use kith_types::{NodeId, StoreVersion};
use std::collections::BTreeSet;

/// A request to change a store, or an event that happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Command {
    /// Start a push. Repeating it with the same id changes nothing.
    Begin {
        /// The id of the push.
        push: PushId,
        /// The coordinator that runs it.
        coordinator: String,
        /// The version number, which must be greater than all earlier ones; `None` for the time, or one more than the last
        /// number.
        version: Option<StoreVersion>,
        /// The number of nodes that may be left out if they fail.
        missing_max: u32,
    },
    /// The version is built: check it against the guards.
    Offer {
        push: PushId,
        records: u64,
        /// The bytes of one replica.
        bytes: u64,
        /// Skip the guards on record counts and the quota.
        force: bool,
    },
    /// A node has fetched, verified and opened the version.
    Ready { push: PushId, node: NodeId },
    /// A node cannot prepare the version. It is left out if the push allows this; otherwise the push fails.
    NodeFailed { push: PushId, node: NodeId, reason: String },
    /// Serve the version.
    Flip { push: PushId },
    /// Give the push up.
    Abort { push: PushId, reason: String },
    /// Cancel a push on request. It never serves, even if it has not begun yet.
    Cancel {
        /// The push; `None` for the running one.
        push: Option<PushId>,
    },
    /// Refuse pushes from now on. A running push is cancelled.
    Freeze,
    /// Accept pushes again.
    Thaw,
    /// The coordinator of the push is gone: take the push back.
    Recover { push: PushId },
    /// Serve another version. The current one is retained. A running push is cancelled.
    Swap {
        to: StoreVersion,
        /// Serve it even if it is blocked.
        force: bool,
    },
    /// Serve an older version. The current one is blocked. A running push is cancelled.
    Rollback {
        /// The version; `None` for the newest retained one that is older.
        to: Option<StoreVersion>,
        /// Serve it even if it is blocked.
        force: bool,
    },
    /// Protect a version from removal.
    Hold { version: StoreVersion },
    /// End the protection.
    Release { version: StoreVersion },
    /// Allow a retained version to be served only with `force`.
    Block { version: StoreVersion },
    /// End the block.
    Unblock { version: StoreVersion },
    /// A node that was left out has the version now.
    Repaired {
        /// The version.
        version: StoreVersion,
        node: NodeId,
    },
    /// Change the parts of the definition that matter here.
    Define {
        /// The new policy.
        policy: Policy,
    },
}

/// The degree to which the identity of the caller is proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The caller only claims a name. An owner then protects against mistakes, not against attacks.
    #[default]
    Claimed,
    /// The identity is proven.
    Proven,
    /// The identity is proven, and the caller administers all stores.
    Administrator,
}

/// The facts that a command does not contain.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The current time.
    pub now: UnixMillis,
    /// The name of the caller.
    pub who: &'a str,
    /// The degree to which this identity is proven.
    pub standing: Trust,
    /// The nodes that hold the store's partitions.
    pub holders: &'a Holders,
    /// The running rebalance. Rebalances and pushes exclude each other.
    pub rebalance: Option<Rebalance<'a>>,
}

/// The running rebalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebalance<'a> {
    /// Its id.
    pub id: &'a str,
    /// Whether it has stopped and waits for an operator.
    pub is_stopped: bool,
}

/// An action that is due once the new state is written. Every effect is idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Effect {
    /// Nodes must fetch, verify and open a version.
    Prepare { version: StoreVersion, nodes: BTreeSet<NodeId> },
    /// Readers use this version from now on.
    Serve { version: StoreVersion },
    /// Nodes forget a version after a grace period, and its files may be removed.
    Drop { version: StoreVersion },
}

/// The result of a granted command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The new state.
    pub state: StoreState,
    /// The actions that are due.
    pub effects: Vec<Effect>,
}
