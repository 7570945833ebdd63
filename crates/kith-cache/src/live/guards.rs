//! The rules that keep answers right. Tests and simulations switch off one at a time, and show that an answer is then wrong.

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
    /// After a jump the memory of changes begins at its target.
    MemoryBeginsAtJump,
    /// Entries and fills of a history that a database has lost do not count.
    LostHistory,
    /// A change of a later term that was sent unasked counts only if it follows what the cache has applied.
    SameLog,
    /// A reply proves freshness only if it answers a question of this follower.
    OwnNonce,
    /// A proof holds from the time at which the follower asked, by its own clock.
    OwnClock,
    /// A read is answered only once the place that it requires was applied.
    WaitApplied,
    /// A verification counts only for requests that arrived before it began.
    VerifyAfterArrival,
    /// Before a ticket of an earlier term is honoured, its place is looked for in the log.
    FindTickets,
    /// What was found in the log that the cache follows says nothing of rows that were read in another term.
    FindInOwnLog,
    /// What was found in the log before a jump may not be in the log that the cache follows since.
    FindAgainAfterJump,
}

/// Which rules hold: in production all of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guards {
    pub(crate) off: Option<Guard>,
}

impl Guards {
    pub(crate) fn hold(self, guard: Guard) -> bool {
        self.off != Some(guard)
    }
}
