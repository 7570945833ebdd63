//! What a cache is asked, and how it replies.

use super::partition::Filled;
use kith_live::{Association, ListKey, ListPlace, Object, RowQuery};
use kith_types::LogPoint;

/// A read of one partition (TAO §3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Query {
    /// Objects by id. Answered by [`Answer::Objects`].
    Objects(Vec<u64>),
    /// The associations of a list to any of `ids` with `low <= time <= high`, in the order of the list. Answered by
    /// [`Answer::Associations`].
    Get { list: ListKey, ids: Vec<u64>, high: u64, low: u64 },
    /// The length of a list. Answered by [`Answer::Count`].
    Count(ListKey),
    /// At most `limit` associations of a list, newest first. Answered by [`Answer::Associations`].
    Range { list: ListKey, start: Start, limit: u32 },
    /// The same of those with `low <= time <= high`.
    TimeRange { list: ListKey, high: u64, low: u64, limit: u32 },
}

/// Where in a list a range begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the association with this index, from 0.
    Index(u32),
    /// After this place, whether or not an association is there.
    After(ListPlace),
}

/// What a cache answers to a [`Query`].
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// One per id, in their order; `None` if there is no such object.
    Objects(Vec<Option<Object>>),
    /// In the order of the list.
    Associations(Vec<Association>),
    /// The length of a list.
    Count(u64),
}

/// An answer, and the state of the partition that it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// Everything in it is at least as new as this place.
    pub from: LogPoint,
    /// Nothing in it is newer than this place. If both are equal, the answer is the state at that place. They differ only if
    /// objects, or associations of a [`Query::Get`], come from entries that were read at different places.
    pub until: LogPoint,
}

/// How an answer may come about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Need<'a> {
    /// The place that every part of the answer must have reached: that of the ticket, or of a verification.
    pub after: LogPoint,
    /// Whether entries in memory may be used.
    pub memory: Memory,
    /// What was read for this query. It is used in any case, if it is current and has reached `after`.
    pub filled: &'a [Filled],
}

/// Whether a query may be answered with what is in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// If a proof of freshness holds.
    #[default]
    IfFresh,
    /// Yes: `after` is the end of the log, read from the primary database after the query arrived ([`super::Verifier`]).
    Verified,
    /// No: everything is to be read from the database.
    Bypass,
}

/// What the one who asks must do.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Return it.
    Answer(Answered),
    /// Read these rows, each behind [`super::PartitionCache::begin`], and ask again with what was filled. All may be read from
    /// one snapshot.
    Missing(Vec<RowQuery>),
    /// The cache has not applied `after` yet: ask again when it has, and after a while ask the leader.
    Wait,
    /// No proof of freshness holds: ask the leader, or read the database with [`Memory::Bypass`].
    NotFresh,
}

/// Whether a cache can answer a query from memory at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The cache is fresh, and has applied the place that the query requires.
    Now,
    /// The cache is fresh, but has not applied that place yet.
    Wait,
    /// No proof of freshness holds: ask the leader.
    NotFresh,
}
