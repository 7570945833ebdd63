//! A simple twin: the rows of a partition, its log, and the results that queries must return.

use crate::dice::Dice;
use kith_cache::adjacency::{Build, BuildError, BuildNeed, Progress};
use kith_live::{Association, AssociationKey, Change, Effect, GraphTypes, Inverse, ListKey, Object, TypeId};
use kith_schema::{EdgeSelector, NeighbourSource, SourceError};
use kith_types::{Direction, LogPoint, PartitionCount, PartitionId, partition_of_id};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

pub const IDS: u64 = 14;

/// A symmetric type, two-sided types with adjacency in both directions and in one direction, a one-sided type, and a
/// type without adjacency.
pub const TYPES: &str = "
    [object.person]
    [association.friend]
    symmetric = true
    [association.follows]
    inverse = 'followed_by'
    [association.likes]
    inverse = 'liked_by'
    [association.liked_by]
    adjacency = false
    [association.seen]
    [association.hidden]
    adjacency = false
";

pub fn types(text: &str) -> GraphTypes {
    GraphTypes::new(7, &text.parse().unwrap()).unwrap()
}

pub fn kind(types: &GraphTypes, name: &str) -> TypeId {
    types.association(name).unwrap().0
}

pub fn edge(kind: &str, direction: Direction) -> EdgeSelector {
    EdgeSelector { kind: kind.to_owned(), direction, filter: None }
}

/// The contents of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    pub objects: BTreeSet<u64>,
    pub associations: BTreeSet<AssociationKey>,
}

impl Rows {
    fn has(&self, id1: u64, kinds: &[TypeId]) -> bool {
        self.associations.iter().any(|key| key.list.id1 == id1 && kinds.contains(&key.list.kind))
    }

    /// Changes the rows, and returns the effects.
    pub fn write(&mut self, key: AssociationKey, present: bool) -> Option<Effect> {
        let AssociationKey { list, id2 } = key;
        let was = self.associations.contains(&key).then_some(3);
        let now = Association { id2, time: 3, stamp: LogPoint::default(), data: Default::default() };
        match (present, was) {
            (true, was) => {
                self.associations.insert(key);
                Some(Effect::Association { list, now, was, count: 1 })
            }
            (false, Some(was)) => {
                self.associations.remove(&key);
                Some(Effect::NoAssociation { list, id2, was, count: 1 })
            }
            (false, None) => None,
        }
    }

    pub fn write_object(&mut self, id: u64, present: bool, large: bool) -> Effect {
        let (stamp, data) = (LogPoint::default(), Default::default());
        match (present, large) {
            (true, _) => _ = self.objects.insert(id),
            (false, _) => _ = self.objects.remove(&id),
        }
        match (present, large) {
            (true, true) => Effect::LargeObject(id),
            (true, false) => Effect::Object(Object { id, kind: TypeId(1), stamp, data }),
            (false, _) => Effect::NoObject(id),
        }
    }
}

/// The results of queries on a graph whose partitions have these rows.
pub struct Twin<'a> {
    pub types: &'a GraphTypes,
    pub count: PartitionCount,
    pub rows: Vec<&'a Rows>,
}

type Lists = Result<Vec<Option<Vec<u64>>>, SourceError>;

