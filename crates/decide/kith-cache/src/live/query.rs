//! Queries of a cache, and its replies.

use super::partition::FilledRows;
use kith_live::{Association, IndexId, ListKey, ListPlace, Object, RowQuery};
use kith_types::LogPoint;
use std::sync::Arc;

/// A read of one partition (TAO §3.4).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named for what they hold")]
pub enum Query {
    /// Objects by id. The answer is [`RowsAnswer::Objects`].
    Objects(Vec<u64>),
    /// The associations of a list to any of `ids` with `low <= time <= high`, in the order of the list. The answer is
    /// [`RowsAnswer::Associations`].
    Get { list: ListKey, ids: Vec<u64>, high: u64, low: u64 },
    /// The length of a list. The answer is [`RowsAnswer::Count`].
    Count(ListKey),
    /// At most `limit` associations of a list, newest first. The answer is [`RowsAnswer::Associations`].
    Range { list: ListKey, start: Start, limit: u32 },
    /// As [`Query::Range`], but only associations with `low <= time <= high`.
    TimeRange { list: ListKey, high: u64, low: u64, limit: u32 },
    /// At most `limit` objects after `after` that an index has under a key. The answer is [`RowsAnswer::Ids`].
    Entries { index: IndexId, key: Arc<[u8]>, after: Option<u64>, limit: u32 },
}

/// The place in a list at which a range begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// At the association with this index, from 0.
    Index(u32),
    /// After this place, whether or not an association is there.
    After(ListPlace),
}

/// The answer to a [`Query`].
#[derive(Clone, Debug, PartialEq)]
pub enum RowsAnswer {
    /// One entry per id, in the order of the ids; `None` if the object does not exist.
    Objects(Vec<Option<Object>>),
    /// Associations in the order of the list.
    Associations(Vec<Association>),
    /// The length of a list.
    Count(u64),
    /// Ids of objects, ascending.
    Ids(Vec<u64>),
}

/// An answer, and the state of the partition that it reflects.
#[derive(Clone, Debug, PartialEq)]
pub struct DatedAnswer {
    /// The answer.
    pub answer: RowsAnswer,
    /// Every part of the answer is at least as new as this place.
    pub from: LogPoint,
    /// No part of the answer is newer than this place. If both places are equal, the answer is the state at that place.
    /// They differ only if objects, or associations of a [`Query::Get`], come from entries that were read at different
    /// places.
    pub until: LogPoint,
}

/// The requirements of a read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Need<'a> {
    /// The place that every part of the answer must have reached: that of the ticket, or of a verification.
    pub after: LogPoint,
    /// Whether entries in memory may be used.
    pub memory: Memory,
    /// Rows that were read for this query, sorted by key. They are used in any case if they are current and have reached `after`.
    pub filled: &'a [FilledRows],
}

/// Whether a query may be answered from memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Yes, if a proof of freshness holds.
    #[default]
    IfFresh,
    /// Yes, because `after` is the end of the log, read from the primary database after the query arrived
    /// ([`super::Verifier`]).
    Verified,
    /// No. Everything must be read from the database.
    Bypass,
}

/// The action that the caller must take.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheReply {
    /// Return the answer.
    Answer(DatedAnswer),
    /// Read these rows, each after [`super::PartitionCache::begin`], and ask again with the filled rows. All of them
    /// may be read from one snapshot.
    Missing(Vec<RowQuery>),
    /// The cache has not applied `after` yet. Ask again when it has; if this takes long, ask the leader.
    Wait,
    /// No proof of freshness holds. Ask the leader, or read the database with [`Memory::Bypass`].
    NotFresh,
}

/// Whether a cache can answer a query from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The cache is fresh, and has applied the required place.
    Now,
    /// The cache is fresh, but has not applied the required place yet.
    Wait,
    /// No proof of freshness holds. Ask the leader.
    NotFresh,
}
