//! What goes into an execution and what comes out.

use crate::execution::{FailureClass, Outcome};
use crate::load::RequestEnd;
use kith_types::{Epoch, NodeId, Timestamp};
use std::sync::Arc;

/// One request of one execution; never reused within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Event {
    /// A request was answered in full; of one that was answered in part before, the rest of it.
    Reply { request: RequestId },
    /// The next keys of a request are answered, more of it is to come; only of answers that can be taken apart.
    ReplySoFar {
        request: RequestId,
        /// How many keys, in the order in which they were asked for, after those told of before: fewer than are left.
        keys: u32,
        /// Those of them without an answer, as indexes into the query's keys, and why.
        failed: Vec<(u32, FailureClass)>,
    },
    /// A request was answered but for some keys, as when one partition's files are damaged.
    ReplyInPart {
        request: RequestId,
        /// The keys without an answer, as indexes into the query's keys, and why.
        failed: Vec<(u32, FailureClass)>,
    },
    /// A request was not answered.
    Failed { request: RequestId, class: FailureClass },
    /// A node seems to be down: what it still owes is asked elsewhere at once, if another replica of it is up.
    NodeDown { node: NodeId },
    /// The time of `Execution::next_hedge` has come, and no reply that is here already is left to be told of.
    HedgeDue {
        /// What was sent before is late because this process stood still: `LoadMeter::caught_up`.
        caught_up: Timestamp,
    },
    /// The deadline has passed.
    Deadline,
    /// The answers so far settle the query; only for executions that may stop early.
    Satisfied,
    /// The caller is gone.
    Cancelled,
}

/// Whether an event had an effect, and of a reply: what of its answer counts.
#[must_use = "the answer of an ignored reply must not be merged: its keys are answered elsewhere"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It did; the answer that it told of counts, but for keys that it failed.
    Accepted,
    /// As that, but for these keys, ascending, which another request answered first. Only of answers that can be taken apart.
    AcceptedInPart {
        /// Indexes into the query's keys.
        late: Vec<u32>,
    },
    /// Keep the answer: it counts if [`Action::Use`] names its request, else not.
    Held,
    /// It came too late, or makes no sense: its answer must not be used.
    Ignored,
}

/// Why a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Cause {
    /// The plan says so.
    Plan,
    /// Its keys failed elsewhere.
    Retry,
    /// A request is late.
    Hedge { of: RequestId },
}

impl Cause {
    /// The name of every [`Cause::Hedge`].
    pub const HEDGE: &'static str = "hedge";

    /// The word for it in profiles.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Plan => "plan",
            Cause::Retry => "retry",
            Cause::Hedge { .. } => Self::HEDGE,
        }
    }
}

/// What the shell must do.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Action {
    /// Ask a node for some keys.
    Send {
        /// Names the request in later events.
        request: RequestId,
        /// Whom to ask.
        node: NodeId,
        /// Indexes into the query's keys, ascending.
        keys: Arc<[u32]>,
        cause: Cause,
    },
    /// Tell a node that an answer is no longer needed.
    Cancel {
        /// Which request.
        request: RequestId,
        /// What the load meter is to be told.
        end: RequestEnd,
    },
    /// The answer held for this request counts.
    Use {
        /// Which request.
        request: RequestId,
    },
    /// A node knows a newer table: fetch it, for later queries.
    Refresh {
        /// The epoch it knows.
        epoch: Epoch,
    },
    /// The execution is over; always the last action.
    Finish(Outcome),
}
