//! What can be asked of a store, and what must be done when it was granted.

use crate::{Holders, Policy, PushId, StoreState, UnixMillis};
use kith_types::{NodeId, StoreVersion};
use std::collections::BTreeSet;

/// What is asked of a store, or has happened to it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Command {
    /// Start a push. Begun again with the same id it changes nothing.
    Begin {
        /// Names it.
        push: PushId,
        /// Who runs it.
        coordinator: String,
        /// Its number, greater than all before; `None`: the time, or one more than the last.
        version: Option<StoreVersion>,
        /// How many nodes may be left out if they fail.
        missing_max: u32,
    },
    /// It is built: have it pass the guards.
    Offer {
        push: PushId,
        records: u64,
        /// Bytes of one replica.
        bytes: u64,
        /// Pass the guards on counts and the quota whatever they say.
        force: bool,
    },
    /// A node has fetched, verified and opened it.
    Ready { push: PushId, node: NodeId },
    /// A node cannot: it is left out if the push allows that, else the push fails.
    NodeFailed { push: PushId, node: NodeId, reason: String },
    /// Serve it.
    Flip { push: PushId },
    /// Give it up.
    Abort { push: PushId, reason: String },
    /// End a push because somebody wants it ended: it never serves, also if it has not begun yet.
    Cancel {
        /// The push; `None`: the one under way.
        push: Option<PushId>,
    },
    /// Refuse pushes from now on; the one under way ends.
    Freeze,
    /// Accept pushes again.
    Thaw,
    /// Its coordinator is gone: take it back.
    Recover { push: PushId },
    /// Serve another version; the current one is retained. A push under way ends.
    Swap {
        to: StoreVersion,
        /// Also if it is blocked.
        force: bool,
    },
    /// Serve an older version; the current one is blocked. A push under way ends.
    Rollback {
        /// Which; `None`: the newest that is retained.
        to: Option<StoreVersion>,
        /// Also if it is blocked.
        force: bool,
    },
    /// Keep a version whatever comes.
    Hold { version: StoreVersion },
    /// Let the clean-up have it again.
    Release { version: StoreVersion },
    /// Have a retained version served by force only.
    Block { version: StoreVersion },
    /// Take that back.
    Unblock { version: StoreVersion },
    /// A node that was left out has it now.
    Repaired {
        /// Which version.
        version: StoreVersion,
        node: NodeId,
    },
    /// Change what the definition asks for.
    Define {
        /// From now on.
        policy: Policy,
    },
}

/// What is known of whoever asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Nothing but the name that they gave: an owner is a guard against mistakes, not against others.
    #[default]
    Claimed,
    /// They have shown who they are.
    Proven,
    /// They have, and they look after all stores.
    Administrator,
}

/// What a command cannot know by itself.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time.
    pub now: UnixMillis,
    /// Who asks.
    pub who: &'a str,
    /// What is known of them beside the name.
    pub standing: Trust,
    /// Which nodes hold the store's partitions.
    pub holders: &'a Holders,
    /// The rebalance under way: it and pushes keep each other out.
    pub rebalance: Option<&'a str>,
}

/// What must be done once the new state is written. Done twice, it does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Effect {
    /// Nodes fetch, verify and open a version.
    Prepare { version: StoreVersion, nodes: BTreeSet<NodeId> },
    /// Readers begin with this version from now on.
    Serve { version: StoreVersion },
    /// Nodes forget a version after a grace, and its files may go.
    Drop { version: StoreVersion },
}

/// A command that was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The state from now on.
    pub state: StoreState,
    /// What must be done.
    pub effects: Vec<Effect>,
}
