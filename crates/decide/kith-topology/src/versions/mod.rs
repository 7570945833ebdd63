//! The life-cycle of a store's versions, as a state machine (Voldemort §5.3 to §5.5). `kith_router::admin` runs it for pushes
//! and commands, and writes each new state back in one conditional write (`kith_cluster::metadata::records`). There is no clock,
//! no entropy, no I/O and no data here.
//!
//! ```text
//! Begin ─ Offer ─► Fetching ─ Ready (of the nodes) ─ Flip ─► Current ─ next flip, swap ─► Retained ─► dropped
//!                      └─ NodeFailed, Abort, Cancel ─► Failed    └─ Rollback ─► Blocked ───┘
//! ```
//!
//! [`StoreState::apply`] returns the transition that a [`Command`] causes, with the [effects](Effect) to carry out
//! after the write, or why it is [refused](Refusal).
//!
//! - `push`, `number`, `cancel`, `guards`: a push, its number, its end, and the checks that stop bad input.
//! - `serve`: which version is served (swap, rollback, hold, block).
//! - `retain`: which versions are dropped.
//! - `holders`, `supply`, `repair`: which nodes have to hold a version, and from where they fetch it.
//! - `fence`: which routers do not serve the new version yet.
//! - `history`, `refusal`: the audit record, and reasons with help.
//!
//! These hold after every command, and after a crash between any two:
//!
//! - at most one version is served, and once one is, exactly one;
//! - it is served only if every node that holds a part has prepared it, except nodes that the push may leave out and
//!   nodes of drained groups, which never hold all readable replicas of a partition;
//! - retained versions are prepared in the same sense, and at most `retain` are kept in addition to held ones;
//! - a version number is never used twice;
//! - a push never serves after it was cancelled, nor after a rollback, swap or freeze that it began before.
//!
//! To add a command, begin with a variant of [`Command`] and its arm in `apply`.

mod apply;
mod cancel;
mod command;
mod fence;
mod guards;
mod history;
mod holders;
mod number;
mod push;
mod refusal;
mod repair;
mod retain;
mod serve;
mod store;
mod supply;

pub use command::{Command, Context, Effect, Rebalance, Transition, Trust};
pub use fence::{Fence, RouterProgress};
pub use history::{Action, HistoryEntry, Outcome};
pub use holders::Holders;
pub use number::version_last_of_dropped;
pub use refusal::Refusal;
pub use repair::{BRIEF, Donors, Origin, origins};
pub use store::{
    CANCELLED_MAX, CancelledPush, FreezeRecord, Guards, HISTORY_MAX, Policy, PushId, RunningPush, StoreState,
    UnixMillis, VersionEntry, VersionState,
};
pub use supply::{Pull, Supply};
