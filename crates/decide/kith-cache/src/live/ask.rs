//! Answers queries from memory, including queries that were never asked before (TAO §4.2), and says which rows must be
//! read for the others.

use super::entry::{Entry, Value};
use super::guards::Guard;
use super::key::{FillKey, Key};
use super::partition::{FilledRows, Partition, PartitionCache};
use super::query::{CacheReply, DatedAnswer, Memory, Need, Query, Readiness, RowsAnswer};
use super::store::Store;
use kith_live::{ListKey, RowQuery};
use kith_types::{LogPoint, PartitionId, Timestamp};
use std::sync::Arc;

/// An answer, or the rows that are needed for it.
pub(super) type AskResult = Result<DatedAnswer, Vec<RowQuery>>;

impl<W> PartitionCache<'_, W> {
    /// Answers a query, or says what the caller must do.
    pub fn ask(&mut self, query: &Query, need: Need<'_>, now: Timestamp) -> CacheReply {
        let readiness = self.readiness(need.after, now);
        let memory = match need.memory {
            Memory::IfFresh if readiness == Readiness::NotFresh => Memory::Bypass,
            other => other,
        };
        let mut reader = Reader {
            id: self.id,
            partition: self.partition,
            store: self.store,
            need: Need { memory, ..need },
        };
        let missing = match reader.find(query) {
            Ok(answered) => {
                self.store.counters.hits += 1;
                return CacheReply::Answer(answered);
            }
            Err(missing) => missing,
        };
        match (need.memory, readiness) {
            (Memory::Bypass, _) => self.store.counters.bypassed += 1,
            (Memory::IfFresh, Readiness::NotFresh) => return CacheReply::NotFresh,
            _ if self.lags(need.after) => return CacheReply::Wait,
            _ => self.store.counters.misses += 1,
        }
        CacheReply::Missing(missing)
    }

    /// Whether the cache can answer from memory a query that requires the place `after`.
    pub fn readiness(&self, after: LogPoint, now: Timestamp) -> Readiness {
        if !self.partition.freshness.is_fresh(now) {
            return Readiness::NotFresh;
        }
        if self.lags(after) { Readiness::Wait } else { Readiness::Now }
    }

    fn lags(&self, after: LogPoint) -> bool {
        self.partition.applied < after
    }
}

/// One query that is answered from the cache of a partition.
pub(super) struct Reader<'a, W> {
    id: PartitionId,
    partition: &'a Partition<W>,
    store: &'a mut Store,
    need: Need<'a>,
}

impl<W> Reader<'_, W> {
    /// Returns a place for answers that need no rows and therefore hold at every place.
    pub(super) fn anywhere(&self) -> LogPoint {
        self.partition.applied.max(self.need.after)
    }

    fn find(&mut self, query: &Query) -> AskResult {
        match query {
            Query::Objects(ids) => self.objects(ids),
            Query::Count(list) => match self.count(*list) {
                Some((count, at)) => {
                    Ok(DatedAnswer { answer: RowsAnswer::Count(count), from: at, until: at })
                }
                None => Err(vec![RowQuery::Count(*list)]),
            },
            Query::Get { list, ids, high, low } => self.get(*list, ids, (*low, *high)),
            Query::Range { list, start, limit } => self.range(*list, *start, *limit),
            Query::TimeRange { list, high, low, limit } => self.time_range(*list, (*low, *high), *limit),
            Query::Entries { index, key, after, limit } => self.entries(*index, key, *after, *limit),
        }
    }

    fn objects(&mut self, ids: &[u64]) -> AskResult {
        let (mut objects, mut missing, mut span) = (Vec::new(), Vec::new(), Span::default());
        for &id in ids {
            match self.look(FillKey::Entry(Key::Object(id))) {
                Some((entry, at)) => {
                    span.add(at);
                    objects.push(match &entry.value {
                        Value::Object(object) => object.clone(),
                        Value::Association(_) | Value::Count(_) | Value::List(_) | Value::Ids(_) => None,
                    });
                }
                None => missing.push(RowQuery::Object(id)),
            }
        }
        if missing.is_empty() {
            Ok(span.answered(RowsAnswer::Objects(objects), self.anywhere()))
        } else {
            Err(missing)
        }
    }

    /// Returns the length of a list if it was read as such, and the place at which it holds.
    pub(super) fn length(&mut self, list: ListKey) -> Option<(u64, LogPoint)> {
        let (entry, at) = self.look(FillKey::Entry(Key::Count(list)))?;
        if let Value::Count(length) = entry.value { Some((length, at)) } else { None }
    }

    /// As [`Self::length`], but also from a list that is known as a whole.
    fn count(&mut self, list: ListKey) -> Option<(u64, LogPoint)> {
        if let Some(found) = self.length(list) {
            return Some(found);
        }
        let (entry, at) = self.look(FillKey::Entry(Key::Prefix(list)))?;
        let prefix = entry.prefix().filter(|prefix| prefix.is_whole())?;
        Some((prefix.items().len() as u64, at))
    }

    /// Returns the value of a key, and the place at which it holds. Rows that were read for this query come first,
    /// because the entry in memory may be a shorter part of the same list.
    pub(super) fn look(&mut self, key: FillKey) -> Option<(Arc<Entry>, LogPoint)> {
        let applied = self.partition.applied;
        let wait = self.partition.guards.hold(Guard::WaitApplied);
        let reaches = |at: LogPoint| self.need.after <= at || !wait;
        let current = |entry: &Entry| reaches(entry.at.max(applied)) && self.partition.is_current(key, entry);
        let first = self.need.filled.partition_point(|filled| filled.key < key);
        let mut of_key = self.need.filled[first..].iter().take_while(|filled| filled.key == key);
        let read = of_key.find(|filled| current(&filled.entry));
        let is_shorter = |filled: &FilledRows| match key {
            FillKey::Entry(key) if self.need.memory != Memory::Bypass => {
                let kept = self.store.get((self.id, key), self.partition.epoch_of(key));
                kept.is_some_and(|kept| reaches(kept.at.max(applied)) && kept.knows_more_than(&filled.entry))
            }
            FillKey::Entry(_) | FillKey::Page(..) => false,
        };
        // A read that another query has begun may have fetched a shorter part of the list.
        if let Some(filled) = read.filter(|filled| !is_shorter(filled)) {
            return Some((Arc::clone(&filled.entry), filled.entry.at.max(applied)));
        }
        let FillKey::Entry(key) = key else { return None };
        if self.need.memory == Memory::Bypass {
            return None;
        }
        let entry = self.store.read((self.id, key), self.partition.epoch_of(key))?;
        let at = entry.at.max(applied);
        reaches(at).then_some((entry, at))
    }
}

/// The range of places at which the parts of an answer hold.
#[derive(Default)]
pub(super) struct Span(Option<(LogPoint, LogPoint)>);

impl Span {
    pub(super) fn add(&mut self, at: LogPoint) {
        let (from, until) = self.0.unwrap_or((at, at));
        self.0 = Some((from.min(at), until.max(at)));
    }

    /// Returns the answer. An answer without parts holds at `anywhere`.
    pub(super) fn answered(self, answer: RowsAnswer, anywhere: LogPoint) -> DatedAnswer {
        let (from, until) = self.0.unwrap_or((anywhere, anywhere));
        DatedAnswer { answer, from, until }
    }
}
