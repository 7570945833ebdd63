//! The rules that keep answers correct. Tests and simulations switch off one rule at a time, and show that an answer is
//! then wrong.

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Guard {
    /// An entry ignores changes up to the place at which it was read.
    IgnoreOlderChanges,
    /// A fill is refused if its key has changed since.
    RefuseChanged,
    /// A fill is refused if it was read before the memory of changes begins.
    RefuseBeforeMemory,
    /// After a jump, the memory of changes begins at the target of the jump.
    MemoryBeginsAtJump,
    /// Entries and fills from a history that a database has lost are ignored.
    LostHistory,
    /// An unasked change of a later term is applied only if it follows the place that the cache has applied.
    SameLog,
    /// A reply proves freshness only if it answers a question of this follower.
    OwnNonce,
    /// A proof holds from the time at which the follower asked, by its own clock.
    OwnClock,
    /// A read is answered only once the place that it requires has been applied.
    WaitApplied,
    /// A verification counts only for requests that arrived before it began.
    VerifyAfterArrival,
    /// Before the cache honours a ticket of an earlier term, its place is looked up in the log.
    FindTickets,
    /// A place that was found in the followed log proves nothing about rows that were read in another term.
    FindInOwnLog,
    /// A place that was found in the log before a jump is looked up again after the jump.
    FindAgainAfterJump,
    /// A changed object leaves the entries of indexes that it was in.
    LeaveOldKeys,
    /// A change of an object whose keys are unknown empties the entries of indexes.
    ForgetIndexes,
    /// A fill of an index is refused if one of its objects has changed since.
    RefuseChangedObjects,
}

/// The rules that are in force; in production all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guards {
    pub(crate) off: Option<Guard>,
}

impl Guards {
    pub(crate) fn hold(self, guard: Guard) -> bool {
        self.off != Some(guard)
    }
}
