//! Write transactions. `COMMIT` always has a packet of its own, so a failure of an earlier packet means that nothing
//! was written.

use super::{
    Home,
    connections::{Connections, Lease, PacketError, StatementResult, first_packet},
    failure::commit_failure,
    session::PacketSizes,
    snapshot::{leader_of, one_point, span},
    sql,
};
use crate::{
    BeginTerm, CommitError, DatabaseError, Trim, TrimResult,
    fold::{Fence, TableWrites, Writes},
    log,
    tables::{CHANGES, Cell, TERMS},
    unique::UniqueWrites,
};
use kith_types::{LogPoint, PartitionId};
use std::collections::BTreeMap;

/// The maximum number of attempts at a transaction if the server rolls it back in favour of another one.
const TRIES: u32 = 4;
/// The maximum number of attempts at a transaction with unique values. Such transactions meet at the same values
/// whatever their partitions.
const TRIES_UNIQUE: u32 = 12;

/// The reason why a transaction failed.
struct Stopped {
    error: CommitError,
    /// Whether the transaction was rolled back in favour of another one, so that another try may succeed.
    is_victim: bool,
}

impl From<CommitError> for Stopped {
    fn from(error: CommitError) -> Self {
        Self { error, is_victim: false }
    }
}

impl From<PacketError> for Stopped {
    fn from(error: PacketError) -> Self {
        Self { is_victim: error.is_victim(), error: before(error) }
    }
}

/// Writes a batch. Servers may lock more than the rows of a batch, so transactions of neighbouring partitions' leaders
/// may conflict.
pub(super) async fn commit(writers: &Connections, writes: &Writes) -> Result<(), CommitError> {
    if writes.fences.is_empty() {
        return Ok(());
    }
    let tries_max = if writes.uniques.is_empty() { TRIES } else { TRIES_UNIQUE };
    let mut tries = 1;
    loop {
        let sizes = writers.sizes();
        check_sizes(writes, sizes)?;
        match try_commit(writers, writes, sizes.statements, 1 < tries).await {
            Err(Stopped { is_victim: true, .. }) if tries < tries_max => tries += 1,
            // A new connection reported that the server now accepts less. If a packet is too large, the server may
            // close the connection before its reason arrives, so the error can be of any kind.
            Err(Stopped { error: CommitError::NotWritten(_), .. })
                if tries < tries_max && writers.sizes().value < sizes.value =>
            {
                tries += 1;
            }
            other => return other.map_err(|stopped| stopped.error),
        }
    }
}

/// Refuses values that the server would refuse. It may close the connection in the middle of such a packet, in which case
/// its reason would be lost.
fn check_sizes(writes: &Writes, sizes: PacketSizes) -> Result<(), DatabaseError> {
    let puts = writes.tables.iter().flat_map(|table| &table.puts).chain(&writes.changes);
    let length = |cell: &Cell| if let Cell::Bytes(bytes) = cell { bytes.len() } else { 0 };
    let longest = puts.flatten().map(length).max().unwrap_or_default();
    if longest <= sizes.value {
        return Ok(());
    }
    let value_max = sizes.value;
    let reason = format!(
        "a value has {longest} bytes, and max_allowed_packet of the server allows values of {value_max} bytes: set \
         max_allowed_packet = 16M"
    );
    Err(DatabaseError::TooLarge { reason, value_max: Some(value_max as u64) })
}

