//! The life-cycle of a store's versions, as a state machine (Voldemort §5.3 to §5.5).
//!
//! A [`StoreState`] is what a cluster agrees on about one store. [`StoreState::apply`] returns the transition that a
//! [`Command`] causes, or why it is [refused](Refusal). The caller writes the new state back in one conditional write, then
//! carries out the [effects](Effect). There is no clock, no entropy, no I/O and no data here: the caller knows components,
//! schemas and addresses.
//!
//! These properties hold after every command, and after a crash between any two commands:
//!
//! - at most one version is served, and once one is, exactly one;
//! - a version is served only if every node that holds a part of the store has prepared it, except those that its push was
//!   allowed to leave out and those in groups that are taken out; the excepted nodes never hold all readable replicas of a
//!   partition;
//! - versions that can be rolled back to are prepared in the same sense, and at most `retain` of them are kept in addition
//!   to held ones;
//! - a version number is never used twice;
//! - a push that was cancelled never serves, and neither does one that began before a rollback, a swap or a freeze.
//!
//! ```
//! use kith_types::{NodeId, StoreVersion};
//! use kith_versions::{Command, Context, Holders, Policy, PushId, Trust, StoreState, UnixMillis};
//!
//! let holders = Holders { groups: vec![vec![NodeId(0), NodeId(1)]], drained: vec![] };
//! let context = Context { now: UnixMillis(1_000), who: "ada", standing: Trust::Claimed, holders: &holders, rebalance: None };
//! let push = PushId::from("p1");
//! let mut state = StoreState::new(Policy::default(), StoreVersion(0));
//! let begin = Command::Begin { push: push.clone(), coordinator: "router 0".into(), version: None, missing_max: 0 };
//! for command in [
//!     begin,
//!     Command::Offer { push: push.clone(), records: 10, bytes: 100, force: false },
//!     Command::Ready { push: push.clone(), node: NodeId(0) },
//!     Command::Ready { push: push.clone(), node: NodeId(1) },
//!     Command::Flip { push },
//! ] {
//!     state = state.apply(&command, &context).unwrap().state;
//! }
//! assert_eq!(state.current().unwrap().version, StoreVersion(1_000));
//! ```

mod apply;
mod cancel;
mod command;
mod fence;
mod guards;
mod history;
mod holders;
mod push;
mod refusal;
mod repair;
mod retain;
mod serve;
mod store;
mod supply;

pub use command::{Command, Context, Effect, Rebalance, Transition, Trust};
pub use fence::{Fence, Followed};
pub use history::{Action, HistoryEntry, Outcome};
pub use holders::Holders;
pub use push::version_last_of_dropped;
pub use refusal::Refusal;
pub use repair::{BRIEF, Donors, Origin, origins};
pub use store::{
    CANCELLED_MAX, Cancelled, Frozen, Guards, HISTORY_MAX, Policy, PushId, Running, StoreState, UnixMillis,
    VersionEntry, VersionState,
};
pub use supply::{Pull, Supply};
