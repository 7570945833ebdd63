//! Reads. Everything that must be consistent is read in one transaction, usually in one packet.

use super::{
    Home,
    connections::{Connections, Returned},
    sql,
};
use crate::{
    DatabaseError, LogError, LogPart,
    log::{self, TermSpan},
    read::{Rows, Select, answers, decode, selects},
    rows::{Key, Row},
    tables::{ASSOCIATIONS, CHANGES, PARTITIONS, Table},
};
use kith_live::{RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionCount, PartitionId, Term};
use std::collections::BTreeMap;

/// Runs `statements` and a statement that reads the end of the log of `partition`, in one snapshot.
async fn snapshot(
    readers: &Connections,
    partition: PartitionId,
    statements: Vec<String>,
) -> Result<(LogPoint, Vec<Returned>), DatabaseError> {
    let mut packet = vec![sql::BEGIN_SNAPSHOT.to_owned(), sql::point(partition)];
    packet.extend(statements);
    packet.push(sql::COMMIT.to_owned());
    let (lease, returned) = readers.begin(&packet).await?;
    lease.give_back();
    let mut returned = returned.into_iter().skip(1);
    let at = one_point(partition, returned.next())?;
    let mut returned: Vec<Returned> = returned.collect();
    returned.pop();
    Ok((at, returned))
}

/// Returns the end of a log from the answer to [`sql::point`].
pub(super) fn one_point(
    partition: PartitionId,
    returned: Option<Returned>,
) -> Result<LogPoint, DatabaseError> {
    let mut points: Vec<LogPoint> = decode(rows(&PARTITIONS, returned.unwrap_or_default())?)?;
    let missing = || DatabaseError::damaged(format!("the table partitions has no row of {partition}"));
    points.pop().ok_or_else(missing)
}

/// Returns the leader of a term from the answer to [`sql::terms`].
pub(super) fn leader_of(term: Term, returned: Option<Returned>) -> Result<Option<u64>, DatabaseError> {
    let mut leader = None;
    for row in returned.unwrap_or_default().rows {
        let [found, _, known] = sql::numbers("terms", row)?;
        leader = leader.or((found == term.0).then_some(known));
    }
    Ok(leader)
}

fn rows(table: &'static Table, returned: Returned) -> Result<Rows, DatabaseError> {
    let kinds = table.read_columns().map(|column| column.kind);
    returned.rows.into_iter().map(|row| sql::cells(table.name, kinds.clone(), row)).collect()
}

pub(super) async fn read(
    readers: &Connections,
    partition: PartitionId,
    queries: Vec<RowQuery>,
    partitions: PartitionCount,
) -> Result<RowsAt, DatabaseError> {
    let selects = selects(&queries, partitions);
    let statements: Vec<Vec<String>> = selects.iter().map(|select| statements(partition, select)).collect();
    let counts: Vec<usize> = statements.iter().map(Vec::len).collect();
    let (at, returned) = snapshot(readers, partition, statements.concat()).await?;
    let mut returned = returned.into_iter();
    let mut found = Vec::with_capacity(selects.len());
    for (select, count) in selects.iter().zip(counts) {
        let (table, limit) = match select {
            Select::Keys { table, .. } | Select::All(table) => (*table, usize::MAX),
            Select::List { limit, .. } => (&ASSOCIATIONS, *limit as usize),
        };
        let mut all = Rows::new();
        for returned in returned.by_ref().take(count) {
            all.extend(rows(table, returned)?);
        }
        all.truncate(limit);
        found.push(all);
    }
    Ok(RowsAt { at, answers: answers(queries, &selects, found)? })
}

fn statements(partition: PartitionId, select: &Select) -> Vec<String> {
    match select {
        Select::Keys { table, keys } => sql::select_keys(table, partition, keys),
        Select::All(table) => vec![sql::select_all(table, partition)],
        Select::List { list, after, limit } => sql::list(partition, *list, *after, *limit),
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
    let ends = returned.next().unwrap_or_default().rows.into_iter();
    home.check(returned.next())?;
    let found: BTreeMap<PartitionId, LogPoint> = ends.map(sql::partition_point).collect::<Result<_, _>>()?;
    let point = |partition: &PartitionId| {
        let missing = || DatabaseError::damaged(format!("the table partitions has no row of {partition}"));
        found.get(partition).copied().ok_or_else(missing)
    };
    partitions.iter().map(point).collect()
}

pub(super) async fn scan<R: Row>(
    readers: &Connections,
    partition: PartitionId,
    after: Option<&Key>,
    limit: u32,
) -> Result<(LogPoint, Vec<R>), DatabaseError> {
    let statement = sql::scan(R::TABLE, partition, after, limit);
    let (at, returned) = snapshot(readers, partition, vec![statement]).await?;
    let returned = returned.into_iter().next().unwrap_or_default();
    Ok((at, decode(rows(R::TABLE, returned)?)?))
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
    let mut returned = lease.run(&second).await.map_err(DatabaseError::from)?.into_iter();
    lease.give_back();
    log::check(partition, after, span, end)?;
    let entries = decode(rows(&CHANGES, returned.next().unwrap_or_default())?)?;
    log::part(partition, after, entries, end)
}

/// Returns the span of a term from the answer to [`sql::terms`].
pub(super) fn span(term: Term, returned: Option<Returned>) -> Result<Option<TermSpan>, DatabaseError> {
    let rows = returned.unwrap_or_default().rows.into_iter();
    let rows: Vec<[u64; 3]> = rows.map(|row| sql::numbers("terms", row)).collect::<Result<_, _>>()?;
    Ok(match rows[..] {
        [[found, began_at, _], ..] if found == term.0 => {
            Some(TermSpan { began_at, next_began_at: rows.get(1).map(|[_, began_at, _]| *began_at) })
        }
        _ => None,
    })
}
