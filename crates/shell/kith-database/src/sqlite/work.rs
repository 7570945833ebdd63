//! The operations of the writer inside a transaction.

use super::{failure::failure, home::Home, sql};
use crate::{
    BeginTerm, CommitError, DatabaseError, Trim, TrimResult,
    fold::{Fence, StampDrop, TableWrites, Writes},
    log::{self, TermSpan},
    tables::{CHANGES, Cell, TERMS},
    unique::UniqueWrites,
};
use kith_types::{LogPoint, PartitionId};
use rusqlite::{Connection, OptionalExtension, params, params_from_iter};
use std::sync::Arc;

/// One operation, which runs in its own savepoint.
#[derive(Debug)]
pub(super) enum Work {
    Commit(Writes),
    /// Begins a term if the file is still that of the graph.
    BeginTerm(BeginTerm, Arc<Home>),
    Trim(PartitionId, Trim),
}

/// The result of an operation.
#[derive(Debug)]
pub(super) enum WorkResult {
    Committed,
    Began(LogPoint),
    Trimmed(TrimResult),
}

impl Work {
    pub fn run(&self, connection: &Connection) -> Result<WorkResult, CommitError> {
        match self {
            Work::Commit(writes) => commit(connection, writes).map(|()| WorkResult::Committed),
            Work::BeginTerm(request, home) => {
                home.check(connection)?;
                begin_term(connection, *request).map(WorkResult::Began)
            }
            Work::Trim(partition, it) => Ok(WorkResult::Trimmed(trim(connection, *partition, *it)?)),
        }
    }
}

/// Returns the end of the log of a partition.
pub(super) fn point(connection: &Connection, partition: PartitionId) -> Result<LogPoint, DatabaseError> {
    let mut statement = connection.prepare_cached(sql::POINT).map_err(|error| failure(&error))?;
    let point = statement
        .query_row([partition.0], |row| Ok(LogPoint::new(sql::plain(row.get(0)?), sql::plain(row.get(1)?))))
        .optional()
        .map_err(|error| failure(&error))?;
    point.ok_or_else(|| DatabaseError::damaged(format!("the table partitions has no row of {partition}")))
}

fn execute(
    connection: &Connection,
    statement: &str,
    cells: impl IntoIterator<Item = Cell>,
) -> Result<usize, DatabaseError> {
    let run = || connection.prepare_cached(statement)?.execute(params_from_iter(cells));
    run().map_err(|error| failure(&error))
}

fn commit(connection: &Connection, writes: &Writes) -> Result<(), CommitError> {
    writes.fences.iter().try_for_each(|fence| check(connection, fence))?;
    for &(partition, required) in &writes.requires {
        let span = span(connection, partition, required.term.0)?;
        let end = point(connection, partition)?;
        log::check(partition, required, span, end).map_err(CommitError::lacks)?;
    }
    take_values(connection, &writes.uniques)?;
    for StampDrop { partition, from, before } in &writes.stamp_drops {
        let cells = [
            Cell::Small(partition.0),
            Cell::Small(from.0),
            Cell::Wide(before.term.0),
            Cell::Wide(before.position.0),
        ];
        execute(connection, sql::DROP_STAMPS, cells)?;
    }
    for TableWrites { table, puts, deletes } in &writes.tables {
        each(connection, &sql::delete(table), deletes)?;
        each(connection, &sql::insert(table, true), puts)?;
    }
    Ok(each(connection, &sql::insert(&CHANGES, false), &writes.changes)?)
}

fn check(connection: &Connection, fence: &Fence) -> Result<(), CommitError> {
    let Fence { partition, expected, end } = *fence;
    let cells = [
        Cell::Small(partition.0),
        Cell::Wide(expected.term.0),
        Cell::Wide(expected.position.0),
        Cell::Wide(end.position.0),
    ];
    if execute(connection, sql::FENCE, cells)? == 1 {
        return Ok(());
    }
    Err(CommitError::elsewhere(partition, expected, point(connection, partition)?))
}

/// Changes which objects have unique values.
fn take_values(connection: &Connection, uniques: &UniqueWrites) -> Result<(), CommitError> {
    each(connection, sql::FREE_VALUE, &uniques.freed())?;
    let mut found = Vec::new();
    for row in uniques.taken() {
        if execute(connection, sql::TAKE_VALUE, row.clone())? == 0 {
            found.push(holder(connection, &row[..2]).map_err(|error| failure(&error))?);
        }
    }
    uniques.check(found)
}

