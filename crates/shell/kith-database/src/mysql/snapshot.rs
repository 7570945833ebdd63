//! Reads. Everything that must be consistent is read in one transaction, usually in one packet.

use super::{
    Home,
    connections::{Connections, StatementResult, first_packet},
    sql,
};
use crate::{
    DatabaseError, LogError, LogPart, PartitionQueries,
    log::{self, TermSpan},
    read::{Rows, Select, answers, decode, selects},
    rows::{Key, Row},
    tables::{ASSOCIATIONS, CHANGES, Cell, INDEX_ENTRIES, OBJECTS, PARTITIONS, Table},
};
use kith_live::{ASSOCIATION_BYTES_MAX, OBJECT_BYTES_MAX, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionCount, PartitionId, Term};
use std::{collections::BTreeMap, sync::Arc};

/// The bytes that the ends of all logs of the largest cluster take, with some room.
const POINTS_BYTES_MAX: usize = 64 << 20;
/// The most bytes of a row without an object, with some room.
const ROW_BYTES_MAX: usize = 4 * ASSOCIATION_BYTES_MAX;
/// A number that is above the number of intents that a partition can have.
const INTENTS_MAX: usize = 2_048;

/// The ends of logs, by partition.
type Points = BTreeMap<PartitionId, LogPoint>;

/// Runs `statements` and a statement that reads the ends of the logs of `partitions`, in one snapshot. The answers take at
/// most `rows_max` bytes beside those ends.
async fn snapshot(
    readers: &Connections,
    partitions: impl Iterator<Item = PartitionId>,
    statements: Vec<String>,
    rows_max: usize,
) -> Result<(Points, Vec<StatementResult>), DatabaseError> {
    let mut all = vec![sql::BEGIN_SNAPSHOT.to_owned(), sql::points(partitions)];
    all.extend(statements);
    all.push(sql::COMMIT.to_owned());
    let answers_max = rows_max.saturating_add(POINTS_BYTES_MAX);
    let (first, rest) = all.split_at(first_packet(&all, readers.sizes().statements));
    let (mut lease, mut returned) = readers.begin_reading(first, answers_max).await?;
    returned.extend(lease.run_all(rest, answers_max).await?);
    lease.give_back();
    let mut returned = returned.into_iter().skip(1);
    let points = points_of(returned.next())?;
    let mut returned: Vec<StatementResult> = returned.collect();
    returned.pop();
    Ok((points, returned))
}

/// Returns the ends of logs from the answer to [`sql::points`].
fn points_of(returned: Option<StatementResult>) -> Result<Points, DatabaseError> {
    returned.unwrap_or_default().rows.into_iter().map(sql::partition_point).collect()
}

fn point_in(points: &Points, partition: PartitionId) -> Result<LogPoint, DatabaseError> {
    points.get(&partition).copied().ok_or_else(|| no_row(partition))
}

/// Returns how many bytes this many rows of a table take at most.
fn rows_bytes_max(table: &Table, rows: usize) -> usize {
    let row = if table.name == OBJECTS.name { ROW_BYTES_MAX + OBJECT_BYTES_MAX } else { ROW_BYTES_MAX };
    rows.saturating_mul(row)
}

fn no_row(partition: PartitionId) -> DatabaseError {
    DatabaseError::damaged(format!("the table partitions has no row of {partition}"))
}

/// Returns the end of a log from the answer to [`sql::point`].
pub(super) fn one_point(
    partition: PartitionId,
    returned: Option<StatementResult>,
) -> Result<LogPoint, DatabaseError> {
    let mut points: Vec<LogPoint> = decode(rows(&PARTITIONS, returned.unwrap_or_default())?)?;
    points.pop().ok_or_else(|| no_row(partition))
}

/// Returns the leader of a term from the answer to [`sql::terms`].
pub(super) fn leader_of(term: Term, returned: Option<StatementResult>) -> Result<Option<u64>, DatabaseError> {
    let mut leader = None;
    for row in returned.unwrap_or_default().rows {
        let [found, _, known] = sql::numbers("terms", row)?;
        leader = leader.or((found == term.0).then_some(known));
    }
    Ok(leader)
}

