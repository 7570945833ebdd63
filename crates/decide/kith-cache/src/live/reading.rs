//! One read of a partition, from its arrival to its answer.

use super::follow::{Search, TermCheck};
use super::partition::{FilledRows, PartitionCache};
use super::query::{CacheReply, DatedAnswer, Memory, Need, Query};
use kith_live::RowQuery;
use kith_types::{LogPoint, Timestamp};

/// The most attempts in a row after which no fewer rows are missing than before, because rows change while they are read.
/// A read of which fewer and fewer rows are missing goes on, however many it needs.
const ATTEMPTS_MAX: u32 = 16;

/// The most rows that are read at a time before anything is known about their sizes.
const ROWS_FIRST: usize = 128;

/// The most rows that are read at a time.
const ROWS_MAX: usize = 2_048;

/// The most bytes that the rows of one fetch have, if they are as long as those that were read before.
const FETCH_BYTES: u64 = 16 << 20;

/// A read under way.
#[derive(Clone, Debug)]
pub struct LiveRead {
    query: Query,
    /// The place in the caller's ticket; the start of the log if there is no ticket.
    ticket: LogPoint,
    /// For a critical read, the end of the log after the read arrived.
    verified: Option<LogPoint>,
    /// The rows that were read for this query, by key.
    filled: Vec<FilledRows>,
    /// The number of rows that were missing when the fewest were.
    least: usize,
    /// The attempts since the read made progress.
    attempts: u32,
}

/// The next step of a read.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveReadStep {
    /// Return this answer.
    Answer(DatedAnswer),
    /// Wait until the cache has reached this place of its log, then ask again.
    CatchUp(LogPoint),
    /// Ask the database whether the log contains this place. If it does, report it to [`PartitionCache::found`] and ask
    /// again. If it does not, the read fails.
    Find(Search),
    /// Wait until the cache is proven to be fresh, then ask again.
    Freshen,
    /// Read these rows, pass them to [`LiveRead::filled`], and ask again.
    Fetch(Vec<RowQuery>),
    /// End without an answer, because changes arrive faster than they are read.
    GiveUp,
}

impl LiveRead {
    /// Returns a read that must reflect the place `ticket`. For a critical read, `verified` is the end of the log,
    /// which was read from the database after the read arrived.
    pub fn new(query: Query, ticket: LogPoint, verified: Option<LogPoint>) -> Self {
        Self { query, ticket, verified, filled: Vec::new(), least: usize::MAX, attempts: 0 }
    }

    /// Asks the cache, and returns the next step. The answer comes only from a cache whose log contains the place of
    /// the ticket at that moment, because a cache may jump to another history while rows are read.
    pub fn next<W>(&mut self, cache: &mut PartitionCache<'_, W>, now: Timestamp) -> LiveReadStep {
        let after = self.ticket.max(self.verified.unwrap_or_default());
        if cache.applied() < after {
            return LiveReadStep::CatchUp(after);
        }
        if let TermCheck::Unknown(search) = cache.shows(self.ticket, cache.applied()) {
            return LiveReadStep::Find(search);
        }
        let memory = if self.verified.is_some() { Memory::Verified } else { Memory::IfFresh };
        let step = match cache.ask(&self.query, Need { after, memory, filled: &self.filled }, now) {
            // The rows may be from a later history than the one that the cache follows.
            CacheReply::Answer(answered) => match cache.shows(self.ticket, answered.until) {
                TermCheck::Yes => return LiveReadStep::Answer(answered),
                TermCheck::Unknown(search) => LiveReadStep::Find(search),
                TermCheck::OtherTerm => LiveReadStep::CatchUp(answered.until),
            },
            CacheReply::Wait => LiveReadStep::CatchUp(after),
            CacheReply::NotFresh => LiveReadStep::Freshen,
            CacheReply::Missing(mut rows) => {
                if rows.len() < self.least {
                    (self.least, self.attempts) = (rows.len(), 0);
                }
                rows.truncate(self.rows_max());
                LiveReadStep::Fetch(rows)
            }
        };
        match step {
            _ if ATTEMPTS_MAX <= self.attempts => LiveReadStep::GiveUp,
            // An attempt ends when its rows arrive.
            LiveReadStep::Fetch(_) => step,
            _ => {
                self.attempts += 1;
                step
            }
        }
    }

    /// Adds rows that were read for this query.
    pub fn filled(&mut self, mut rows: Vec<FilledRows>) {
        self.attempts += 1;
        // Of several rows with the same key, the newest comes first.
        rows.append(&mut self.filled);
        rows.sort_by_key(|filled| filled.key);
        self.filled = rows;
    }

    /// Returns the bytes of all rows that were read for this query.
    pub fn bytes(&self) -> u64 {
        self.filled.iter().map(|filled| filled.entry.weight()).sum()
    }

    /// Returns how many rows to read at a time, so that they take a bounded memory.
    fn rows_max(&self) -> usize {
        let Some(average) = self.bytes().checked_div(self.filled.len() as u64) else { return ROWS_FIRST };
        let fit = FETCH_BYTES / average.max(1);
        usize::try_from(fit).unwrap_or(ROWS_MAX).clamp(1, ROWS_MAX)
    }
}