/// Tries to write a batch, usually in two round trips: the fence with the rows, then the commit. More round trips are
/// needed if the rows take several packets. If the fence matched too few rows, rows that were already written are
/// rolled back.
///
/// Of two transactions that wait for each other's unique values, the server rolls one back. When it is tried again
/// (`is_repeat`), it waits for all others that are tried again.
async fn try_commit(
    writers: &Connections,
    writes: &Writes,
    packet: usize,
    is_repeat: bool,
) -> Result<(), Stopped> {
    let mut all = vec![sql::BEGIN.to_owned()];
    all.extend((is_repeat && !writes.uniques.is_empty()).then(|| sql::LOCK_VALUES.to_owned()));
    all.push(sql::fence(&writes.fences));
    let fence = all.len() - 1;
    for (partition, point) in &writes.requires {
        all.extend([sql::point(*partition), sql::terms(*partition, point.term)]);
    }
    all.extend(statements(writes, packet));
    let (first, rest) = all.split_at(first_packet(&all, packet));
    let (mut lease, returned) = match writers.begin(first).await {
        Err(error) if error.is_refusal() => return Err(refused(writers, &writes.fences, error).await.into()),
        other => other?,
    };
    let moved = returned.get(fence).map_or(0, |returned| returned.affected);
    if moved != writes.fences.len() as u64 {
        roll_back(&mut lease).await?;
        return Err(elsewhere(lease, &writes.fences).await.into());
    }
    let mut returned = returned.into_iter().skip(fence + 1);
    if let Err(error) = contained(&writes.requires, &mut returned) {
        roll_back(&mut lease).await?;
        lease.give_back();
        return Err(error.into());
    }
    let later = lease.write_all(rest).await?;
    if let Err(error) = free(&writes.uniques, returned.chain(later)) {
        roll_back(&mut lease).await?;
        lease.give_back();
        return Err(error.into());
    }
    end(lease).await
}

/// Checks that no other objects have the unique values of a transaction, from the answers to its statements. The rows that
/// the transaction returns after the required places are those of [`sql::value_holders`].
fn free(uniques: &UniqueWrites, returned: impl Iterator<Item = StatementResult>) -> Result<(), CommitError> {
    if uniques.is_empty() {
        return Ok(());
    }
    let rows = returned.flat_map(|returned| returned.rows).map(sql::value_holder);
    uniques.check(rows.collect::<Result<_, _>>()?)
}

/// Checks that logs contain the required places, from the answers to [`sql::point`] and [`sql::terms`] for each place.
fn contained(
    requires: &[(PartitionId, LogPoint)],
    returned: &mut impl Iterator<Item = StatementResult>,
) -> Result<(), CommitError> {
    requires.iter().try_for_each(|&(partition, point)| {
        let end = one_point(partition, returned.next())?;
        let span = span(point.term, returned.next())?;
        log::check(partition, point, span, end).map_err(CommitError::lacks)
    })
}

/// Returns why the server refused a statement. Another leader may have written rows, in which case the fence had
/// already matched too few rows.
async fn refused(writers: &Connections, fences: &[Fence], error: PacketError) -> CommitError {
    match writers.lease().await.map_err(before) {
        Ok(lease) => match elsewhere(lease, fences).await {
            moved @ (CommitError::Fenced { .. } | CommitError::Moved { .. }) => moved,
            _ => before(error),
        },
        Err(_) => before(error),
    }
}

/// Returns the statements that write, each of at most `most` bytes unless it has only one row.
fn statements(writes: &Writes, most: usize) -> Vec<String> {
    let (freed, taken) = (writes.uniques.freed(), writes.uniques.taken());
    let mut statements = sql::free_values(&freed, most);
    statements.extend(sql::take_values(&taken, most));
    statements.extend(sql::value_holders(&taken));
    statements.extend(writes.stamp_drops.iter().map(sql::drop_stamps));
    for TableWrites { table, puts, deletes } in &writes.tables {
        statements.extend(sql::delete(table, deletes, most));
        statements.extend(sql::insert(table, puts, true, most));
    }
    statements.extend(sql::insert(&CHANGES, &writes.changes, false, most));
    statements
}

/// Returns the number of rows that the last statement matched.
fn affected(returned: &[StatementResult]) -> u64 {
    returned.last().map_or(0, |returned| returned.affected)
}

fn before(error: PacketError) -> CommitError {
    error.failure().into()
}

async fn end(mut lease: Lease<'_>) -> Result<(), Stopped> {
    let error = match lease.run(&[sql::COMMIT.to_owned()]).await {
        Ok(_) => {
            lease.give_back();
            return Ok(());
        }
        Err(error) => error,
    };
    let is_victim = error.is_victim();
    let error = match error {
        PacketError::Failed(error) => commit_failure(&error),
        other => CommitError::Unknown { reason: other.failure().to_string() },
    };
    Err(Stopped { error, is_victim })
}

/// Ends a transaction that changed nothing or whose changes are not wanted. If this fails, its connection is closed.
async fn roll_back(lease: &mut Lease<'_>) -> Result<(), CommitError> {
    lease.run(&[sql::ROLLBACK.to_owned()]).await.map(|_| ()).map_err(before)
}

