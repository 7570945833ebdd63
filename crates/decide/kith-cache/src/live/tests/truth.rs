//! A simple and slow twin: a log, and the whole state after each of its changes. Tests use it as their database.

use crate::live::guards::Guard;
use crate::live::query::{Query, RowsAnswer, Start};
use crate::live::{LiveCacheOptions, LiveCaches, PartitionCache};
use kith_live::{
    Association, Change, Data, Effect, GraphTypes, IndexId, ListKey, Object, RowAnswer, RowQuery, TypeId,
};
use kith_types::{LogPoint, PartitionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

pub(super) const P: PartitionId = PartitionId(3);

/// Opens a partition with one rule switched off.
pub(super) fn open<W>(caches: &mut LiveCaches<W>, at: LogPoint, off: Option<Guard>) {
    let cache = caches.open(P, at);
    cache.partition.guards.off = off;
    cache.partition.freshness.guards.off = off;
}

pub(super) fn cache<W>(caches: &mut LiveCaches<W>) -> PartitionCache<'_, W> {
    caches.partition(P).unwrap()
}

pub(super) fn options(bytes_max: u64) -> LiveCacheOptions {
    LiveCacheOptions { bytes_max, ..LiveCacheOptions::default() }
}

pub(super) fn list(id1: u64) -> ListKey {
    ListKey { id1, kind: TypeId(1) }
}

pub(super) fn point(term: u64, position: u64) -> LogPoint {
    LogPoint::new(term, position)
}

/// Types with indexes on two fields of one object type, whose number is 1. The second revision adds a type with an index.
static TYPES: LazyLock<[Arc<GraphTypes>; 2]> = LazyLock::new(|| {
    let field = "{ type = 'i64', nullable = true, index = true }";
    let text = format!("[object.a.fields]\nx = {field}\ny = {field}\n");
    let before = GraphTypes::new(1, &text.parse().unwrap()).unwrap();
    let text = format!("{text}[object.b.fields]\nz = {field}\n");
    let (after, _) = before.evolve(&text.parse().unwrap()).unwrap();
    [Arc::new(before), Arc::new(after)]
});

/// The types, of which a node may know those of the first revision only.
pub(super) fn types(revision: usize) -> Arc<GraphTypes> {
    Arc::clone(&TYPES[revision])
}

/// The key of an index that most objects have one of; indexes 1 and 2 are known to all, index 3 is new.
pub(super) fn index_key(index: u32, value: u64) -> (IndexId, Arc<[u8]>) {
    let (kind, field) = [("a", "x"), ("a", "y"), ("b", "z")][index as usize - 1];
    types(1).find_key(kind, field, &value.to_string()).unwrap()
}

/// The effect of one change in the test.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Object(u64),
    /// An object with these values in fields with an index.
    Indexed(u64, [u64; 2]),
    /// An object of a type that a node may not know.
    NewType(u64, u64),
    /// An object that is too large to be part of the change.
    LargeObject(u64),
    NoObject(u64),
    Put(ListKey, u64, u64),
    Remove(ListKey, u64),
    Nothing,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    objects: BTreeMap<u64, Object>,
    lists: BTreeMap<ListKey, Vec<Association>>,
    entries: BTreeSet<(IndexId, Arc<[u8]>, u64)>,
}

/// A database, its log, and every state that it has ever had.
#[derive(Debug)]
pub(super) struct Truth {
    /// The log. Index `i` has the change at position `i + 1`, and its place.
    pub(super) log: Vec<(LogPoint, Change)>,
    pub(super) end: LogPoint,
    /// The ends that the log has had and still contains.
    pub(super) points: Vec<LogPoint>,
    states: BTreeMap<LogPoint, State>,
}

impl Truth {
    pub(super) fn new() -> Self {
        let end = point(1, 0);
        Self { log: vec![], end, points: vec![end], states: BTreeMap::from([(end, State::default())]) }
    }

    /// Returns a database with one list, given in its order.
    pub(super) fn with_list(list: ListKey, items: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut truth = Self::new();
        let item = |(id2, time)| Association { id2, time, stamp: truth.end, data: Data::default() };
        let state = State { lists: BTreeMap::from([(list, items.map(item).collect())]), ..State::default() };
        truth.states.insert(truth.end, state);
        truth
    }

