//! A simple and slow database in memory, with which the others are compared. It remembers every point that a log has
//! had, and copies its whole state for each transaction.

use futures::{FutureExt, future::BoxFuture};
use kith_database::{
    AssociationPage, BeginTerm, CommitError, Database, DatabaseError, GraphIdentity, LogEntry, LogError,
    LogPart, ObjectPage, PartitionQueries, Trim, TrimResult,
};
use kith_live::{
    Association, AssociationKey, Batch, IndexId, Intent, ListKey, Object, Pair, RecordedOutcome, RowAnswer,
    RowQuery, RowWrite, RowsAt, UniqueHolder, WriteId,
};
use kith_types::{LogPoint, PartitionId, Position};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The key of a value in an index.
type Value = (IndexId, Arc<[u8]>);

pub struct Twin {
    identity: GraphIdentity,
    parts: Mutex<Vec<Part>>,
    /// The objects that have unique values. It is locked after the parts.
    holders: Mutex<BTreeMap<Value, u64>>,
}

#[derive(Clone)]
struct Part {
    end: LogPoint,
    leader: u64,
    /// Every end that the log has had.
    points: BTreeSet<LogPoint>,
    changes: Vec<LogEntry>,
    objects: BTreeMap<u64, Object>,
    associations: BTreeMap<AssociationKey, Association>,
    counts: BTreeMap<ListKey, u64>,
    intents: BTreeMap<LogPoint, Intent>,
    stamps: BTreeMap<Pair, LogPoint>,
    floors: BTreeMap<PartitionId, LogPoint>,
    outcomes: BTreeMap<WriteId, RecordedOutcome>,
    entries: BTreeSet<(Value, u64)>,
}

impl Part {
    fn new() -> Self {
        Self {
            end: LogPoint::default(),
            leader: 0,
            points: BTreeSet::from([LogPoint::default()]),
            changes: Vec::new(),
            objects: BTreeMap::new(),
            associations: BTreeMap::new(),
            counts: BTreeMap::new(),
            intents: BTreeMap::new(),
            stamps: BTreeMap::new(),
            floors: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            entries: BTreeSet::new(),
        }
    }

    fn write(&mut self, row: RowWrite, identity: GraphIdentity) {
        match row {
            RowWrite::PutObject(object) => drop(self.objects.insert(object.id, object)),
            RowWrite::DeleteObject(id) => drop(self.objects.remove(&id)),
            RowWrite::PutAssociation(list, it) => drop(self.associations.insert(list.to(it.id2), it)),
            RowWrite::DeleteAssociation(key) => drop(self.associations.remove(&key)),
            RowWrite::SetCount(list, 0) => drop(self.counts.remove(&list)),
            RowWrite::SetCount(list, length) => drop(self.counts.insert(list, length)),
            RowWrite::PutIntent(intent) => drop(self.intents.insert(intent.stamp, intent)),
            RowWrite::DeleteIntent(stamp) => drop(self.intents.remove(&stamp)),
            RowWrite::PutPairStamp(pair, stamp) => drop(self.stamps.insert(pair, stamp)),
            RowWrite::DropPairStamps { from, before } => self
                .stamps
                .retain(|pair, stamp| pair.partitions(identity.partitions).0 != from || before <= *stamp),
            RowWrite::SetFloor { from, before } => drop(self.floors.insert(from, before)),
            RowWrite::PutOutcome(id, outcome) => drop(self.outcomes.insert(id, outcome)),
            RowWrite::PutEntry(it) => drop(self.entries.insert(((it.index, it.key), it.id))),
            RowWrite::DeleteEntry(it) => drop(self.entries.remove(&((it.index, it.key), it.id))),
        }
    }