/// Finds the log that does not end where it should. No transaction may be open, because an open transaction would see
/// some of the ends already moved.
async fn elsewhere(mut lease: Lease<'_>, fences: &[Fence]) -> CommitError {
    let read = async {
        let statement = sql::points(fences.iter().map(|fence| fence.partition));
        let returned = lease.run(&[statement]).await.map_err(before)?;
        lease.give_back();
        let rows = returned.into_iter().flat_map(|returned| returned.rows);
        Ok(rows.map(sql::partition_point).collect::<Result<BTreeMap<_, _>, _>>()?)
    };
    let found: BTreeMap<PartitionId, LogPoint> = match read.await {
        Ok(found) => found,
        Err(error) => return error,
    };
    for Fence { partition, expected, .. } in fences {
        match found.get(partition) {
            None => {
                let detail = format!("the table partitions has no row of {partition}");
                return DatabaseError::damaged(detail).into();
            }
            Some(found) if found != expected => {
                return CommitError::elsewhere(*partition, *expected, *found);
            }
            Some(_) => {}
        }
    }
    DatabaseError::unavailable("the ends of the logs moved while the transaction looked at them").into()
}

pub(super) async fn begin_term(
    writers: &Connections,
    home: &Home,
    request: BeginTerm,
) -> Result<LogPoint, CommitError> {
    let BeginTerm { partition, term, leader } = request;
    // The lock comes first. While it is held, the tables cannot be replaced.
    let lock = sql::point_for_update(partition);
    let first = [sql::BEGIN.to_owned(), lock, sql::terms(partition, term), sql::META.to_owned()];
    let (mut lease, returned) = writers.begin(&first).await.map_err(before)?;
    let mut returned = returned.into_iter().skip(1);
    let (point, terms) = (returned.next(), returned.next());
    home.check(returned.next())?;
    let found = one_point(partition, point)?;
    let known = leader_of(term, terms)?;
    if term <= found.term {
        roll_back(&mut lease).await?;
        lease.give_back();
        let is_repeat = term == found.term && known == Some(leader);
        return if is_repeat { Ok(found) } else { Err(CommitError::Fenced { partition, found }) };
    }
    let row =
        [Cell::Small(partition.0), Cell::Wide(term.0), Cell::Wide(found.position.0), Cell::Wide(leader)];
    let mut statements = vec![sql::raise_term(partition, term)];
    statements.extend(sql::insert(&TERMS, &[row.to_vec()], false, sql::PACKET_BYTES));
    lease.run(&statements).await.map_err(before)?;
    end(lease).await.map_err(|stopped| stopped.error)?;
    Ok(LogPoint { term, ..found })
}

/// Removes old changes and outcomes. Each statement is a transaction of its own, so that each deletion holds its locks
/// only briefly.
pub(super) async fn trim(
    writers: &Connections,
    partition: PartitionId,
    trim: Trim,
) -> Result<TrimResult, DatabaseError> {
    let (mut lease, returned) = writers.begin(&[sql::written(partition, 1)]).await?;
    let mut trimmed = TrimResult::default();
    // Usually the oldest change stays, and the others need not be read.
    if log::cut(trim, &written(returned)?).is_some() {
        let first = lease.run(&[sql::written(partition, log::TRIMMED_MAX)]).await?;
        if let Some(before) = log::cut(trim, &written(first)?) {
            trimmed.changes = affected(&lease.run(&[sql::delete_changes(partition, before)]).await?);
        }
    }
    let outcomes = sql::delete_outcomes(partition, trim.outcomes_before_ms);
    trimmed.outcomes = affected(&lease.run(&[outcomes]).await?);
    lease.give_back();
    let most = u64::from(log::TRIMMED_MAX);
    trimmed.more = trimmed.changes == most || trimmed.outcomes == most;
    Ok(trimmed)
}

/// Returns positions and times of changes.
fn written(returned: Vec<StatementResult>) -> Result<Vec<(u64, u64)>, DatabaseError> {
    let rows = returned.into_iter().flat_map(|returned| returned.rows);
    rows.map(|row| sql::numbers(CHANGES.name, row).map(|[position, at]| (position, at))).collect()
}