fn rows(table: &'static Table, returned: StatementResult) -> Result<Rows, DatabaseError> {
    let kinds = table.read_columns().map(|column| column.kind);
    returned.rows.into_iter().map(|row| sql::cells(table.name, kinds.clone(), row)).collect()
}

/// The statements that read rows of one partition.
struct PartRead {
    partition: PartitionId,
    queries: Vec<RowQuery>,
    selects: Vec<Select>,
    /// The statements of each select.
    statements: Vec<Vec<String>>,
}

impl PartRead {
    fn new((partition, queries): PartitionQueries, partitions: PartitionCount) -> Self {
        let selects = selects(&queries, partitions);
        let statements = selects.iter().map(|select| statements(partition, select)).collect();
        Self { partition, queries, selects, statements }
    }

    /// Returns how many bytes the rows take at most.
    fn bytes_max(&self) -> usize {
        let bytes = |select: &Select| match select {
            Select::Keys { table, keys } => rows_bytes_max(table, keys.len()),
            Select::All(table) => rows_bytes_max(table, INTENTS_MAX),
            // A list is read by two statements, each of which returns up to `limit` rows.
            Select::List { limit, .. } => rows_bytes_max(&ASSOCIATIONS, 2 * *limit as usize),
            Select::Entries { limit, .. } => rows_bytes_max(&INDEX_ENTRIES, *limit as usize),
            Select::Number { .. } => ROW_BYTES_MAX,
        };
        self.selects.iter().map(bytes).fold(0, usize::saturating_add)
    }

    /// Takes the answers to the statements.
    fn rows(
        self,
        points: &Points,
        returned: &mut impl Iterator<Item = StatementResult>,
    ) -> Result<RowsAt, DatabaseError> {
        let mut found = Vec::with_capacity(self.selects.len());
        for (select, statements) in self.selects.iter().zip(&self.statements) {
            let (table, skip, limit) = match select {
                Select::Number { .. } => {
                    let returned = returned.next().unwrap_or_default().rows.into_iter();
                    let number = |row| sql::numbers("of counted rows", row).map(|[it]| vec![Cell::Wide(it)]);
                    found.push(returned.map(number).collect::<Result<_, _>>()?);
                    continue;
                }
                Select::Keys { table, .. } | Select::All(table) => (*table, 0, usize::MAX),
                Select::List { after: None, limit, .. } => (&ASSOCIATIONS, 0, *limit as usize),
                Select::List { skip, limit, .. } => (&ASSOCIATIONS, *skip as usize, *limit as usize),
                Select::Entries { limit, .. } => (&INDEX_ENTRIES, 0, *limit as usize),
            };
            let mut all = Rows::new();
            for returned in returned.by_ref().take(statements.len()) {
                all.extend(rows(table, returned)?);
            }
            found.push(all.into_iter().skip(skip).take(limit).collect());
        }
        let at = point_in(points, self.partition)?;
        Ok(RowsAt { at, answers: answers(self.queries, &self.selects, found)? })
    }
}

pub(super) async fn read(
    readers: &Connections,
    parts: Vec<PartitionQueries>,
    partitions: PartitionCount,
) -> Result<Vec<RowsAt>, DatabaseError> {
    if parts.is_empty() {
        return Ok(Vec::new());
    }
    let parts: Vec<PartRead> = parts.into_iter().map(|part| PartRead::new(part, partitions)).collect();
    let statements = parts.iter().flat_map(|part| part.statements.concat()).collect();
    let rows_max = parts.iter().map(PartRead::bytes_max).fold(0, usize::saturating_add);
    let partitions_of = parts.iter().map(|part| part.partition);
    let (points, returned) = snapshot(readers, partitions_of, statements, rows_max).await?;
    let mut returned = returned.into_iter();
    parts.into_iter().map(|part| part.rows(&points, &mut returned)).collect()
}