    pub(super) fn state(&self, at: LogPoint) -> &State {
        &self.states[&at]
    }

    /// Returns the states between two places, including lost ones.
    pub(super) fn between(&self, from: LogPoint, until: LogPoint) -> impl Iterator<Item = &State> {
        self.states.range(from..=until).map(|(_, state)| state)
    }

    pub(super) fn write(&mut self, op: Op) -> LogPoint {
        let end = point(self.end.term.0, self.end.position.0 + 1);
        let mut state = self.states[&self.end].clone();
        let change = Change { effects: state.change(op, end).into_iter().collect() };
        self.log.push((end, change));
        self.reach(end, state);
        end
    }

    /// Begins a term with a new leader.
    pub(super) fn begin_term(&mut self) -> LogPoint {
        let state = self.states[&self.end].clone();
        let term = self.states.keys().next_back().map_or(1, |point| point.term.0 + 1);
        let end = point(term, self.end.position.0);
        self.reach(end, state);
        end
    }

    /// Replaces the database by a copy of itself as of `position`, and begins a term with a new leader.
    pub(super) fn restore(&mut self, position: u64) {
        self.log.truncate(position as usize);
        self.points.retain(|point| point.position.0 <= position);
        self.end = *self.points.last().unwrap();
        self.begin_term();
    }

    /// Returns the change after a place of the log.
    pub(super) fn after(&self, applied: LogPoint) -> Option<&(LogPoint, Change)> {
        self.log.get(applied.position.0 as usize)
    }

    /// Whether the log contains a place.
    pub(super) fn contains(&self, at: LogPoint) -> bool {
        self.points.contains(&at)
    }

    pub(super) fn read(&self, at: LogPoint, query: &RowQuery) -> RowAnswer {
        self.state(at).rows(query)
    }

    fn reach(&mut self, end: LogPoint, state: State) {
        self.end = end;
        self.points.push(end);
        self.states.insert(end, state);
    }
}

impl State {
    fn list(&self, list: ListKey) -> &[Association] {
        self.lists.get(&list).map_or(&[], Vec::as_slice)
    }

    /// The effect of an object that is written or removed.
    fn object_change(&mut self, op: Op, stamp: LogPoint) -> Option<Effect> {
        let record = |kind, fields: String| (kind, types(1).encode(kind, Some(&fields)).unwrap());
        let (id, written) = match op {
            Op::Object(id) => (id, Some(record(TypeId(1), "{}".to_owned()))),
            Op::Indexed(id, [x, y]) => (id, Some(record(TypeId(1), format!("{{\"x\":{x},\"y\":{y}}}")))),
            Op::LargeObject(id) => {
                (id, Some(record(TypeId(1), format!("{{\"x\":{}}}", stamp.position.0 % 3))))
            }
            Op::NewType(id, z) => (id, Some(record(TypeId(2), format!("{{\"z\":{z}}}")))),
            Op::NoObject(id) => (id, None),
            Op::Put(..) | Op::Remove(..) | Op::Nothing => return None,
        };
        self.entries.retain(|(.., of)| *of != id);
        let Some((kind, data)) = written else {
            return self.objects.remove(&id).map(|_| Effect::NoObject(id));
        };
        let entries = types(1).entries(kind, id, &data).unwrap();
        self.entries.extend(entries.into_iter().map(|entry| (entry.index, entry.key, id)));
        let object = Object { id, kind, stamp, data };
        self.objects.insert(id, object.clone());
        Some(if matches!(op, Op::LargeObject(_)) { Effect::LargeObject(id) } else { Effect::Object(object) })
    }

    fn ids(&self, index: IndexId, key: &[u8], after: Option<u64>, limit: u32) -> Vec<u64> {
        let is_asked = |(of, under, id): &&(IndexId, Arc<[u8]>, u64)| {
            *of == index && **under == *key && after.is_none_or(|after| after < *id)
        };
        self.entries.iter().filter(is_asked).map(|(.., id)| *id).take(limit as usize).collect()
    }