impl Twin<'_> {
    fn kinds(&self, edge: &EdgeSelector) -> Result<Vec<TypeId>, SourceError> {
        let kind = edge.kind.clone();
        match self.types.association(&edge.kind).filter(|(_, kind)| kind.adjacency) {
            None => Err(SourceError::UnknownKind { kind }),
            Some((own, found)) => match (found.inverse, edge.direction) {
                (Inverse::Symmetric, _) | (_, Direction::Out) => Ok(vec![own]),
                (Inverse::None, _) => Err(SourceError::OneSided { kind }),
                (Inverse::Named { kind, .. }, Direction::In) => Ok(vec![kind]),
                (Inverse::Named { kind, .. }, Direction::Both) => Ok(vec![own, kind]),
            },
        }
    }

    fn joining(&self) -> Vec<TypeId> {
        let types = &self.types.associations;
        let follows = |kind: TypeId| types[&kind].adjacency;
        let joins = |id: &TypeId| follows(*id) || types[id].inverse_of(*id).is_some_and(follows);
        types.keys().copied().filter(joins).collect()
    }

    fn rows_of(&self, id: u64) -> &Rows {
        self.rows[partition_of_id(id, self.count).index()]
    }

    fn is_member(&self, id: u64) -> bool {
        let rows = self.rows_of(id);
        rows.objects.contains(&id) || rows.has(id, &self.joining())
    }

    fn list(&self, kinds: &[TypeId], id: u64) -> Option<Vec<u64>> {
        let all = self.rows_of(id).associations.iter();
        let own = all.filter(|key| key.list.id1 == id && key.id2 != id && kinds.contains(&key.list.kind));
        let list: BTreeSet<u64> = own.map(|key| key.id2).collect();
        (self.is_member(id)).then(|| list.into_iter().collect())
    }

    pub fn lists(&self, edge: &EdgeSelector) -> Lists {
        let kinds = self.kinds(edge)?;
        Ok((0..IDS).map(|id| self.list(&kinds, id)).collect())
    }

    pub fn postings(&self, edge: &EdgeSelector, partition: usize, id: u64) -> Result<Vec<u64>, SourceError> {
        let kinds = self.kinds(edge)?;
        let all = self.rows[partition].associations.iter();
        let to = all.filter(|key| key.id2 == id && key.list.id1 != id && kinds.contains(&key.list.kind));
        Ok(to.map(|key| key.list.id1).collect::<BTreeSet<_>>().into_iter().collect())
    }

    pub fn members(&self, partition: usize) -> Vec<u64> {
        let rows = self.rows[partition];
        let ids = rows.associations.iter().map(|key| key.list.id1).chain(rows.objects.iter().copied());
        let ids: BTreeSet<u64> = ids.collect();
        ids.into_iter().filter(|id| self.is_member(*id)).collect()
    }

    /// Returns the ids that have an association with themselves.
    fn selves(&self, edge: &EdgeSelector) -> Result<Vec<u64>, SourceError> {
        let kinds = self.kinds(edge)?;
        let has = |id: &u64| {
            let mut all = self.rows_of(*id).associations.iter();
            all.any(|key| key.list.id1 == *id && key.id2 == *id && kinds.contains(&key.list.kind))
        };
        Ok((0..IDS).filter(has).collect())
    }

    /// Compares everything that a source answers for one selector.
    pub fn compare(&self, source: &dyn NeighbourSource, edge: &EdgeSelector) -> Result<(), SourceError> {
        let expected = self.lists(edge);
        match (expected, lists(source, edge)) {
            (_, Err(error @ SourceError::PositionUnavailable { .. })) => return Err(error),
            (expected, got) => assert_eq!(got, expected, "{edge:?}"),
        }
        let (keys, mut got) = ((0..IDS).collect::<Vec<u64>>(), vec![77]);
        let read = source.selves(edge, &keys, &mut got).map(|()| got[1..].to_vec());
        match (self.selves(edge), read) {
            (_, Err(error @ SourceError::PositionUnavailable { .. })) => return Err(error),
            (expected, got) => assert_eq!(got, expected, "{edge:?}"),
        }
        for partition in 0..self.rows.len() {
            let id = PartitionId(partition as u32);
            let mut got = vec![77];
            source.members(id, &mut got)?;
            assert_eq!(got[1..], self.members(partition));
            for id2 in 0..IDS {
                let mut got = vec![77];
                let read = source.postings(edge, id, id2, &mut got).map(|()| got[1..].to_vec());
                match (self.postings(edge, partition, id2), read) {
                    (_, Err(error @ SourceError::PositionUnavailable { .. })) => return Err(error),
                    (expected, got) => assert_eq!(got, expected, "{edge:?} {partition} {id2}"),
                }
            }
        }
        Ok(())
    }
}

/// Returns the lists of all ids, and checks that `lengths` and `edges` agree with them.
pub fn lists(source: &dyn NeighbourSource, edge: &EdgeSelector) -> Lists {
    let keys: Vec<u64> = (0..IDS).collect();
    let (mut lists, mut lengths, mut edges) = (Vec::new(), Vec::new(), Vec::new());
    source.lists(edge, &keys, &mut |index, list| {
        assert_eq!(index, lists.len());
        lists.push(list.map(<[u64]>::to_vec));
        ControlFlow::Continue(())
    })?;
    source.lengths(edge, &keys, &mut |_, length| {
        lengths.push(length);
        ControlFlow::Continue(())
    })?;
    assert_eq!(lengths, lists.iter().map(|it| it.as_ref().map(|ids| ids.len() as u64)).collect::<Vec<_>>());
    let read = source.edges(edge, &[], &keys, &mut |_, list| {
        edges.push(list.map(|list| list.ids.to_vec()));
        ControlFlow::Continue(())
    });
    match read {
        Err(SourceError::TwoLists { .. }) => assert_eq!(edge.direction, Direction::Both),
        read => assert_eq!(read.map(|()| edges)?, lists),
    }
    Ok(lists)
}

/// The log of one partition, and the rows at each of its points.
#[derive(Clone, Debug)]
pub struct Log {
    /// The ids of this partition.
    pub ids: Vec<u64>,
    pub entries: Vec<(LogPoint, Change)>,
    /// The rows after each entry.
    pub states: Vec<Rows>,
    pub end: LogPoint,
    /// The rows at each point, including points of lost histories.
    pub ever: RowHistory,
}

