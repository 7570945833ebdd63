//! The dialect of MySQL, MariaDB and databases that speak their protocol: tables and statements. Statements contain
//! their values as numbers and hexadecimal strings, so that several statements fit into one packet without being
//! prepared first.

use crate::{
    DatabaseError, GraphIdentity, SCHEMA_VERSION,
    fold::{Fence, StampDrop},
    log,
    rows::Key,
    tables::{
        ALL, ASSOCIATIONS, CHANGES, Cell, Column, INDEX_ENTRIES, Kind, PARTITIONS, TERMS, Table,
        UNIQUE_VALUES, names,
    },
};
use kith_live::{IndexId, ListKey, ListPlace};
use kith_types::{LogPoint, PartitionId, Position, Term};
use mysql_async::{Row, Value};
use std::fmt::Write as _;

/// The most bytes of statements in one packet, unless a single statement is longer or the server accepts less. The smallest
/// default of `max_allowed_packet` in supported servers is 4 MiB, and an object of 1 MiB takes 2 MiB.
pub(super) const PACKET_BYTES: usize = 3 << 20;
/// The most keys that one statement reads.
const KEYS_MAX: usize = 500;
/// The most rows that one statement inserts into `partitions`.
const PARTITIONS_MAX: u32 = 8192;

pub(super) const BEGIN: &str = "START TRANSACTION";
pub(super) const BEGIN_SNAPSHOT: &str = "START TRANSACTION WITH CONSISTENT SNAPSHOT";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";
pub(super) const META: &str = "SELECT schema_version, graph, partitions FROM meta";