    fn change(&mut self, op: Op, stamp: LogPoint) -> Option<Effect> {
        let data = |bytes: u64| Data { schema: 0, bytes: vec![7; bytes as usize].into() };
        match op {
            Op::Put(list, id2, time) => {
                let now = Association { id2, time, stamp, data: data(stamp.position.0 % 20) };
                let items = self.lists.entry(list).or_default();
                let was = take(items, id2);
                items.push(now.clone());
                items.sort_by_key(Association::place);
                Some(Effect::Association { list, now, was, count: items.len() as u64 })
            }
            Op::Remove(list, id2) => {
                let items = self.lists.entry(list).or_default();
                let was = take(items, id2)?;
                Some(Effect::NoAssociation { list, id2, was, count: items.len() as u64 })
            }
            _ => self.object_change(op, stamp),
        }
    }

    fn rows(&self, query: &RowQuery) -> RowAnswer {
        match query {
            RowQuery::Object(id) => RowAnswer::Object(self.objects.get(id).cloned()),
            RowQuery::Association(key) => {
                RowAnswer::Association(self.list(key.list).iter().find(|item| item.id2 == key.id2).cloned())
            }
            RowQuery::Count(list) => RowAnswer::Count(self.list(*list).len() as u64),
            RowQuery::List { list, after, skip, limit } => {
                let later =
                    self.list(*list).iter().filter(|item| after.is_none_or(|after| after < item.place()));
                RowAnswer::List(later.skip(*skip as usize).take(*limit as usize).cloned().collect())
            }
            RowQuery::Entries { index, key, after, limit } => {
                RowAnswer::Ids(self.ids(*index, key, *after, *limit))
            }
            other => panic!("caches do not ask for {other:?}"),
        }
    }

    pub(super) fn object(&self, id: u64) -> Option<&Object> {
        self.objects.get(&id)
    }

    pub(super) fn association(&self, list: ListKey, id2: u64) -> Option<&Association> {
        self.list(list).iter().find(|item| item.id2 == id2)
    }

    pub(super) fn answer(&self, query: &Query) -> RowsAnswer {
        let all = |list: &ListKey| self.list(*list).iter().cloned();
        let bounded = |low: u64, high: u64| move |item: &Association| (low..=high).contains(&item.time);
        match query {
            Query::Objects(ids) => {
                RowsAnswer::Objects(ids.iter().map(|id| self.objects.get(id).cloned()).collect())
            }
            Query::Count(list) => RowsAnswer::Count(self.list(*list).len() as u64),
            Query::Get { list, ids, high, low } => RowsAnswer::Associations(
                all(list).filter(bounded(*low, *high)).filter(|item| ids.contains(&item.id2)).collect(),
            ),
            Query::TimeRange { list, high, low, limit } => RowsAnswer::Associations(
                all(list).filter(bounded(*low, *high)).take(*limit as usize).collect(),
            ),
            Query::Range { list, start: Start::Index(index), limit } => {
                RowsAnswer::Associations(all(list).skip(*index as usize).take(*limit as usize).collect())
            }
            Query::Range { list, start: Start::After(position), limit } => RowsAnswer::Associations(
                all(list).filter(|item| *position < item.place()).take(*limit as usize).collect(),
            ),
            Query::Entries { index, key, after, limit } => {
                RowsAnswer::Ids(self.ids(*index, key, *after, *limit))
            }
        }
    }
}

fn take(items: &mut Vec<Association>, id2: u64) -> Option<u64> {
    let index = items.iter().position(|item| item.id2 == id2)?;
    Some(items.remove(index).time)
}

/// Whether each part of an answer is that of one of the states.
pub(super) fn parts_are_right(states: &[&State], query: &Query, answer: &RowsAnswer) -> bool {
    match (query, answer) {
        (Query::Objects(ids), RowsAnswer::Objects(objects)) => ids
            .iter()
            .zip(objects)
            .all(|(id, object)| states.iter().any(|state| state.object(*id) == object.as_ref())),
        (Query::Get { list, ids, high, low }, RowsAnswer::Associations(items)) => {
            let known =
                items.iter().all(|item| ids.contains(&item.id2)) && items.is_sorted_by_key(|it| it.place());
            known
                && ids.iter().all(|id2| {
                    let item = items.iter().find(|item| item.id2 == *id2);
                    let bounds = *low..=*high;
                    let of = |state: &State| {
                        state.association(*list, *id2).filter(|item| bounds.contains(&item.time)).cloned()
                    };
                    states.iter().any(|state| of(state).as_ref() == item)
                })
        }
        _ => false,
    }
}
