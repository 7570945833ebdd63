//! The rows that decide writes: as they were read, and as earlier decisions of the same batch have changed them.

use crate::{
    Association, AssociationKey, IndexEntry, IndexId, ListKey, Object, Pair, RecordedOutcome, RowAnswer,
    RowQuery, RowWrite, UniqueHolder, WriteId,
};
use kith_types::{LogPoint, PartitionId};
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// A decision needs a row that was not read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("a row that the decision needs was not read")]
pub struct NotLoaded;

/// Rows of one partition, by the queries that ask for them.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    answers: BTreeMap<RowQuery, RowAnswer>,
    /// The objects that are known to have unique values. Any other unique value may be free.
    holders: BTreeMap<(IndexId, Arc<[u8]>), u64>,
}

impl Rows {
    /// Takes in rows. `answers` has one answer for each query, in the order of the queries.
    pub fn new(queries: Vec<RowQuery>, answers: Vec<RowAnswer>) -> Self {
        Self { answers: queries.into_iter().zip(answers).collect(), holders: BTreeMap::new() }
    }

    /// Notes which object has a unique value.
    pub fn hold(&mut self, holder: UniqueHolder) {
        self.holders.insert((holder.index, holder.key), holder.id);
    }

    /// Returns the other object that is known to have the unique value of an entry.
    pub(super) fn holder(&self, entry: &IndexEntry) -> Option<u64> {
        let holder = self.holders.get(&(entry.index, Arc::clone(&entry.key))).copied();
        holder.filter(|id| entry.unique && *id != entry.id)
    }

    pub(super) fn object(&self, id: u64) -> Result<Option<&Object>, NotLoaded> {
        match self.answers.get(&RowQuery::Object(id)) {
            Some(RowAnswer::Object(object)) => Ok(object.as_ref()),
            _ => Err(NotLoaded),
        }
    }

    pub(super) fn association(&self, key: AssociationKey) -> Result<Option<&Association>, NotLoaded> {
        match self.answers.get(&RowQuery::Association(key)) {
            Some(RowAnswer::Association(association)) => Ok(association.as_ref()),
            _ => Err(NotLoaded),
        }
    }

    pub(super) fn count(&self, list: ListKey) -> Result<u64, NotLoaded> {
        match self.answers.get(&RowQuery::Count(list)) {
            Some(RowAnswer::Count(count)) => Ok(*count),
            _ => Err(NotLoaded),
        }
    }

    pub(super) fn pair_stamp(&self, pair: Pair) -> Result<LogPoint, NotLoaded> {
        self.point(&RowQuery::PairStamp(pair))
    }

    pub(super) fn floor(&self, from: PartitionId) -> Result<LogPoint, NotLoaded> {
        self.point(&RowQuery::Floor(from))
    }

    pub(super) fn outcome(&self, id: &WriteId) -> Result<Option<&RecordedOutcome>, NotLoaded> {
        match self.answers.get(&RowQuery::Outcome(id.clone())) {
            Some(RowAnswer::Outcome(outcome)) => Ok(outcome.as_ref()),
            _ => Err(NotLoaded),
        }
    }

    fn point(&self, query: &RowQuery) -> Result<LogPoint, NotLoaded> {
        match self.answers.get(query) {
            Some(RowAnswer::Point(point)) => Ok(*point),
            _ => Err(NotLoaded),
        }
    }

    /// Takes in the rows that a change writes, so that later decisions see them.
    pub fn apply(&mut self, writes: &[RowWrite]) {
        for write in writes {
            self.apply_one(write);
        }
    }

    fn apply_one(&mut self, write: &RowWrite) {
        let (query, answer) = match write {
            RowWrite::PutObject(object) => {
                (RowQuery::Object(object.id), RowAnswer::Object(Some(object.clone())))
            }
            RowWrite::DeleteObject(id) => (RowQuery::Object(*id), RowAnswer::Object(None)),
            RowWrite::PutAssociation(list, association) => {
                let query = RowQuery::Association(list.to(association.id2));
                (query, RowAnswer::Association(Some(association.clone())))
            }
            RowWrite::DeleteAssociation(key) => (RowQuery::Association(*key), RowAnswer::Association(None)),
            RowWrite::SetCount(list, count) => (RowQuery::Count(*list), RowAnswer::Count(*count)),
            RowWrite::PutPairStamp(pair, stamp) => (RowQuery::PairStamp(*pair), RowAnswer::Point(*stamp)),
            RowWrite::SetFloor { from, before } => (RowQuery::Floor(*from), RowAnswer::Point(*before)),
            RowWrite::PutOutcome(id, outcome) => {
                (RowQuery::Outcome(id.clone()), RowAnswer::Outcome(Some(outcome.clone())))
            }
            RowWrite::PutEntry(entry) => {
                if entry.unique {
                    self.holders.insert((entry.index, Arc::clone(&entry.key)), entry.id);
                }
                return;
            }
            RowWrite::DeleteEntry(entry) => {
                self.holders.remove(&(entry.index, Arc::clone(&entry.key)));
                return;
            }
            // The floor that is set together with this row write refuses the deliveries that the dropped stamps would have
            // refused.
            RowWrite::DropPairStamps { .. } => return,
            // Leaders keep the open intents in memory.
            RowWrite::PutIntent(_) | RowWrite::DeleteIntent(_) => return,
        };
        self.answers.insert(query, answer);
    }
}
