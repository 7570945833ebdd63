//! Translates queries to reads of tables, and the rows that were found to answers. The implementations only fetch rows.

use crate::{
    DatabaseError,
    rows::{self, Floor, IndexedId, Key, Row},
    tables::{ASSOCIATIONS, COUNTS, Cell, Cells, FLOORS, INTENTS, OBJECTS, OUTCOMES, PAIR_STAMPS, Table},
};
use kith_live::{
    Association, IndexId, Intent, ListKey, ListPlace, Object, Pair, RecordedOutcome, RowAnswer, RowQuery,
    TypeId, WriteId,
};
use kith_types::{LogPoint, PartitionCount};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Rows that were read, each without its partition.
pub(crate) type Rows = Vec<Vec<Cell>>;

/// The rows of one table and one partition to fetch.
#[derive(Debug)]
pub(crate) enum Select {
    /// The rows with these keys, in any order.
    Keys { table: &'static Table, keys: Vec<Key> },
    /// All rows, in the order of their keys.
    All(&'static Table),
    /// A part of an association list, in its order.
    List { list: ListKey, after: Option<ListPlace>, skip: u32, limit: u32 },
    /// Entries of an index under one key, with ids above `after`, in ascending order of ids.
    Entries { index: IndexId, key: Arc<[u8]>, after: Option<u64>, limit: u32 },
    /// A number of rows, as one row with one number.
    Number { what: RowCount, kinds: Vec<TypeId> },
}

/// Rows of some types that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowCount {
    /// Objects; of all types if none are named.
    Objects,
    /// Associations, by the lengths of their lists.
    Associations,
    /// Associations whose `id1` is not greater than `id2`.
    AscendingAssociations,
}

impl RowCount {
    /// The statement that counts rows of these types in a partition. `lengths` sums the lengths of lists in the dialect.
    pub fn statement(self, kinds: &[TypeId], partition: &str, lengths: &str) -> String {
        let (selected, table) = match self {
            RowCount::Objects => ("COUNT(*)", OBJECTS.name),
            RowCount::Associations => (lengths, COUNTS.name),
            RowCount::AscendingAssociations => ("COUNT(*)", ASSOCIATIONS.name),
        };
        let mut statement = format!("SELECT {selected} FROM {table} WHERE partition_id = {partition}");
        let numbers: Vec<String> = kinds.iter().map(|kind| kind.0.to_string()).collect();
        match (self, &numbers[..]) {
            (RowCount::Objects, []) => {}
            (_, []) => statement += " AND 1 = 0",
            _ => statement += &format!(" AND type IN ({})", numbers.join(", ")),
        }
        if self == RowCount::AscendingAssociations {
            statement += " AND id1 <= id2";
        }
        statement
    }
}

/// The tables that are read by key.
static BY_KEY: [&Table; 6] = [&OBJECTS, &ASSOCIATIONS, &COUNTS, &PAIR_STAMPS, &FLOORS, &OUTCOMES];

/// Returns the rows to fetch to answer `queries`.
pub(crate) fn selects(queries: &[RowQuery], partitions: PartitionCount) -> Vec<Select> {
    let mut keys: [BTreeSet<Key>; BY_KEY.len()] = Default::default();
    let mut selects = Vec::new();
    let mut intents = false;
    for query in queries {
        let (index, key) = match query {
            RowQuery::Object(id) => (0, rows::object_key(*id)),
            RowQuery::Association(key) => (1, rows::association_key(*key)),
            RowQuery::Count(list) => (2, rows::list_key(*list)),
            RowQuery::PairStamp(pair) => (3, rows::pair_key(*pair, partitions)),
            RowQuery::Floor(ordered_by) => (4, rows::floor_key(*ordered_by)),
            RowQuery::Outcome(id) => (5, rows::outcome_key(id)),
            RowQuery::Intents => {
                intents = true;
                continue;
            }
            &RowQuery::List { list, after, skip, limit } => {
                selects.push(Select::List { list, after, skip, limit });
                continue;
            }
            RowQuery::Entries { index, key, after, limit } => {
                let (index, key, after, limit) = (*index, Arc::clone(key), *after, *limit);
                selects.push(Select::Entries { index, key, after, limit });
                continue;
            }
            RowQuery::ObjectCount(kinds) => {
                selects.push(Select::Number { what: RowCount::Objects, kinds: kinds.clone() });
                continue;
            }
            RowQuery::AssociationCount { kinds, ascending } => {
                let what = if *ascending { RowCount::AscendingAssociations } else { RowCount::Associations };
                selects.push(Select::Number { what, kinds: kinds.clone() });
                continue;
            }
        };
        keys[index].insert(key);
    }
    if intents {
        selects.push(Select::All(&INTENTS));
    }
    let keys = BY_KEY.iter().zip(keys).filter(|(_, keys)| !keys.is_empty());
    selects.extend(keys.map(|(table, keys)| Select::Keys { table, keys: keys.into_iter().collect() }));
    selects
}

/// Decoded rows, by the keys that queries name.
#[derive(Default)]
struct Found {
    objects: BTreeMap<u64, Object>,
    associations: BTreeMap<(ListKey, u64), Association>,
    counts: BTreeMap<ListKey, u64>,
    stamps: BTreeMap<Pair, LogPoint>,
    floors: BTreeMap<u32, LogPoint>,
    outcomes: BTreeMap<WriteId, RecordedOutcome>,
    intents: Vec<Intent>,
    /// The lists, in the order of the queries.
    lists: Vec<Vec<Association>>,
    /// The ids that indexes have, in the order of the queries.
    ids: Vec<Vec<u64>>,
    /// The numbers of rows, in the order of the queries.
    numbers: Vec<u64>,
}

/// Decodes rows of one kind.
pub(crate) fn decode<R: Row>(rows: Rows) -> Result<Vec<R>, DatabaseError> {
    rows.into_iter().map(|cells| R::take(&mut Cells::new(R::TABLE, cells))).collect()
}

impl Found {
    fn add(&mut self, select: &Select, rows: Rows) -> Result<(), DatabaseError> {
        let table = match select {
            Select::Keys { table, .. } | Select::All(table) => table,
            Select::Entries { .. } => {
                self.ids.push(decode(rows)?.into_iter().map(|IndexedId(id)| id).collect());
                return Ok(());
            }
            Select::Number { .. } => {
                let Some(Cell::Wide(number)) = rows.first().and_then(|cells| cells.first()) else {
                    return Err(DatabaseError::damaged("the answer to a count has no number"));
                };
                self.numbers.push(*number);
                return Ok(());
            }
            Select::List { .. } => {
                let rows: Vec<(ListKey, Association)> = decode(rows)?;
                self.lists.push(rows.into_iter().map(|(_, association)| association).collect());
                return Ok(());
            }
        };
        match table.name {
            name if name == OBJECTS.name => {
                self.objects.extend(decode(rows)?.into_iter().map(|object: Object| (object.id, object)));
            }
            name if name == ASSOCIATIONS.name => {
                let rows = decode::<(ListKey, Association)>(rows)?;
                self.associations.extend(rows.into_iter().map(|(list, it)| ((list, it.id2), it)));
            }
            name if name == COUNTS.name => self.counts.extend(decode::<(ListKey, u64)>(rows)?),
            name if name == PAIR_STAMPS.name => self.stamps.extend(decode::<(Pair, LogPoint)>(rows)?),
            name if name == FLOORS.name => {
                self.floors.extend(decode::<Floor>(rows)?.into_iter().map(|Floor(from, at)| (from.0, at)));
            }
            name if name == OUTCOMES.name => {
                self.outcomes.extend(decode::<(WriteId, RecordedOutcome)>(rows)?);
            }
            _ => self.intents = decode(rows)?,
        }
        Ok(())
    }
}

/// Answers `queries` from the rows that were fetched for `selects`, which must come from [`selects`] for the same
/// queries.
pub(crate) fn answers(
    queries: Vec<RowQuery>,
    selects: &[Select],
    rows: Vec<Rows>,
) -> Result<Vec<RowAnswer>, DatabaseError> {
    let mut found = Found::default();
    for (select, rows) in selects.iter().zip(rows) {
        found.add(select, rows)?;
    }
    let mut lists = std::mem::take(&mut found.lists).into_iter();
    let mut ids = std::mem::take(&mut found.ids).into_iter();
    let mut numbers = std::mem::take(&mut found.numbers).into_iter();
    let answer = |query| match query {
        RowQuery::Object(id) => RowAnswer::Object(found.objects.get(&id).cloned()),
        RowQuery::Association(key) => {
            RowAnswer::Association(found.associations.get(&(key.list, key.id2)).cloned())
        }
        RowQuery::Count(list) => RowAnswer::Count(found.counts.get(&list).copied().unwrap_or_default()),
        RowQuery::List { .. } => RowAnswer::List(lists.next().unwrap_or_default()),
        RowQuery::Intents => RowAnswer::Intents(found.intents.clone()),
        RowQuery::PairStamp(pair) => RowAnswer::Point(found.stamps.get(&pair).copied().unwrap_or_default()),
        RowQuery::Floor(from) => RowAnswer::Point(found.floors.get(&from.0).copied().unwrap_or_default()),
        RowQuery::Outcome(id) => RowAnswer::Outcome(found.outcomes.get(&id).cloned()),
        RowQuery::Entries { .. } => RowAnswer::Ids(ids.next().unwrap_or_default()),
        RowQuery::ObjectCount(_) | RowQuery::AssociationCount { .. } => {
            RowAnswer::Count(numbers.next().unwrap_or_default())
        }
    };
    Ok(queries.into_iter().map(answer).collect())
}
