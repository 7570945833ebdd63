//! Folds a batch into writes to tables: the last state of each row, in the order of keys, so that all transactions lock
//! rows in the same order.

use crate::{
    DatabaseError,
    rows::{self, Key},
    tables::{
        ASSOCIATIONS, COUNTS, Cell, FLOORS, INDEX_ENTRIES, INTENTS, OBJECTS, OUTCOMES, PAIR_STAMPS, Table,
    },
    unique::UniqueWrites,
};
use kith_live::{Batch, BatchPart, LoggedChange, RowWrite};
use kith_types::{LogPoint, PartitionCount, PartitionId, Term};
use std::collections::{BTreeMap, BTreeSet};

/// The tables of rows, in the order in which they are written.
static TABLES: [&Table; 8] =
    [&OBJECTS, &ASSOCIATIONS, &COUNTS, &INTENTS, &PAIR_STAMPS, &FLOORS, &OUTCOMES, &INDEX_ENTRIES];
/// The index of [`PAIR_STAMPS`] in [`TABLES`].
const STAMPS: usize = 4;

/// The point at which a log must end for a transaction to take effect, and the point at which it ends afterwards.
/// Fences are in ascending order of partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    pub partition: PartitionId,
    pub expected: LogPoint,
    pub end: LogPoint,
}

/// The writes of one transaction to one table. Rows are complete and include their partition; deletions are keys.
#[derive(Debug)]
pub(crate) struct TableWrites {
    pub table: &'static Table,
    pub puts: Vec<Vec<Cell>>,
    pub deletes: Vec<Key>,
}

/// Pair stamps of `partition` to be deleted: those that `from` orders and that are below `before`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StampDrop {
    pub partition: PartitionId,
    pub from: PartitionId,
    pub before: LogPoint,
}

/// The writes of a batch, in the order in which a transaction makes them.
#[derive(Debug)]
pub(crate) struct Writes {
    pub fences: Vec<Fence>,
    /// The places that logs must contain.
    pub requires: Vec<(PartitionId, LogPoint)>,
    pub uniques: UniqueWrites,
    pub stamp_drops: Vec<StampDrop>,
    pub tables: Vec<TableWrites>,
    /// The new rows of the table `changes`.
    pub changes: Vec<Vec<Cell>>,
}

/// The last state of each row; `None` if the row is deleted.
type States = BTreeMap<Key, Option<Vec<Cell>>>;

/// The fold of one partition's part.
struct Folding {
    partition: PartitionId,
    partitions: PartitionCount,
    states: [States; TABLES.len()],
    stamp_drops: Vec<StampDrop>,
}

/// Folds `batch` for a graph of `partitions` partitions. `written_ms` is the time of its changes, in milliseconds since
/// 1970.
///
/// # Errors
/// [`DatabaseError::Invalid`] if the batch names a partition twice, a partition that does not exist, or term 0, if it
/// would exceed the greatest position, or if it changes a unique value twice.
pub(crate) fn fold(
    batch: Batch,
    partitions: PartitionCount,
    written_ms: u64,
) -> Result<Writes, DatabaseError> {
    let mut parts = batch.parts;
    parts.sort_by_key(|part| part.partition);
    let foreign = batch.requires.iter().find(|(partition, _)| partitions.get() <= partition.0);
    if let Some((partition, _)) = foreign {
        return Err(DatabaseError::no_partition(*partition, partitions));
    }
    let mut writes = Writes {
        fences: fences(&parts, partitions)?,
        requires: batch.requires,
        uniques: UniqueWrites::default(),
        stamp_drops: vec![],
        tables: vec![],
        changes: vec![],
    };
    let mut all: [TableWrites; TABLES.len()] =
        TABLES.map(|table| TableWrites { table, puts: vec![], deletes: vec![] });
    for part in parts {
        let partition = part.partition;
        let mut at = part.expected;
        let mut folding = Folding { partition, partitions, states: Default::default(), stamp_drops: vec![] };
        for LoggedChange { change, rows } in part.changes {
            at.position = at.position.next();
            writes.changes.push(with_partition(partition, rows::change_row(at, written_ms, &change)));
            for row in rows {
                writes.uniques.add(&row)?;
                folding.write(row);
            }
        }
        for (states, table) in folding.states.into_iter().zip(&mut all) {
            for (key, rest) in states {
                let key = with_partition(partition, key);
                match rest {
                    Some(rest) => table.puts.push([key, rest].concat()),
                    None => table.deletes.push(key),
                }
            }
        }
        writes.stamp_drops.extend(folding.stamp_drops);
    }
    writes.tables = all.into_iter().filter(|it| !it.puts.is_empty() || !it.deletes.is_empty()).collect();
    Ok(writes)
}

fn fences(parts: &[BatchPart], partitions: PartitionCount) -> Result<Vec<Fence>, DatabaseError> {
    let mut seen = BTreeSet::new();
    let fence = |part: &BatchPart| {
        let partition = part.partition;
        if partitions.get() <= partition.0 {
            return Err(DatabaseError::no_partition(partition, partitions));
        }
        if !seen.insert(partition) {
            return Err(DatabaseError::Invalid { detail: format!("a batch has {partition} twice") });
        }
        if part.expected.term == Term(0) {
            let detail = format!("{partition} is written in term 0, in which nobody leads");
            return Err(DatabaseError::Invalid { detail });
        }
        if part.expected.position.0.checked_add(part.changes.len() as u64).is_none() {
            return Err(DatabaseError::Invalid {
                detail: format!("the positions of {partition} are used up"),
            });
        }
        Ok(Fence { partition, expected: part.expected, end: part.end() })
    };
    parts.iter().map(fence).collect()
}