fn statements(partition: PartitionId, select: &Select) -> Vec<String> {
    match select {
        Select::Keys { table, keys } => sql::select_keys(table, partition, keys),
        Select::All(table) => vec![sql::select_all(table, partition)],
        Select::List { list, after, skip, limit } => sql::list(partition, *list, *after, (*skip, *limit)),
        Select::Entries { index, key, after, limit } => {
            vec![sql::entries(partition, (*index, &Cell::Bytes(Arc::clone(key))), *after, *limit)]
        }
        Select::Number { what, kinds } => {
            vec![what.statement(kinds, &partition.0.to_string(), sql::LENGTHS)]
        }
    }
}

/// Returns the ends of logs, if the database holds the graph of `home`.
pub(super) async fn points(
    readers: &Connections,
    home: &Home,
    partitions: &[PartitionId],
) -> Result<Vec<LogPoint>, DatabaseError> {
    if partitions.is_empty() {
        return Ok(Vec::new());
    }
    // The order matters: if the graph is the right one afterwards, the ends that were read before belong to it.
    let packet = [sql::points(partitions.iter().copied()), sql::META.to_owned()];
    let (lease, returned) = readers.begin(&packet).await?;
    lease.give_back();
    let mut returned = returned.into_iter();
    let ends = returned.next();
    home.check(returned.next())?;
    let points = points_of(ends)?;
    partitions.iter().map(|partition| point_in(&points, *partition)).collect()
}

pub(super) async fn scan<R: Row>(
    readers: &Connections,
    partition: PartitionId,
    after: Option<&Key>,
    limit: u32,
) -> Result<(LogPoint, Vec<R>), DatabaseError> {
    let statement = sql::scan(R::TABLE, partition, after, limit);
    // There is one part of the statement for each column of the key.
    let rows_max = rows_bytes_max(R::TABLE, R::TABLE.key.len() * limit as usize);
    let (points, returned) = snapshot(readers, std::iter::once(partition), vec![statement], rows_max).await?;
    let returned = returned.into_iter().next().unwrap_or_default();
    Ok((point_in(&points, partition)?, decode(rows(R::TABLE, returned)?)?))
}

/// Reads changes in two round trips: first how many changes fit, then these changes.
pub(super) async fn changes(
    readers: &Connections,
    partition: PartitionId,
    after: LogPoint,
    bytes_max: usize,
) -> Result<LogPart, LogError> {
    let position = after.position;
    let first = [
        sql::BEGIN_SNAPSHOT.to_owned(),
        sql::point(partition),
        sql::terms(partition, after.term),
        sql::change_sizes(partition, position),
    ];
    let (mut lease, returned) = readers.begin(&first).await.map_err(DatabaseError::from)?;
    let mut returned = returned.into_iter().skip(1);
    let end = one_point(partition, returned.next())?;
    let span = span(after.term, returned.next())?;
    let sizes = returned.next().unwrap_or_default().rows.into_iter();
    let sizes: Vec<[u64; 2]> = sizes.map(|row| sql::numbers(CHANGES.name, row)).collect::<Result<_, _>>()?;
    let fitting = log::fitting(sizes.iter().map(|[_, size]| *size), bytes_max);
    let last = fitting.checked_sub(1).map_or(position.0, |index| sizes[index][0]);
    let second = [sql::changes(partition, position, last), sql::COMMIT.to_owned()];
    let answers_max = bytes_max.saturating_add(POINTS_BYTES_MAX);
    let returned = lease.run_reading(&second, answers_max).await.map_err(DatabaseError::from)?;
    let mut returned = returned.into_iter();
    lease.give_back();
    log::check(partition, after, span, end)?;
    let entries = decode(rows(&CHANGES, returned.next().unwrap_or_default())?)?;
    log::part(partition, after, entries, end)
}

/// Returns the span of a term from the answer to [`sql::terms`].
pub(super) fn span(term: Term, returned: Option<StatementResult>) -> Result<Option<TermSpan>, DatabaseError> {
    let rows = returned.unwrap_or_default().rows.into_iter();
    let rows: Vec<[u64; 3]> = rows.map(|row| sql::numbers("terms", row)).collect::<Result<_, _>>()?;
    Ok(match rows[..] {
        [[found, began_at, _], ..] if found == term.0 => {
            Some(TermSpan { began_at, next_began_at: rows.get(1).map(|[_, began_at, _]| *began_at) })
        }
        _ => None,
    })
}