/// Returns the row of the table `unique_values` with this key.
fn holder(connection: &Connection, key: &[Cell]) -> rusqlite::Result<Vec<Cell>> {
    let mut statement = connection.prepare_cached(sql::VALUE_HOLDER)?;
    let id = statement.query_row(params_from_iter(key), |row| row.get(0))?;
    Ok([key, &[Cell::Wide(sql::plain(id))]].concat())
}

fn each(connection: &Connection, statement: &str, rows: &[Vec<Cell>]) -> Result<(), DatabaseError> {
    if rows.is_empty() {
        return Ok(());
    }
    let run = || {
        let mut statement = connection.prepare_cached(statement)?;
        rows.iter().try_for_each(|row| statement.execute(params_from_iter(row)).map(|_| ()))
    };
    run().map_err(|error| failure(&error))
}

fn begin_term(connection: &Connection, request: BeginTerm) -> Result<LogPoint, CommitError> {
    let BeginTerm { partition, term, leader } = request;
    let found = point(connection, partition)?;
    if term < found.term || term.0 == 0 {
        return Err(CommitError::Fenced { partition, found });
    }
    if term == found.term {
        let known = wide(connection, sql::LEADER, partition, term.0)?;
        let is_repeat = known == Some(leader);
        return if is_repeat { Ok(found) } else { Err(CommitError::Fenced { partition, found }) };
    }
    execute(connection, sql::RAISE_TERM, [Cell::Small(partition.0), Cell::Wide(term.0)])?;
    let row =
        [Cell::Small(partition.0), Cell::Wide(term.0), Cell::Wide(found.position.0), Cell::Wide(leader)];
    execute(connection, &sql::insert(&TERMS, false), row)?;
    Ok(LogPoint { term, ..found })
}

/// Returns the positions that belong to a term; `None` if the term never began.
pub(super) fn span(
    connection: &Connection,
    partition: PartitionId,
    term: u64,
) -> Result<Option<TermSpan>, DatabaseError> {
    let Some(began_at) = wide(connection, sql::BEGAN_AT, partition, term)? else { return Ok(None) };
    let next_began_at = wide(connection, sql::NEXT_BEGAN_AT, partition, term)?;
    Ok(Some(TermSpan { began_at, next_began_at }))
}

/// Returns the number that a statement about a term reads, if there is one.
fn wide(
    connection: &Connection,
    statement: &str,
    partition: PartitionId,
    term: u64,
) -> Result<Option<u64>, DatabaseError> {
    let read = || {
        let mut statement = connection.prepare_cached(statement)?;
        statement.query_row(params![partition.0, sql::stored(term)], |row| row.get(0)).optional()
    };
    read().map(|number| number.map(sql::plain)).map_err(|error| failure(&error))
}

fn trim(connection: &Connection, partition: PartitionId, trim: Trim) -> Result<TrimResult, DatabaseError> {
    let written = written_and_old(connection, partition, trim).map_err(|error| failure(&error))?;
    let mut trimmed = TrimResult::default();
    if let Some(before) = log::cut(trim, &written) {
        let cells = [Cell::Small(partition.0), Cell::Wide(before.0)];
        trimmed.changes = execute(connection, sql::DELETE_CHANGES, cells)? as u64;
    }
    let cells =
        [Cell::Small(partition.0), Cell::Wide(trim.outcomes_before_ms), Cell::Small(log::TRIMMED_MAX)];
    trimmed.outcomes = execute(connection, sql::DELETE_OUTCOMES, cells)? as u64;
    let most = u64::from(log::TRIMMED_MAX);
    trimmed.more = trimmed.changes == most || trimmed.outcomes == most;
    Ok(trimmed)
}

/// Returns positions and times of the first changes, up to the first change that stays.
fn written_and_old(
    connection: &Connection,
    partition: PartitionId,
    trim: Trim,
) -> rusqlite::Result<Vec<(u64, u64)>> {
    let mut statement = connection.prepare_cached(sql::WRITTEN)?;
    let mut rows = statement.query(params![partition.0, log::TRIMMED_MAX])?;
    let mut written = Vec::new();
    while let Some(row) = rows.next()? {
        let (position, written_ms) = (sql::plain(row.get(0)?), sql::plain(row.get(1)?));
        if !log::may_go(trim, position, written_ms) {
            break;
        }
        written.push((position, written_ms));
    }
    Ok(written)
}