    fn answer(&self, query: RowQuery) -> RowAnswer {
        match query {
            RowQuery::Object(id) => RowAnswer::Object(self.objects.get(&id).cloned()),
            RowQuery::Association(key) => RowAnswer::Association(self.associations.get(&key).cloned()),
            RowQuery::Count(list) => RowAnswer::Count(self.counts.get(&list).copied().unwrap_or(0)),
            RowQuery::List { list, after, skip, limit } => {
                let of_list = self.associations.iter().filter(|(key, _)| key.list == list);
                let mut found: Vec<Association> = of_list.map(|(_, it)| it.clone()).collect();
                found.sort_by_key(Association::place);
                found.retain(|it| after.is_none_or(|after| after < it.place()));
                RowAnswer::List(found.into_iter().skip(skip as usize).take(limit as usize).collect())
            }
            RowQuery::Intents => RowAnswer::Intents(self.intents.values().cloned().collect()),
            RowQuery::PairStamp(pair) => {
                RowAnswer::Point(self.stamps.get(&pair).copied().unwrap_or_default())
            }
            RowQuery::Floor(from) => RowAnswer::Point(self.floors.get(&from).copied().unwrap_or_default()),
            RowQuery::Outcome(id) => RowAnswer::Outcome(self.outcomes.get(&id).cloned()),
            RowQuery::Entries { index, key, after, limit } => {
                let value = (index, key);
                let of_value = self.entries.iter().filter(|(it, _)| *it == value).map(|(_, id)| *id);
                let ids = of_value.filter(|id| after.is_none_or(|after| after < *id));
                RowAnswer::Ids(ids.take(limit as usize).collect())
            }
            RowQuery::ObjectCount(kinds) => {
                let all = self.objects.values();
                let counted = all.filter(|object| kinds.is_empty() || kinds.contains(&object.kind));
                RowAnswer::Count(counted.count() as u64)
            }
            RowQuery::AssociationCount { kinds, ascending: false } => {
                let counted = self.counts.iter().filter(|(list, _)| kinds.contains(&list.kind));
                RowAnswer::Count(counted.map(|(_, length)| *length).sum())
            }
            RowQuery::AssociationCount { kinds, ascending: true } => {
                let all = self.associations.keys().filter(|key| kinds.contains(&key.list.kind));
                RowAnswer::Count(all.filter(|key| key.list.id1 <= key.id2).count() as u64)
            }
        }
    }
}

impl Twin {
    pub fn new(identity: GraphIdentity) -> Self {
        let parts = identity.partitions.iter().map(|_| Part::new()).collect();
        Self { identity, parts: Mutex::new(parts), holders: Mutex::default() }
    }

    fn part(&self, partition: PartitionId) -> Result<Part, DatabaseError> {
        let part = self.parts.lock().get(partition.index()).cloned();
        part.ok_or_else(|| DatabaseError::Invalid { detail: String::new() })
    }

    fn try_commit(&self, batch: Batch) -> Result<(), CommitError> {
        let mut parts = self.parts.lock();
        let mut after = parts.clone();
        let mut seen = BTreeSet::new();
        let mut given = batch.parts;
        given.sort_by_key(|part| part.partition);
        for part in &given {
            let is_one = part.partition.index() < parts.len();
            if !is_one || !seen.insert(part.partition) || part.expected.term.0 == 0 {
                return Err(DatabaseError::Invalid { detail: String::new() }.into());
            }
        }
        let values = given.iter().flat_map(|part| &part.changes).flat_map(|logged| &logged.rows);
        let values = self.try_take(values)?;
        for part in given {
            let state = &mut after[part.partition.index()];
            let (partition, found) = (part.partition, state.end);
            if found.term != part.expected.term {
                return Err(CommitError::Fenced { partition, found });
            }
            if found != part.expected {
                return Err(CommitError::Moved { partition, found });
            }
            for logged in part.changes {
                state.end.position = state.end.position.next();
                state.points.insert(state.end);
                state.changes.push(LogEntry { at: state.end, written_ms: 0, change: logged.change });
                logged.rows.into_iter().for_each(|row| state.write(row, self.identity));
            }
        }
        for (partition, point) in batch.requires {
            let part = after.get(partition.index());
            let part = part.ok_or_else(|| DatabaseError::Invalid { detail: String::new() })?;
            if !part.points.contains(&point) {
                return Err(CommitError::Lacks { partition, point, end: part.end });
            }
        }
        *self.holders.lock() = values?;
        *parts = after;
        Ok(())
    }

