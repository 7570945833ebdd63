//! The rows of one partition in memory.

use crate::{
    Association, AssociationKey, IndexEntry, Intent, ListKey, Object, Pair, RecordedOutcome, RowAnswer,
    RowQuery, RowWrite, UniqueHolder, WriteId,
};
use kith_types::{LogPoint, PartitionCount, PartitionId};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the objects that have unique values which these parts of a transaction give to other objects. `graph` are the rows
/// of all partitions.
pub fn taken<'a>(graph: impl Iterator<Item = &'a Tables>, parts: &[crate::BatchPart]) -> Vec<UniqueHolder> {
    let rows = || parts.iter().flat_map(|part| &part.changes).flat_map(|change| &change.rows);
    if !rows().any(|row| matches!(row, RowWrite::PutEntry(entry) if entry.unique)) {
        return Vec::new();
    }
    let unique = graph.flat_map(|tables| &tables.entries).filter(|entry| entry.unique);
    let mut holders: BTreeMap<_, u64> =
        unique.map(|entry| ((entry.index, entry.key.clone()), entry.id)).collect();
    let mut taken = Vec::new();
    for row in rows() {
        match row {
            RowWrite::DeleteEntry(entry) => drop(holders.remove(&(entry.index, entry.key.clone()))),
            RowWrite::PutEntry(entry) if entry.unique => {
                let (index, key) = (entry.index, entry.key.clone());
                match holders.insert((index, key.clone()), entry.id) {
                    Some(id) if id != entry.id => taken.push(UniqueHolder { index, key, id }),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    taken
}

/// All rows of one partition, as a database stores them.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "RowWrite describes these rows")]
pub struct Tables {
    pub objects: BTreeMap<u64, Object>,
    pub associations: BTreeMap<AssociationKey, Association>,
    pub counts: BTreeMap<ListKey, u64>,
    pub intents: BTreeMap<LogPoint, Intent>,
    pub stamps: BTreeMap<Pair, LogPoint>,
    pub floors: BTreeMap<PartitionId, LogPoint>,
    pub outcomes: BTreeMap<WriteId, RecordedOutcome>,
    pub entries: BTreeSet<IndexEntry>,
}

impl Tables {
    /// Writes one row. `count` is the number of partitions of the graph.
    pub fn write(&mut self, row: &RowWrite, count: PartitionCount) {
        match row.clone() {
            RowWrite::PutObject(object) => drop(self.objects.insert(object.id, object)),
            RowWrite::DeleteObject(id) => drop(self.objects.remove(&id)),
            RowWrite::PutAssociation(list, it) => drop(self.associations.insert(list.to(it.id2), it)),
            RowWrite::DeleteAssociation(key) => drop(self.associations.remove(&key)),
            RowWrite::SetCount(list, 0) => drop(self.counts.remove(&list)),
            RowWrite::SetCount(list, length) => drop(self.counts.insert(list, length)),
            RowWrite::PutIntent(intent) => drop(self.intents.insert(intent.stamp, intent)),
            RowWrite::DeleteIntent(stamp) => drop(self.intents.remove(&stamp)),
            RowWrite::PutPairStamp(pair, stamp) => drop(self.stamps.insert(pair, stamp)),
            RowWrite::DropPairStamps { from, before } => {
                self.stamps.retain(|pair, stamp| pair.partitions(count).0 != from || before <= *stamp);
            }
            RowWrite::SetFloor { from, before } => drop(self.floors.insert(from, before)),
            RowWrite::PutOutcome(id, outcome) => drop(self.outcomes.insert(id, outcome)),
            RowWrite::PutEntry(entry) => drop(self.entries.insert(entry)),
            RowWrite::DeleteEntry(entry) => drop(self.entries.remove(&entry)),
        }
    }

    /// Returns the answer of a database to a query.
    pub fn answer(&self, query: &RowQuery) -> RowAnswer {
        match query {
            RowQuery::Object(id) => RowAnswer::Object(self.objects.get(id).cloned()),
            RowQuery::Association(key) => RowAnswer::Association(self.associations.get(key).cloned()),
            RowQuery::Count(list) => RowAnswer::Count(self.counts.get(list).copied().unwrap_or_default()),
            RowQuery::List { list, after, skip, limit } => {
                let mut found = self.list(*list);
                found.retain(|it| after.is_none_or(|after| after < it.place()));
                let part = found.into_iter().skip(*skip as usize).take(*limit as usize);
                RowAnswer::List(part.collect())
            }
            RowQuery::Intents => RowAnswer::Intents(self.intents.values().cloned().collect()),
            RowQuery::PairStamp(pair) => RowAnswer::Point(self.stamps.get(pair).copied().unwrap_or_default()),
            RowQuery::Floor(from) => RowAnswer::Point(self.floors.get(from).copied().unwrap_or_default()),
            RowQuery::Outcome(id) => RowAnswer::Outcome(self.outcomes.get(id).cloned()),
            RowQuery::Entries { index, key, after, limit } => {
                let is_asked = |entry: &&IndexEntry| {
                    entry.index == *index && entry.key == *key && after.is_none_or(|after| after < entry.id)
                };
                let ids = self.entries.iter().filter(is_asked).map(|entry| entry.id);
                RowAnswer::Ids(ids.take(*limit as usize).collect())
            }
            RowQuery::ObjectCount(kinds) => {
                let is_asked = |object: &&Object| kinds.is_empty() || kinds.contains(&object.kind);
                RowAnswer::Count(self.objects.values().filter(is_asked).count() as u64)
            }
            RowQuery::AssociationCount { kinds, ascending: false } => {
                let of_kinds = self.counts.iter().filter(|(list, _)| kinds.contains(&list.kind));
                RowAnswer::Count(of_kinds.map(|(_, length)| *length).sum())
            }
            RowQuery::AssociationCount { kinds, ascending: true } => {
                let is_asked =
                    |key: &&AssociationKey| kinds.contains(&key.list.kind) && key.list.id1 <= key.id2;
                RowAnswer::Count(self.associations.keys().filter(is_asked).count() as u64)
            }
        }
    }

    /// Returns a whole association list, in the order of lists.
    pub fn list(&self, list: ListKey) -> Vec<Association> {
        let of_list = self.associations.range(list.to(0)..=list.to(u64::MAX));
        let mut found: Vec<Association> = of_list.map(|(_, association)| association.clone()).collect();
        found.sort_by_key(Association::place);
        found
    }

    /// Returns the lists whose stored length is wrong.
    pub fn wrong_counts(&self) -> Vec<ListKey> {
        let mut lengths: BTreeMap<ListKey, u64> = BTreeMap::new();
        for key in self.associations.keys() {
            *lengths.entry(key.list).or_default() += 1;
        }
        let lists = lengths.keys().chain(self.counts.keys());
        let mut wrong: Vec<ListKey> =
            lists.filter(|list| lengths.get(list) != self.counts.get(list)).copied().collect();
        wrong.dedup();
        wrong
    }
}
