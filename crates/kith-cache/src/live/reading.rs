//! One read of a partition, from its beginning to its answer.

use super::follow::{Search, Shows};
use super::partition::{Filled, PartitionCache};
use super::query::{Answered, Memory, Need, Query, Reply};
use kith_live::RowQuery;
use kith_types::{LogPoint, Timestamp};

/// The most attempts of a read whose rows keep changing while it reads them.
const ATTEMPTS_MAX: u32 = 16;

/// A read under way.
#[derive(Clone, Debug)]
pub struct Reading {
    query: Query,
    /// The place that the caller's ticket names; the start of the log without one.
    ticket: LogPoint,
    /// For a critical read, where the log ended after it had arrived.
    verified: Option<LogPoint>,
    filled: Vec<Filled>,
    attempts: u32,
}

/// What a read does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It ends with this answer.
    Answer(Answered),
    /// It waits until the cache has reached this place of its log, and asks again.
    CatchUp(LogPoint),
    /// It asks the database whether the log contains this place, tells [`PartitionCache::found`] if it does, and asks again. If
    /// it does not, the read fails.
    Find(Search),
    /// It waits until the cache has been proven to be fresh, and asks again.
    Freshen,
    /// It reads these rows, passes them to [`Reading::filled`], and asks again.
    Fetch(Vec<RowQuery>),
    /// It ends without an answer: changes come in faster than they are read.
    GiveUp,
}

impl Reading {
    /// A read that must show the place `ticket`. For a critical one, `verified` is where the log ended when the database was asked
    /// after the read had arrived.
    pub fn new(query: Query, ticket: LogPoint, verified: Option<LogPoint>) -> Self {
        Self { query, ticket, verified, filled: Vec::new(), attempts: 0 }
    }

    /// Asks the cache, and says what to do. An answer is given only by a cache whose log contains the place of the ticket at that
    /// moment: a cache may jump to another history while rows are read.
    pub fn next<W>(&mut self, cache: &mut PartitionCache<'_, W>, now: Timestamp) -> Step {
        let after = self.ticket.max(self.verified.unwrap_or_default());
        if cache.applied() < after {
            return Step::CatchUp(after);
        }
        if let Shows::Unknown(search) = cache.shows(self.ticket, cache.applied()) {
            return Step::Find(search);
        }
        self.attempts += 1;
        if ATTEMPTS_MAX < self.attempts {
            return Step::GiveUp;
        }
        let memory = if self.verified.is_some() { Memory::Verified } else { Memory::IfFresh };
        match cache.ask(&self.query, Need { after, memory, filled: &self.filled }, now) {
            // Rows may have been read from a later history than the cache has applied.
            Reply::Answer(answered) => match cache.shows(self.ticket, answered.until) {
                Shows::Yes => Step::Answer(answered),
                Shows::Unknown(search) => Step::Find(search),
                Shows::OtherTerm => Step::CatchUp(answered.until),
            },
            Reply::Wait => Step::CatchUp(after),
            Reply::NotFresh => Step::Freshen,
            Reply::Missing(rows) => Step::Fetch(rows),
        }
    }

    /// Rows that were read for it.
    pub fn filled(&mut self, rows: Vec<Filled>) {
        self.filled.extend(rows);
    }
}