    /// Returns the objects that have unique values after these rows, or an inner error if some are taken.
    #[allow(
        clippy::type_complexity,
        reason = "the outer error comes before other errors, and the inner one after them"
    )]
    fn try_take<'a>(
        &self,
        rows: impl Iterator<Item = &'a RowWrite>,
    ) -> Result<Result<BTreeMap<Value, u64>, CommitError>, CommitError> {
        let mut all = self.holders.lock().clone();
        let (mut seen, mut holders) = (BTreeSet::new(), Vec::new());
        for row in rows {
            let (RowWrite::PutEntry(entry) | RowWrite::DeleteEntry(entry)) = row else { continue };
            if !entry.unique {
                continue;
            }
            let value = (entry.index, entry.key.clone());
            if !seen.insert(value.clone()) {
                return Err(DatabaseError::Invalid { detail: String::new() }.into());
            }
            let found = all.get(&value).copied();
            match (row, found) {
                (RowWrite::PutEntry(_), None) => drop(all.insert(value, entry.id)),
                (RowWrite::PutEntry(_), Some(id)) if id != entry.id => {
                    holders.push(UniqueHolder { index: value.0, key: value.1, id });
                }
                (RowWrite::DeleteEntry(_), Some(id)) if id == entry.id => drop(all.remove(&value)),
                _ => {}
            }
        }
        holders.sort();
        Ok(if holders.is_empty() { Ok(all) } else { Err(CommitError::Taken { holders }) })
    }

    fn try_begin(&self, request: BeginTerm) -> Result<LogPoint, CommitError> {
        self.part(request.partition)?;
        let part = &mut self.parts.lock()[request.partition.index()];
        if part.end.term < request.term {
            (part.end.term, part.leader) = (request.term, request.leader);
            part.points.insert(part.end);
        } else if part.end.term != request.term || part.leader != request.leader || request.term.0 == 0 {
            return Err(CommitError::Fenced { partition: request.partition, found: part.end });
        }
        Ok(part.end)
    }

    fn try_changes(
        &self,
        partition: PartitionId,
        after: LogPoint,
        bytes_max: usize,
    ) -> Result<LogPart, LogError> {
        let part = self.part(partition)?;
        let end = part.end;
        if !part.points.contains(&after) {
            return Err(LogError::HistoryLost { partition, point: after, end });
        }
        let first = part.changes.first().map_or(end.position.next(), |entry| entry.at.position);
        if after.position.next() < first {
            return Err(LogError::Trimmed { partition, after, first });
        }
        let (mut changes, mut bytes) = (Vec::new(), 0);
        for entry in part.changes.into_iter().filter(|entry| after.position < entry.at.position) {
            bytes += entry.change.to_bytes().len();
            if bytes_max < bytes && !changes.is_empty() {
                break;
            }
            changes.push(entry);
        }
        Ok(LogPart { changes, end })
    }

    /// Here, every change is old enough to be removed.
    fn try_trim(&self, partition: PartitionId, trim: Trim) -> Result<TrimResult, DatabaseError> {
        self.part(partition)?;
        let part = &mut self.parts.lock()[partition.index()];
        let before = (part.changes.len(), part.outcomes.len());
        if 0 < trim.changes_written_before_ms {
            part.changes.retain(|entry| trim.changes_before <= entry.at.position);
        }
        part.outcomes.retain(|_, outcome| trim.outcomes_before_ms <= outcome.at);
        Ok(TrimResult {
            changes: (before.0 - part.changes.len()) as u64,
            outcomes: (before.1 - part.outcomes.len()) as u64,
            more: false,
        })
    }
}

impl Database for Twin {
    fn identity(&self) -> GraphIdentity {
        self.identity
    }

    fn begin_term(&self, request: BeginTerm) -> BoxFuture<'_, Result<LogPoint, CommitError>> {
        async move { self.try_begin(request) }.boxed()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<(), CommitError>> {
        async move { self.try_commit(batch) }.boxed()
    }

    fn read_many(&self, parts: Vec<PartitionQueries>) -> BoxFuture<'_, Result<Vec<RowsAt>, DatabaseError>> {
        let read = |(partition, queries): PartitionQueries| {
            let part = self.part(partition)?;
            let answers = queries.into_iter().map(|query| part.answer(query)).collect();
            Ok(RowsAt { at: part.end, answers })
        };
        std::future::ready(parts.into_iter().map(read).collect()).boxed()
    }

    fn points(&self, partitions: Vec<PartitionId>) -> BoxFuture<'_, Result<Vec<LogPoint>, DatabaseError>> {
        async move { partitions.into_iter().map(|it| self.part(it).map(|part| part.end)).collect() }.boxed()
    }

    fn changes(
        &self,
        partition: PartitionId,
        after: LogPoint,
        bytes_max: usize,
    ) -> BoxFuture<'_, Result<LogPart, LogError>> {
        async move { self.try_changes(partition, after, bytes_max) }.boxed()
    }

    fn scan_objects(
        &self,
        partition: PartitionId,
        after: Option<u64>,
        limit: u32,
    ) -> BoxFuture<'_, Result<ObjectPage, DatabaseError>> {
        async move {
            let part = self.part(partition)?;
            let objects = part.objects.into_values().filter(|it| after.is_none_or(|after| after < it.id));
            Ok(ObjectPage { at: part.end, objects: objects.take(limit as usize).collect() })
        }
        .boxed()
    }

    fn scan_associations(
        &self,
        partition: PartitionId,
        after: Option<AssociationKey>,
        limit: u32,
    ) -> BoxFuture<'_, Result<AssociationPage, DatabaseError>> {
        async move {
            let part = self.part(partition)?;
            let all = part.associations.into_iter();
            let rest = all.filter(|(key, _)| after.is_none_or(|after| after < *key));
            let associations = rest.map(|(key, it)| (key.list, it)).take(limit as usize).collect();
            Ok(AssociationPage { at: part.end, associations })
        }
        .boxed()
    }

    fn trim(&self, partition: PartitionId, trim: Trim) -> BoxFuture<'_, Result<TrimResult, DatabaseError>> {
        async move { self.try_trim(partition, trim) }.boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.parts.lock().clear();
        async {}.boxed()
    }
}

/// Returns a trim of everything before this position.
pub fn trim_before(position: u64) -> Trim {
    Trim { changes_before: Position(position), changes_written_before_ms: u64::MAX, outcomes_before_ms: 0 }
}
