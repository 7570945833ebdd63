//! One read of a partition, from its arrival to its answer.

use super::follow::{Search, Shows};
use super::partition::{Filled, PartitionCache};
use super::query::{Answered, Memory, Need, Query, Reply};
use kith_live::RowQuery;
use kith_types::{LogPoint, Timestamp};

/// The most attempts of a read whose rows change while they are read.
const ATTEMPTS_MAX: u32 = 16;

/// A read under way.
#[derive(Clone, Debug)]
pub struct Reading {
    query: Query,
    /// The place in the caller's ticket; the start of the log if there is no ticket.
    ticket: LogPoint,
    /// For a critical read, the end of the log after the read arrived.
    verified: Option<LogPoint>,
    filled: Vec<Filled>,
    attempts: u32,
}

/// The next step of a read.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadingStep {
    /// Return this answer.
    Answer(Answered),
    /// Wait until the cache has reached this place of its log, then ask again.
    CatchUp(LogPoint),
    /// Ask the database whether the log contains this place. If it does, report it to [`PartitionCache::found`] and ask
    /// again. If it does not, the read fails.
    Find(Search),
    /// Wait until the cache is proven to be fresh, then ask again.
    Freshen,
    /// Read these rows, pass them to [`Reading::filled`], and ask again.
    Fetch(Vec<RowQuery>),
    /// End without an answer, because changes arrive faster than they are read.
    GiveUp,
}

impl Reading {
    /// Returns a read that must reflect the place `ticket`. For a critical read, `verified` is the end of the log,
    /// which was read from the database after the read arrived.
    pub fn new(query: Query, ticket: LogPoint, verified: Option<LogPoint>) -> Self {
        Self { query, ticket, verified, filled: Vec::new(), attempts: 0 }
    }

    /// Asks the cache, and returns the next step. The answer comes only from a cache whose log contains the place of
    /// the ticket at that moment, because a cache may jump to another history while rows are read.
    pub fn next<W>(&mut self, cache: &mut PartitionCache<'_, W>, now: Timestamp) -> ReadingStep {
        let after = self.ticket.max(self.verified.unwrap_or_default());
        if cache.applied() < after {
            return ReadingStep::CatchUp(after);
        }
        if let Shows::Unknown(search) = cache.shows(self.ticket, cache.applied()) {
            return ReadingStep::Find(search);
        }
        self.attempts += 1;
        if ATTEMPTS_MAX < self.attempts {
            return ReadingStep::GiveUp;
        }
        let memory = if self.verified.is_some() { Memory::Verified } else { Memory::IfFresh };
        match cache.ask(&self.query, Need { after, memory, filled: &self.filled }, now) {
            // The rows may be from a later history than the one that the cache follows.
            Reply::Answer(answered) => match cache.shows(self.ticket, answered.until) {
                Shows::Yes => ReadingStep::Answer(answered),
                Shows::Unknown(search) => ReadingStep::Find(search),
                Shows::OtherTerm => ReadingStep::CatchUp(answered.until),
            },
            Reply::Wait => ReadingStep::CatchUp(after),
            Reply::NotFresh => ReadingStep::Freshen,
            Reply::Missing(rows) => ReadingStep::Fetch(rows),
        }
    }

    /// Adds rows that were read for this query.
    pub fn filled(&mut self, rows: Vec<Filled>) {
        self.filled.extend(rows);
    }
}