pub(crate) fn with_partition(partition: PartitionId, cells: Vec<Cell>) -> Vec<Cell> {
    let mut all = Vec::with_capacity(1 + cells.len());
    all.push(Cell::Small(partition.0));
    all.extend(cells);
    all
}

impl Folding {
    fn write(&mut self, row: RowWrite) {
        let (table, key, rest): (&Table, _, _) = match row {
            RowWrite::PutObject(object) => {
                (&OBJECTS, rows::object_key(object.id), Some(rows::put_object(object)))
            }
            RowWrite::DeleteObject(id) => (&OBJECTS, rows::object_key(id), None),
            RowWrite::PutAssociation(list, association) => {
                let key = rows::association_key(list.to(association.id2));
                (&ASSOCIATIONS, key, Some(rows::put_association(association)))
            }
            RowWrite::DeleteAssociation(key) => (&ASSOCIATIONS, rows::association_key(key), None),
            RowWrite::SetCount(list, length) => {
                (&COUNTS, rows::list_key(list), (length != 0).then(|| vec![Cell::Wide(length)]))
            }
            RowWrite::PutIntent(intent) => {
                (&INTENTS, rows::point(intent.stamp), Some(vec![Cell::Bytes(intent.to_bytes().into())]))
            }
            RowWrite::DeleteIntent(stamp) => (&INTENTS, rows::point(stamp), None),
            RowWrite::PutPairStamp(pair, stamp) => {
                (&PAIR_STAMPS, rows::pair_key(pair, self.partitions), Some(rows::point(stamp)))
            }
            RowWrite::DropPairStamps { from, before } => return self.drop_stamps(from, before),
            RowWrite::SetFloor { from, before } => {
                (&FLOORS, rows::floor_key(from), Some(rows::point(before)))
            }
            RowWrite::PutOutcome(id, outcome) => {
                (&OUTCOMES, rows::outcome_key(&id), Some(rows::put_outcome(&outcome)))
            }
            RowWrite::PutEntry(entry) => (&INDEX_ENTRIES, rows::entry_key(entry), Some(Vec::new())),
            RowWrite::DeleteEntry(entry) => (&INDEX_ENTRIES, rows::entry_key(entry), None),
        };
        let index =
            TABLES.iter().position(|it| it.name == table.name).expect("TABLES contains every table of rows");
        self.states[index].insert(key, rest);
    }

    /// Transactions drop stamps before they write rows. Therefore stamps that this batch wrote earlier must be dropped
    /// here.
    fn drop_stamps(&mut self, from: PartitionId, before: LogPoint) {
        let before_cells = rows::point(before);
        for (key, rest) in &mut self.states[STAMPS] {
            let ordered_by_it = key.first() == Some(&Cell::Small(from.0));
            if ordered_by_it && rest.as_ref().is_some_and(|stamp| *stamp < before_cells) {
                *rest = None;
            }
        }
        self.stamp_drops.push(StampDrop { partition: self.partition, from, before });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kith_live::{ListKey, TypeId};

    fn part(partition: u32, rows: Vec<RowWrite>) -> BatchPart {
        let changes = vec![LoggedChange { rows, ..Default::default() }];
        BatchPart { partition: PartitionId(partition), expected: LogPoint::new(1, 7), changes }
    }

    fn folded(parts: Vec<BatchPart>) -> Result<Writes, DatabaseError> {
        fold(Batch { parts, ..Default::default() }, PartitionCount::new(4).expect("the count is valid"), 0)
    }

    #[test]
    fn only_the_last_state_of_a_row_is_written() {
        let list = ListKey { id1: 1, kind: TypeId(2) };
        let rows = vec![RowWrite::SetCount(list, 1), RowWrite::SetCount(list, 2), RowWrite::DeleteObject(5)];
        let writes = folded(vec![part(3, rows)]).expect("the batch is valid");
        assert_eq!(writes.tables.len(), 2);
        assert_eq!(writes.tables[0].deletes, [vec![Cell::Small(3), Cell::Wide(5)]]);
        let row = vec![Cell::Small(3), Cell::Wide(1), Cell::Small(2), Cell::Wide(2)];
        assert_eq!(writes.tables[1].puts, [row]);
    }

    #[test]
    fn partitions_are_fenced_in_order_and_each_once_by_a_leader() {
        let writes = folded(vec![part(2, vec![]), part(0, vec![])]).expect("the batch is valid");
        let fences: Vec<_> = writes.fences.iter().map(|fence| (fence.partition.0, fence.end)).collect();
        assert_eq!(fences, [(0, LogPoint::new(1, 8)), (2, LogPoint::new(1, 8))]);
        let in_no_term = BatchPart { expected: LogPoint::new(0, 0), ..part(1, vec![]) };
        let wrong = [vec![part(2, vec![]), part(2, vec![])], vec![part(4, vec![])], vec![in_no_term]];
        for parts in wrong {
            assert!(matches!(folded(parts), Err(DatabaseError::Invalid { .. })));
        }
    }
}
