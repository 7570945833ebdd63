//! The inputs and outputs of an execution.

use crate::execution::{FailureClass, Outcome};
use crate::load::RequestEnd;
use kith_types::{Epoch, NodeId, Timestamp};
use std::sync::Arc;

/// Identifies one request of an execution. It is never reused within the execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u32);

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Event {
    /// A request was answered in full. If parts of it were answered before, the rest was answered.
    Reply { request: RequestId },
    /// The next keys of a request are answered, and more of the reply is to come. Only for answers that can be divided by
    /// key.
    ReplySoFar {
        request: RequestId,
        /// The number of keys, in the order in which they were asked for, after those reported before. It is less than the
        /// number of remaining keys.
        keys: u32,
        /// Those of these keys without an answer, as indexes into the query's keys, with the reason.
        failed: Vec<(u32, FailureClass)>,
    },
    /// A request was answered except for some keys, for example because the files of one partition are damaged.
    ReplyInPart {
        request: RequestId,
        /// The keys without an answer, as indexes into the query's keys, with the reason.
        failed: Vec<(u32, FailureClass)>,
    },
    /// A request was not answered.
    Failed { request: RequestId, class: FailureClass },
    /// A node seems to be down. The keys that it still owes are asked elsewhere at once, if they have another replica that
    /// is up.
    NodeDown { node: NodeId },
    /// The time of `Execution::next_hedge` has come, and every reply that has already arrived has been reported.
    HedgeDue {
        /// Requests sent before this time are late because this process was suspended: `LoadMeter::caught_up`.
        caught_up: Timestamp,
    },
    /// The deadline has passed.
    Deadline,
    /// The answers so far settle the query. Only for executions that may stop early.
    Satisfied,
    /// The caller has disconnected.
    Cancelled,
}

/// Whether an event had an effect and, for a reply, which part of its answer counts.
#[must_use = "the answer of an ignored reply must not be merged: its keys are answered elsewhere"]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The event had an effect. The answer that it reported counts, except for keys that it failed.
    Accepted,
    /// Like `Accepted`, except for these keys, ascending, which another request answered first. Only for answers that can be
    /// divided by key.
    AcceptedInPart {
        /// Indexes into the query's keys.
        late: Vec<u32>,
    },
    /// Keep the answer. It counts only if an [`Action::Use`] names its request.
    Held,
    /// The event came too late or is invalid. Its answer must not be used.
    Ignored,
}

/// The reason why a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Cause {
    /// The plan contains it.
    Plan,
    /// Its keys failed at another node.
    Retry,
    /// Another request is late.
    Hedge { of: RequestId },
}

impl Cause {
    /// The name of [`Cause::Hedge`], whichever request it is of.
    pub const HEDGE: &'static str = "hedge";

    /// Returns the name of the cause in profiles.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Plan => "plan",
            Cause::Retry => "retry",
            Cause::Hedge { .. } => Self::HEDGE,
        }
    }
}

/// The next action of the shell.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Action {
    /// Ask a node for some keys.
    Send {
        /// Identifies the request in later events.
        request: RequestId,
        /// The node to ask.
        node: NodeId,
        /// Indexes into the query's keys, ascending.
        keys: Arc<[u32]>,
        cause: Cause,
    },
    /// Tell a node that its answer is no longer needed.
    Cancel {
        /// The request to cancel.
        request: RequestId,
        /// The end of the request, for the load meter.
        end: RequestEnd,
    },
    /// The answer held for this request counts.
    Use {
        /// The request whose answer counts.
        request: RequestId,
    },
    /// A node knows a newer table. Fetch it, for later queries.
    Refresh {
        /// The epoch of that table.
        epoch: Epoch,
    },
    /// The execution is over. This is always the last action.
    Finish(Outcome),
}