impl Log {
    pub fn new(partition: PartitionId, count: PartitionCount) -> Self {
        let ids = (0..IDS).filter(|id| partition_of_id(*id, count) == partition).collect();
        let end = LogPoint::new(1, 0);
        let ever = RowHistory::from([(end, Rows::default())]);
        Self { ids, entries: vec![], states: vec![], end, ever }
    }

    pub fn rows(&self) -> Rows {
        self.states.last().cloned().unwrap_or_default()
    }

    /// Writes a random change.
    pub fn write(&mut self, dice: &mut Dice, kinds: &[TypeId]) {
        let mut rows = self.rows();
        let mut effects: Vec<Effect> = Vec::new();
        let mut changed = BTreeSet::new();
        for _ in 0..dice.below(4) {
            let (id1, id2, kind) = (dice.one_of(&self.ids), dice.below(IDS), dice.one_of(kinds));
            if dice.once_in(3) {
                if changed.insert((id1, None)) {
                    effects.push(rows.write_object(id1, dice.once_in(2), dice.once_in(4)));
                }
            } else {
                let key = ListKey { id1, kind }.to(id2);
                if changed.insert((id1, Some(key))) {
                    effects.extend(rows.write(key, dice.below(5) < 3));
                }
            }
        }
        self.push(effects, rows);
    }

    pub fn push(&mut self, effects: Vec<Effect>, rows: Rows) {
        self.end.position = self.end.position.next();
        self.entries.push((self.end, Change { effects }));
        self.states.push(rows);
        self.ever.insert(self.end, self.rows());
    }

    /// Begins a later term. The database may be replaced by an older copy of itself.
    pub fn begin_term(&mut self, term: u64, position: u64) {
        self.entries.truncate(position as usize);
        self.states.truncate(position as usize);
        self.end = LogPoint::new(term, self.entries.len() as u64);
        self.ever.insert(self.end, self.rows());
    }

    /// Returns the entries after a point, and the terms that begin after it. `None` if the point is not in a history of
    /// this log.
    pub fn after(&self, point: LogPoint) -> Option<&[(LogPoint, Change)]> {
        let position = point.position.0 as usize;
        let written = position.checked_sub(1).map(|index| self.entries.get(index).map(|(at, _)| *at));
        let contains = match written {
            None => true,
            Some(written) => written.is_some_and(|written| written.term <= point.term),
        };
        let later = self.entries.get(position..)?;
        let contains = contains && later.first().is_none_or(|(at, _)| point < *at) && point <= self.end;
        contains.then_some(later)
    }

    /// Returns a page of objects after an id.
    pub fn objects(&self, after: Option<u64>, limit: usize) -> (LogPoint, Vec<u64>, bool) {
        let rows = self.rows();
        let ids: Vec<u64> = rows.objects.into_iter().filter(|id| after < Some(*id)).take(limit).collect();
        (self.end, ids.clone(), ids.len() < limit)
    }

    /// Returns a page of associations after a key.
    pub fn associations(
        &self,
        after: Option<AssociationKey>,
        limit: usize,
    ) -> (LogPoint, Vec<AssociationKey>, bool) {
        let rows = self.rows();
        let all = rows.associations.into_iter();
        let keys: Vec<AssociationKey> = all.filter(|key| after < Some(*key)).take(limit).collect();
        (self.end, keys.clone(), keys.len() < limit)
    }

    /// Carries out one request of a build: reads at most `limit` rows or changes.
    pub fn serve(&self, build: &mut Build, limit: usize) -> Result<bool, BuildError> {
        match build.next() {
            BuildNeed::Nothing => return Ok(true),
            BuildNeed::Objects { after } => {
                let (at, ids, last) = self.objects(after, limit);
                build.objects(at, &ids, last)?;
            }
            BuildNeed::Associations { after } => {
                let (at, keys, last) = self.associations(after, limit);
                build.associations(at, &keys, last)?;
            }
            BuildNeed::Changes { after, .. } => self.replay(build, after, limit)?,
        }
        Ok(false)
    }

    pub fn replay(&self, build: &mut Build, after: LogPoint, limit: usize) -> Result<(), BuildError> {
        let changes = self.after(after).ok_or(BuildError::HistoryLost)?;
        for (point, change) in changes.iter().take(limit) {
            assert_eq!(build.apply(*point, change)?, Progress::Applied);
            assert_eq!(build.apply(*point, change)?, Progress::Known);
        }
        if changes.is_empty() {
            _ = build.begin_term(self.end)?;
        }
        Ok(())
    }
}

/// The history of an instance: the rows at each point that it applied.
pub type RowHistory = BTreeMap<LogPoint, Rows>;

/// Returns the rows at a point, if it is in the history.
pub fn rows_at(seen: &RowHistory, point: LogPoint) -> Option<&Rows> {
    let (at, rows) = seen.range(..=point).next_back()?;
    // A term began without a change.
    (at.position == point.position).then_some(rows)
}