/// For each version, the statements that migrate the tables from the version before. Those of the first version create
/// the tables. Statements that change tables are not part of a transaction here, so each of them may be repeated.
pub(super) static MIGRATIONS: [&[&str]; 1] = [&[
    "CREATE TABLE IF NOT EXISTS meta (
        one INT UNSIGNED NOT NULL PRIMARY KEY, schema_version INT UNSIGNED NOT NULL,
        graph BIGINT UNSIGNED NOT NULL, partitions INT UNSIGNED NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS partitions (
        partition_id INT UNSIGNED NOT NULL PRIMARY KEY, term BIGINT UNSIGNED NOT NULL,
        position BIGINT UNSIGNED NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS terms (
        partition_id INT UNSIGNED NOT NULL, term BIGINT UNSIGNED NOT NULL, began_at BIGINT UNSIGNED NOT NULL,
        leader BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (partition_id, term)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS changes (
        partition_id INT UNSIGNED NOT NULL, position BIGINT UNSIGNED NOT NULL, term BIGINT UNSIGNED NOT NULL,
        written_ms BIGINT UNSIGNED NOT NULL, bytes MEDIUMBLOB NOT NULL,
        PRIMARY KEY (partition_id, position)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS objects (
        partition_id INT UNSIGNED NOT NULL, id BIGINT UNSIGNED NOT NULL, type INT UNSIGNED NOT NULL,
        term BIGINT UNSIGNED NOT NULL, position BIGINT UNSIGNED NOT NULL, schema_id INT UNSIGNED NOT NULL,
        data MEDIUMBLOB NOT NULL,
        PRIMARY KEY (partition_id, id)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS associations (
        partition_id INT UNSIGNED NOT NULL, id1 BIGINT UNSIGNED NOT NULL, type INT UNSIGNED NOT NULL,
        id2 BIGINT UNSIGNED NOT NULL, time BIGINT UNSIGNED NOT NULL, term BIGINT UNSIGNED NOT NULL,
        position BIGINT UNSIGNED NOT NULL, schema_id INT UNSIGNED NOT NULL, data MEDIUMBLOB NOT NULL,
        PRIMARY KEY (partition_id, id1, type, id2),
        KEY associations_newest (partition_id, id1, type, time DESC, id2)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS counts (
        partition_id INT UNSIGNED NOT NULL, id1 BIGINT UNSIGNED NOT NULL, type INT UNSIGNED NOT NULL,
        length BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (partition_id, id1, type)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS intents (
        partition_id INT UNSIGNED NOT NULL, term BIGINT UNSIGNED NOT NULL, position BIGINT UNSIGNED NOT NULL,
        bytes MEDIUMBLOB NOT NULL,
        PRIMARY KEY (partition_id, term, position)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS pair_stamps (
        partition_id INT UNSIGNED NOT NULL, ordered_by INT UNSIGNED NOT NULL, low BIGINT UNSIGNED NOT NULL,
        high BIGINT UNSIGNED NOT NULL, term BIGINT UNSIGNED NOT NULL, position BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (partition_id, ordered_by, low, high),
        KEY pair_stamps_oldest (partition_id, ordered_by, term, position)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS floors (
        partition_id INT UNSIGNED NOT NULL, ordered_by INT UNSIGNED NOT NULL, term BIGINT UNSIGNED NOT NULL,
        position BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (partition_id, ordered_by)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS outcomes (
        partition_id INT UNSIGNED NOT NULL, write_id VARBINARY(64) NOT NULL,
        decided_ms BIGINT UNSIGNED NOT NULL, bytes BLOB NOT NULL,
        PRIMARY KEY (partition_id, write_id),
        KEY outcomes_oldest (partition_id, decided_ms)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS index_entries (
        partition_id INT UNSIGNED NOT NULL, index_id INT UNSIGNED NOT NULL, value VARBINARY(65) NOT NULL,
        id BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (partition_id, index_id, value, id)) ENGINE=InnoDB",
    "CREATE TABLE IF NOT EXISTS unique_values (
        index_id INT UNSIGNED NOT NULL, value VARBINARY(65) NOT NULL, id BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (index_id, value)) ENGINE=InnoDB",
]];

/// The name may contain anything.
pub(super) fn create_database(name: &str) -> String {
    format!("CREATE DATABASE IF NOT EXISTS `{}`", name.replace('`', "``"))
}

/// Inserts the rows of the table `partitions` for a new graph.
pub(super) fn put_partitions(identity: GraphIdentity) -> Vec<String> {
    let count = identity.partitions.get();
    let chunk = |first: u32| {
        let last = count.min(first + PARTITIONS_MAX);
        let rows: Vec<_> = (first..last).map(|partition| format!("({partition}, 0, 0)")).collect();
        format!("INSERT IGNORE INTO partitions (partition_id, term, position) VALUES {}", rows.join(", "))
    };
    (0..count).step_by(PARTITIONS_MAX as usize).map(chunk).collect()
}

pub(super) fn put_meta(identity: GraphIdentity) -> String {
    let GraphIdentity { graph, partitions } = identity;
    format!(
        "INSERT IGNORE INTO meta (one, schema_version, graph, partitions)
         VALUES (1, {SCHEMA_VERSION}, {graph}, {partitions})"
    )
}

/// Removes all tables. `meta` is removed last: while it exists, the other tables are known to belong to its graph.
pub(super) fn drop_tables() -> [String; 2] {
    let tables: Vec<_> = ALL.iter().map(|table| table.name).collect();
    [format!("DROP TABLE IF EXISTS {}", tables.join(", ")), "DROP TABLE IF EXISTS meta".to_owned()]
}

pub(super) fn set_version() -> String {
    format!("UPDATE meta SET schema_version = {SCHEMA_VERSION} WHERE one = 1")
}

/// Moves the ends of logs. It must match as many rows as there are fences; otherwise the transaction must be rolled
/// back.
pub(super) fn fence(fences: &[Fence]) -> String {
    let mut ends = String::new();
    let mut expected = Vec::new();
    for Fence { partition: PartitionId(partition), expected: at, end } in fences {
        let (term, position) = (at.term.0, at.position.0);
        let _ = write!(ends, " WHEN {partition} THEN {}", end.position.0);
        expected.push(format!("(partition_id = {partition} AND term = {term} AND position = {position})"));
    }
    format!("UPDATE partitions SET position = CASE partition_id{ends} END WHERE {}", expected.join(" OR "))
}

/// Reads the ends of logs, with their partitions.
pub(super) fn points(partitions: impl Iterator<Item = PartitionId>) -> String {
    let partitions: Vec<_> = partitions.map(|partition| partition.0.to_string()).collect();
    let columns = names(PARTITIONS.columns());
    format!("SELECT {columns} FROM partitions WHERE partition_id IN ({})", partitions.join(", "))
}

/// Reads the end of one log.
pub(super) fn point(partition: PartitionId) -> String {
    format!("{} WHERE partition_id = {}", PARTITIONS.select(), partition.0)
}

/// Reads the end of one log, and locks it until the transaction ends.
pub(super) fn point_for_update(partition: PartitionId) -> String {
    format!("{} FOR UPDATE", point(partition))
}

pub(super) fn raise_term(partition: PartitionId, term: Term) -> String {
    format!("UPDATE partitions SET term = {} WHERE partition_id = {}", term.0, partition.0)
}

/// Reads the row of a term and that of the next term.
pub(super) fn terms(partition: PartitionId, term: Term) -> String {
    let (select, partition, term) = (TERMS.select(), partition.0, term.0);
    format!("{select} WHERE partition_id = {partition} AND {term} <= term ORDER BY term LIMIT 2")
}

pub(super) fn drop_stamps(drop: &StampDrop) -> String {
    let StampDrop { partition: PartitionId(partition), from: PartitionId(from), before } = drop;
    let (term, position) = (before.term.0, before.position.0);
    format!(
        "DELETE FROM pair_stamps WHERE partition_id = {partition} AND ordered_by = {from}
         AND (term < {term} OR (term = {term} AND position < {position}))"
    )
}

/// Reads positions and times of the first changes, at most `limit`.
pub(super) fn written(partition: PartitionId, limit: u32) -> String {
    let partition = partition.0;
    format!(
        "SELECT position, written_ms FROM changes WHERE partition_id = {partition} ORDER BY position LIMIT {limit}"
    )
}

pub(super) fn delete_changes(partition: PartitionId, before: Position) -> String {
    format!("DELETE FROM changes WHERE partition_id = {} AND position < {}", partition.0, before.0)
}

pub(super) fn delete_outcomes(partition: PartitionId, before_ms: u64) -> String {
    let (partition, limit) = (partition.0, log::TRIMMED_MAX);
    format!(
        "DELETE FROM outcomes WHERE partition_id = {partition} AND decided_ms < {before_ms}
         ORDER BY decided_ms LIMIT {limit}"
    )
}

/// Reads positions and sizes of the changes after a position.
pub(super) fn change_sizes(partition: PartitionId, after: Position) -> String {
    let (partition, after, limit) = (partition.0, after.0, log::ENTRIES_MAX);
    format!(
        "SELECT position, LENGTH(bytes) FROM changes WHERE partition_id = {partition} AND {after} < position
         ORDER BY position LIMIT {limit}"
    )
}

/// Reads the changes after a position, up to and including `last`.
pub(super) fn changes(partition: PartitionId, after: Position, last: u64) -> String {
    let (select, partition, after) = (CHANGES.select(), partition.0, after.0);
    format!(
        "{select} WHERE partition_id = {partition} AND {after} < position AND position <= {last}
         ORDER BY position"
    )
}

/// Inserts rows, in as many statements as packets of `most` bytes require. With `replace`, a row replaces an existing row
/// with the same key; without it, an existing row is an error.
pub(super) fn insert(table: &'static Table, rows: &[Vec<Cell>], replace: bool, most: usize) -> Vec<String> {
    let head = format!("INSERT INTO {} ({}) VALUES ", table.name, names(table.columns()));
    let set = table.rest.iter().map(|column| format!("{0} = VALUES({0})", column.name));
    let mut set: Vec<_> = set.collect();
    if set.is_empty() {
        // A row that is only a key stays as it is.
        set.push(format!("{0} = {0}", table.key[0].name));
    }
    let tail = format!(" ON DUPLICATE KEY UPDATE {}", set.join(", "));
    packed(&head, rows.iter().map(|row| tuple(row)), ", ", if replace { &tail } else { "" }, most)
}

/// Makes transactions that change unique values wait for each other, until they end.
pub(super) const LOCK_VALUES: &str = "SELECT one FROM meta WHERE one = 1 FOR UPDATE";

/// Gives unique values to objects. Values that other objects have stay as they are.
pub(super) fn take_values(rows: &[Vec<Cell>], most: usize) -> Vec<String> {
    let head = format!("INSERT INTO {} ({}) VALUES ", UNIQUE_VALUES.name, names(UNIQUE_VALUES.columns()));
    packed(&head, rows.iter().map(|row| tuple(row)), ", ", " ON DUPLICATE KEY UPDATE id = id", most)
}

/// Takes unique values from objects, if they have them.
pub(super) fn free_values(rows: &[Vec<Cell>], most: usize) -> Vec<String> {
    let head = format!("DELETE FROM {} WHERE ", UNIQUE_VALUES.name);
    let columns: Vec<Column> = UNIQUE_VALUES.columns().copied().collect();
    packed(&head, rows.iter().map(|row| format!("({})", is_key(&columns, row))), " OR ", "", most)
}

/// Reads which objects have unique values.
pub(super) fn value_holders(rows: &[Vec<Cell>]) -> Vec<String> {
    let head = format!("SELECT {} FROM {} WHERE ", names(UNIQUE_VALUES.columns()), UNIQUE_VALUES.name);
    let chunk = |rows: &[Vec<Cell>]| {
        let keys: Vec<_> =
            rows.iter().map(|row| format!("({})", is_key(UNIQUE_VALUES.key, &row[..2]))).collect();
        format!("{head}{}", keys.join(" OR "))
    };
    rows.chunks(KEYS_MAX).map(chunk).collect()
}

/// Returns the columns of a row of [`value_holders`].
pub(super) fn value_holder(row: Row) -> Result<Vec<Cell>, DatabaseError> {
    cells(UNIQUE_VALUES.name, UNIQUE_VALUES.columns().map(|column| column.kind), row)
}

/// Reads at most `limit` entries of an index under a key, with ids above `after`.
pub(super) fn entries(
    partition: PartitionId,
    (index, key): (IndexId, &Cell),
    after: Option<u64>,
    limit: u32,
) -> String {
    let (select, partition, index, key) = (INDEX_ENTRIES.select(), partition.0, index.0, literal(key));
    let after = after.map(|after| format!(" AND {after} < id")).unwrap_or_default();
    format!(
        "{select} WHERE partition_id = {partition} AND index_id = {index} AND value = {key}{after}
         ORDER BY id LIMIT {limit}"
    )
}

/// The sum of the lengths of lists.
pub(super) const LENGTHS: &str = "CAST(COALESCE(SUM(length), 0) AS UNSIGNED)";

/// Deletes the rows with these keys.
pub(super) fn delete(table: &Table, keys: &[Key], most: usize) -> Vec<String> {
    let head = format!("DELETE FROM {} WHERE ", table.name);
    packed(&head, keys.iter().map(|key| format!("({})", is_key(table.key, key))), " OR ", "", most)
}

/// Reads the rows with these keys, without their partition.
pub(super) fn select_keys(table: &Table, partition: PartitionId, keys: &[Key]) -> Vec<String> {
    let columns = &table.key[1..];
    let chunk = |keys: &[Key]| {
        let keys: Vec<_> = keys.iter().map(|key| format!("({})", is_key(columns, key))).collect();
        format!("{} WHERE partition_id = {} AND ({})", table.select(), partition.0, keys.join(" OR "))
    };
    keys.chunks(KEYS_MAX).map(chunk).collect()
}

/// Reads all rows of a partition, in the order of their keys.
pub(super) fn select_all(table: &Table, partition: PartitionId) -> String {
    let order = names(table.key.iter());
    format!("{} WHERE partition_id = {} ORDER BY {order}", table.select(), partition.0)
}

/// Reads a part of an association list. The part is the first `limit` rows after the first `skip` of the concatenated results of
/// these statements. If there is only one, it leaves out the first `skip` itself.
pub(super) fn list(
    partition: PartitionId,
    list: ListKey,
    after: Option<ListPlace>,
    (skip, limit): (u32, u32),
) -> Vec<String> {
    let (select, partition, id1, kind) = (ASSOCIATIONS.select(), partition.0, list.id1, list.kind.0);
    let index = "FORCE INDEX (associations_newest)";
    let list = format!("WHERE partition_id = {partition} AND id1 = {id1} AND type = {kind}");
    let head = format!("{select} {index} {list}");
    let order = "ORDER BY time DESC, id2";
    match after {
        None if skip == 0 => vec![format!("{head} {order} LIMIT {limit}")],
        // The rows are joined to their places in the index, so that only those that are returned are read.
        None => vec![format!(
            "{select} JOIN (SELECT partition_id, id1, type, id2 FROM {} {index} {list} {order} LIMIT {skip}, {limit}) AS places \
             USING (partition_id, id1, type, id2) {order}",
            ASSOCIATIONS.name
        )],
        // A single condition with OR would make servers sort the whole list.
        Some(ListPlace { time, id2 }) => {
            let tail = format!("{order} LIMIT {}", u64::from(skip) + u64::from(limit));
            vec![
                format!("{head} AND time = {time} AND {id2} < id2 {tail}"),
                format!("{head} AND time < {time} {tail}"),
            ]
        }
    }
}

/// Reads at most `limit` rows after a key, in the order of keys.
pub(super) fn scan(table: &Table, partition: PartitionId, after: Option<&Key>, limit: u32) -> String {
    let (select, partition) = (table.select(), partition.0);
    let columns = &table.key[1..];
    let tail = format!("ORDER BY {} LIMIT {limit}", names(columns.iter()));
    let Some(after) = after else {
        return format!("{select} WHERE partition_id = {partition} {tail}");
    };
    // There is one range for each column of the key, because servers do not recognize a comparison of tuples as a
    // range.
    let ranges = (0..columns.len()).rev().map(|last| {
        let equal: String = (0..last)
            .map(|index| format!(" AND {} = {}", columns[index].name, literal(&after[index])))
            .collect();
        let greater = format!("{} < {}", literal(&after[last]), columns[last].name);
        format!("({select} WHERE partition_id = {partition}{equal} AND {greater} {tail})")
    });
    format!("{} {tail}", ranges.collect::<Vec<_>>().join(" UNION ALL "))
}

/// Returns statements that begin with `head`, contain as many of `items` as fit into `most` bytes, and end with `tail`.
fn packed(
    head: &str,
    items: impl Iterator<Item = String>,
    between: &str,
    tail: &str,
    most: usize,
) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    for item in items {
        match statements.last_mut() {
            Some(last) if last.len() + item.len() + tail.len() < most => {
                last.push_str(between);
                last.push_str(&item);
            }
            _ => statements.push(format!("{head}{item}")),
        }
    }
    statements.iter_mut().for_each(|statement| statement.push_str(tail));
    statements
}

fn is_key(columns: &[Column], key: &[Cell]) -> String {
    let equal = columns.iter().zip(key).map(|(column, cell)| format!("{} = {}", column.name, literal(cell)));
    equal.collect::<Vec<_>>().join(" AND ")
}

fn tuple(row: &[Cell]) -> String {
    format!("({})", row.iter().map(literal).collect::<Vec<_>>().join(", "))
}

fn literal(cell: &Cell) -> String {
    match cell {
        Cell::Small(number) => number.to_string(),
        Cell::Wide(number) => number.to_string(),
        Cell::Bytes(bytes) => {
            const DIGITS: [char; 16] =
                ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
            let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            let mut text = String::with_capacity(bytes.len() * 2 + 3);
            text.push_str("x'");
            text.extend(digits.map(|digit| DIGITS[usize::from(digit)]));
            text.push('\'');
            text
        }
    }
}

/// Returns the cells of a row whose columns have these types.
pub(super) fn cells(
    table: &str,
    kinds: impl Iterator<Item = Kind>,
    row: Row,
) -> Result<Vec<Cell>, DatabaseError> {
    let damaged =
        || DatabaseError::damaged(format!("a row of the table {table} has a value of the wrong type"));
    let cell = |(kind, value): (Kind, Option<Value>)| {
        let value = value.ok_or_else(damaged)?;
        let number = |value| mysql_async::from_value_opt::<u64>(value).map_err(|_| damaged());
        Ok(match kind {
            Kind::Wide => Cell::Wide(number(value)?),
            Kind::Small => Cell::Small(u32::try_from(number(value)?).map_err(|_| damaged())?),
            Kind::Bytes => match value {
                Value::Bytes(bytes) => Cell::Bytes(bytes.into()),
                _ => return Err(damaged()),
            },
        })
    };
    kinds.zip(row.unwrap_raw()).map(cell).collect()
}

/// Returns the columns of a row of 64-bit numbers, such as `(position, written_ms)`.
pub(super) fn numbers<const N: usize>(table: &str, row: Row) -> Result<[u64; N], DatabaseError> {
    let cells = cells(table, [Kind::Wide; N].into_iter(), row)?;
    let numbers: Vec<u64> = cells
        .into_iter()
        .filter_map(|cell| if let Cell::Wide(it) = cell { Some(it) } else { None })
        .collect();
    let short = |_| DatabaseError::damaged(format!("a row of the table {table} lacks columns"));
    <[u64; N]>::try_from(numbers).map_err(short)
}

/// Returns a partition and the end of its log from a row of [`points`].
pub(super) fn partition_point(row: Row) -> Result<(PartitionId, LogPoint), DatabaseError> {
    let [partition, term, position] = numbers("partitions", row)?;
    let partition = u32::try_from(partition)
        .map_err(|_| DatabaseError::damaged("the table partitions has an invalid partition"))?;
    Ok((PartitionId(partition), LogPoint::new(term, position)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{COUNTS, OBJECTS};

    #[test]
    fn rows_are_packed_into_few_statements() {
        let row = |id: u64, bytes: usize| {
            let data = Cell::Bytes(vec![0xab; bytes].into());
            let numbers = [Cell::Small(1), Cell::Wide(0), Cell::Wide(0), Cell::Small(0)];
            [vec![Cell::Small(3), Cell::Wide(id)], numbers.to_vec(), vec![data]].concat()
        };
        let small = insert(&OBJECTS, &[row(1, 2), row(2, 0)], true, PACKET_BYTES);
        assert_eq!(
            small,
            ["INSERT INTO objects (partition_id, id, type, term, position, schema_id, data) \
              VALUES (3, 1, 1, 0, 0, 0, x'abab'), (3, 2, 1, 0, 0, 0, x'') \
              ON DUPLICATE KEY UPDATE type = VALUES(type), term = VALUES(term), position = VALUES(position), \
              schema_id = VALUES(schema_id), data = VALUES(data)"]
        );
        let large = insert(&OBJECTS, &[row(1, 1 << 20), row(2, 1 << 20), row(3, 9)], true, PACKET_BYTES);
        assert_eq!(large.len(), 2);
        assert!(large.iter().all(|statement| statement.len() < PACKET_BYTES));
    }

    #[test]
    fn a_scan_has_one_range_per_column() {
        let after = vec![Cell::Wide(7), Cell::Small(2)];
        assert_eq!(
            scan(&COUNTS, PartitionId(3), Some(&after), 5),
            "(SELECT id1, type, length FROM counts WHERE partition_id = 3 AND id1 = 7 AND 2 < type \
             ORDER BY id1, type LIMIT 5) UNION ALL \
             (SELECT id1, type, length FROM counts WHERE partition_id = 3 AND 7 < id1 ORDER BY id1, type LIMIT 5) \
             ORDER BY id1, type LIMIT 5"
        );
    }
}
