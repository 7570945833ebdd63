//! Converts rows of `kith-live` to cells of tables, and back.

use crate::{
    DatabaseError, LogEntry,
    tables::{
        ASSOCIATIONS, CHANGES, COUNTS, Cell, Cells, FLOORS, INDEX_ENTRIES, INTENTS, OBJECTS, OUTCOMES,
        PAIR_STAMPS, PARTITIONS, Table,
    },
};
use kith_live::{
    Association, AssociationKey, Change, Data, IndexEntry, Intent, ListKey, Object, Pair, RecordedOutcome,
    TypeId, WriteId,
};
use kith_types::{LogPoint, PartitionCount, PartitionId};

/// The key of a row, without its partition.
pub(crate) type Key = Vec<Cell>;

pub(crate) fn object_key(id: u64) -> Key {
    vec![Cell::Wide(id)]
}

pub(crate) fn list_key(list: ListKey) -> Key {
    vec![Cell::Wide(list.id1), Cell::Small(list.kind.0.into())]
}

pub(crate) fn association_key(key: AssociationKey) -> Key {
    let mut cells = list_key(key.list);
    cells.push(Cell::Wide(key.id2));
    cells
}

/// Returns two cells, which are the key of an intent or a value in other tables.
pub(crate) fn point(point: LogPoint) -> Vec<Cell> {
    vec![Cell::Wide(point.term.0), Cell::Wide(point.position.0)]
}

pub(crate) fn pair_key(pair: Pair, partitions: PartitionCount) -> Key {
    let (ordered_by, _) = pair.partitions(partitions);
    vec![Cell::Small(ordered_by.0), Cell::Wide(pair.low()), Cell::Wide(pair.high())]
}

pub(crate) fn floor_key(ordered_by: PartitionId) -> Key {
    vec![Cell::Small(ordered_by.0)]
}

pub(crate) fn outcome_key(id: &WriteId) -> Key {
    vec![Cell::Bytes(id.as_str().as_bytes().into())]
}

pub(crate) fn entry_key(entry: IndexEntry) -> Key {
    vec![Cell::Small(entry.index.0), Cell::Bytes(entry.key), Cell::Wide(entry.id)]
}

pub(crate) fn put_object(object: Object) -> Vec<Cell> {
    let mut cells = vec![Cell::Small(object.kind.0.into())];
    cells.extend(stamped(object.stamp, object.data));
    cells
}

pub(crate) fn put_association(association: Association) -> Vec<Cell> {
    let mut cells = vec![Cell::Wide(association.time)];
    cells.extend(stamped(association.stamp, association.data));
    cells
}

fn stamped(stamp: LogPoint, data: Data) -> Vec<Cell> {
    let mut cells = point(stamp);
    cells.extend([Cell::Small(data.schema.into()), Cell::Bytes(data.bytes)]);
    cells
}

pub(crate) fn put_outcome(outcome: &RecordedOutcome) -> Vec<Cell> {
    vec![Cell::Wide(outcome.at), Cell::Bytes(outcome.to_bytes().into())]
}

/// Returns a row of the table [`CHANGES`] without its partition.
pub(crate) fn change_row(at: LogPoint, written_ms: u64, change: &Change) -> Vec<Cell> {
    vec![
        Cell::Wide(at.position.0),
        Cell::Wide(at.term.0),
        Cell::Wide(written_ms),
        Cell::Bytes(change.to_bytes().into()),
    ]
}

/// A decoded row of one table.
pub(crate) trait Row: Sized {
    /// The table of these rows.
    const TABLE: &'static Table;

    /// Decodes a row from the columns after the partition.
    fn take(cells: &mut Cells) -> Result<Self, DatabaseError>;
}

fn take_point(cells: &mut Cells) -> Result<LogPoint, DatabaseError> {
    Ok(LogPoint::new(cells.wide()?, cells.wide()?))
}

fn take_data(cells: &mut Cells) -> Result<Data, DatabaseError> {
    Ok(Data { schema: cells.small()?, bytes: cells.bytes()? })
}

fn take_list(cells: &mut Cells) -> Result<ListKey, DatabaseError> {
    Ok(ListKey { id1: cells.wide()?, kind: TypeId(cells.small()?) })
}

impl Row for Object {
    const TABLE: &'static Table = &OBJECTS;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        Ok(Object {
            id: cells.wide()?,
            kind: TypeId(cells.small()?),
            stamp: take_point(cells)?,
            data: take_data(cells)?,
        })
    }
}

impl Row for (ListKey, Association) {
    const TABLE: &'static Table = &ASSOCIATIONS;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        let list = take_list(cells)?;
        let association = Association {
            id2: cells.wide()?,
            time: cells.wide()?,
            stamp: take_point(cells)?,
            data: take_data(cells)?,
        };
        Ok((list, association))
    }
}

/// A row of the table `counts`.
impl Row for (ListKey, u64) {
    const TABLE: &'static Table = &COUNTS;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        Ok((take_list(cells)?, cells.wide()?))
    }
}

impl Row for Intent {
    const TABLE: &'static Table = &INTENTS;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        let stamp = take_point(cells)?;
        let intent = Intent::from_bytes(&cells.bytes()?)?;
        if intent.stamp != stamp {
            let detail = format!("the intent in the row {stamp} has the stamp {}", intent.stamp);
            return Err(DatabaseError::damaged(detail));
        }
        Ok(intent)
    }
}

impl Row for (Pair, LogPoint) {
    const TABLE: &'static Table = &PAIR_STAMPS;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        let _ordered_by: u32 = cells.small()?;
        let (low, high) = (cells.wide()?, cells.wide()?);
        let pair = Pair::of(low, high)
            .ok_or_else(|| DatabaseError::damaged(format!("object {low} forms a pair with itself")))?;
        Ok((pair, take_point(cells)?))
    }
}

/// A row of the table `floors`.
pub(crate) struct Floor(pub PartitionId, pub LogPoint);

impl Row for Floor {
    const TABLE: &'static Table = &FLOORS;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        Ok(Floor(PartitionId(cells.small()?), take_point(cells)?))
    }
}

impl Row for (WriteId, RecordedOutcome) {
    const TABLE: &'static Table = &OUTCOMES;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        let id = cells.bytes()?;
        let id = std::str::from_utf8(&id).ok().and_then(|text| text.parse().ok());
        let id = id.ok_or_else(|| DatabaseError::damaged("the table outcomes has an invalid write id"))?;
        let _decided_ms = cells.wide()?;
        Ok((id, RecordedOutcome::from_bytes(&cells.bytes()?)?))
    }
}

/// An object that an index has under a key.
pub(crate) struct IndexedId(pub u64);

impl Row for IndexedId {
    const TABLE: &'static Table = &INDEX_ENTRIES;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        let (_index, _key): (u32, _) = (cells.small()?, cells.bytes()?);
        Ok(IndexedId(cells.wide()?))
    }
}

/// A row of the table `partitions`: the end of a log.
impl Row for LogPoint {
    const TABLE: &'static Table = &PARTITIONS;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        take_point(cells)
    }
}

impl Row for LogEntry {
    const TABLE: &'static Table = &CHANGES;

    fn take(cells: &mut Cells) -> Result<Self, DatabaseError> {
        let (position, term) = (cells.wide()?, cells.wide()?);
        let (written_ms, bytes) = (cells.wide()?, cells.bytes()?);
        Ok(LogEntry { at: LogPoint::new(term, position), written_ms, change: Change::from_bytes(&bytes)? })
    }
}
