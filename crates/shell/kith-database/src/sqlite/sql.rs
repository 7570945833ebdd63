//! The dialect of SQLite: tables, statements, and the representation of values. SQLite has no unsigned numbers of 64
//! bits, so a number is stored with its highest bit inverted, which preserves order and range
//! (`docs/formats/database.md`). Views show the plain numbers.

use crate::{
    DatabaseError,
    tables::{ALL, ASSOCIATIONS, Cell, Column, INDEX_ENTRIES, Kind, Table, names},
};
use rusqlite::{
    Row, ToSql,
    types::{ToSqlOutput, Value, ValueRef},
};

/// Enables the write-ahead log, so that reads and writes do not wait for each other. Returns the resulting mode.
pub(super) const WAL: &str = "PRAGMA journal_mode = WAL";
/// The other settings of every connection. A commit returns after its log has reached the disk. The pages that savepoints
/// change are kept in memory, not in a temporary file.
pub(super) const SETTINGS: &str = "
    PRAGMA synchronous = FULL;
    PRAGMA temp_store = MEMORY;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -16384;";

/// For each version, the statements that migrate the tables from the version before. Those of the first version create
/// the tables.
pub(super) static MIGRATIONS: [&str; 1] = ["
    CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1), schema_version INTEGER NOT NULL, graph INTEGER NOT NULL,
        partitions INTEGER NOT NULL) STRICT;
    CREATE TABLE partitions (
        partition_id INTEGER NOT NULL PRIMARY KEY, term INTEGER NOT NULL, position INTEGER NOT NULL) STRICT;
    CREATE TABLE terms (
        partition_id INTEGER NOT NULL, term INTEGER NOT NULL, began_at INTEGER NOT NULL, leader INTEGER NOT NULL,
        PRIMARY KEY (partition_id, term)) STRICT, WITHOUT ROWID;
    CREATE TABLE changes (
        partition_id INTEGER NOT NULL, position INTEGER NOT NULL, term INTEGER NOT NULL,
        written_ms INTEGER NOT NULL, bytes BLOB NOT NULL,
        PRIMARY KEY (partition_id, position)) STRICT;
    CREATE TABLE objects (
        partition_id INTEGER NOT NULL, id INTEGER NOT NULL, type INTEGER NOT NULL, term INTEGER NOT NULL,
        position INTEGER NOT NULL, schema_id INTEGER NOT NULL, data BLOB NOT NULL,
        PRIMARY KEY (partition_id, id)) STRICT;
    CREATE TABLE associations (
        partition_id INTEGER NOT NULL, id1 INTEGER NOT NULL, type INTEGER NOT NULL, id2 INTEGER NOT NULL,
        time INTEGER NOT NULL, term INTEGER NOT NULL, position INTEGER NOT NULL, schema_id INTEGER NOT NULL,
        data BLOB NOT NULL,
        PRIMARY KEY (partition_id, id1, type, id2)) STRICT, WITHOUT ROWID;
    CREATE INDEX associations_newest ON associations (partition_id, id1, type, time DESC, id2);
    CREATE TABLE counts (
        partition_id INTEGER NOT NULL, id1 INTEGER NOT NULL, type INTEGER NOT NULL, length INTEGER NOT NULL,
        PRIMARY KEY (partition_id, id1, type)) STRICT, WITHOUT ROWID;
    CREATE TABLE intents (
        partition_id INTEGER NOT NULL, term INTEGER NOT NULL, position INTEGER NOT NULL, bytes BLOB NOT NULL,
        PRIMARY KEY (partition_id, term, position)) STRICT;
    CREATE TABLE pair_stamps (
        partition_id INTEGER NOT NULL, ordered_by INTEGER NOT NULL, low INTEGER NOT NULL, high INTEGER NOT NULL,
        term INTEGER NOT NULL, position INTEGER NOT NULL,
        PRIMARY KEY (partition_id, ordered_by, low, high)) STRICT, WITHOUT ROWID;
    CREATE INDEX pair_stamps_oldest ON pair_stamps (partition_id, ordered_by, term, position);
    CREATE TABLE floors (
        partition_id INTEGER NOT NULL, ordered_by INTEGER NOT NULL, term INTEGER NOT NULL,
        position INTEGER NOT NULL,
        PRIMARY KEY (partition_id, ordered_by)) STRICT, WITHOUT ROWID;
    CREATE TABLE outcomes (
        partition_id INTEGER NOT NULL, write_id BLOB NOT NULL, decided_ms INTEGER NOT NULL, bytes BLOB NOT NULL,
        PRIMARY KEY (partition_id, write_id)) STRICT, WITHOUT ROWID;
    CREATE INDEX outcomes_oldest ON outcomes (partition_id, decided_ms);
    CREATE TABLE index_entries (
        partition_id INTEGER NOT NULL, index_id INTEGER NOT NULL, value BLOB NOT NULL, id INTEGER NOT NULL,
        PRIMARY KEY (partition_id, index_id, value, id)) STRICT, WITHOUT ROWID;
    CREATE TABLE unique_values (
        index_id INTEGER NOT NULL, value BLOB NOT NULL, id INTEGER NOT NULL,
        PRIMARY KEY (index_id, value)) STRICT, WITHOUT ROWID;
"];

/// Returns whether the table `meta` exists.
pub(super) const HAS_META: &str = "SELECT count(*) FROM sqlite_schema WHERE name = 'meta'";
pub(super) const META: &str = "SELECT schema_version, graph, partitions FROM meta";
pub(super) const PUT_META: &str = "
    INSERT INTO meta (one, schema_version, graph, partitions) VALUES (1, ?1, ?2, ?3)
    ON CONFLICT (one) DO UPDATE SET schema_version = excluded.schema_version";

pub(super) const POINT: &str = "SELECT term, position FROM partitions WHERE partition_id = ?1";
pub(super) const PUT_PARTITION: &str =
    "INSERT INTO partitions (partition_id, term, position) VALUES (?1, ?2, ?3)";
pub(super) const FENCE: &str =
    "UPDATE partitions SET position = ?4 WHERE partition_id = ?1 AND term = ?2 AND position = ?3";
pub(super) const RAISE_TERM: &str = "UPDATE partitions SET term = ?2 WHERE partition_id = ?1";
pub(super) const LEADER: &str = "SELECT leader FROM terms WHERE partition_id = ?1 AND term = ?2";
pub(super) const BEGAN_AT: &str = "SELECT began_at FROM terms WHERE partition_id = ?1 AND term = ?2";
pub(super) const NEXT_BEGAN_AT: &str =
    "SELECT began_at FROM terms WHERE partition_id = ?1 AND ?2 < term ORDER BY term LIMIT 1";

pub(super) const DROP_STAMPS: &str = "
    DELETE FROM pair_stamps WHERE partition_id = ?1 AND ordered_by = ?2 AND (term, position) < (?3, ?4)";
pub(super) const WRITTEN: &str =
    "SELECT position, written_ms FROM changes WHERE partition_id = ?1 ORDER BY position LIMIT ?2";
pub(super) const DELETE_CHANGES: &str = "DELETE FROM changes WHERE partition_id = ?1 AND position < ?2";
pub(super) const DELETE_OUTCOMES: &str = "
    DELETE FROM outcomes WHERE partition_id = ?1 AND write_id IN (
        SELECT write_id FROM outcomes WHERE partition_id = ?1 AND decided_ms < ?2 ORDER BY decided_ms LIMIT ?3)";

/// Gives a unique value to an object, if no object has it.
pub(super) const TAKE_VALUE: &str =
    "INSERT INTO unique_values (index_id, value, id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
/// Takes a unique value from an object.
pub(super) const FREE_VALUE: &str =
    "DELETE FROM unique_values WHERE index_id = ?1 AND value = ?2 AND id = ?3";
/// Reads the object that has a unique value.
pub(super) const VALUE_HOLDER: &str = "SELECT id FROM unique_values WHERE index_id = ?1 AND value = ?2";

/// Inserts a row. With `replace`, the row replaces an existing row with the same key; without it, an existing row is an
/// error.
pub(super) fn insert(table: &'static Table, replace: bool) -> String {
    let places: Vec<_> = (1..=table.columns().count()).map(|index| format!("?{index}")).collect();
    let columns = names(table.columns());
    let mut sql = format!("INSERT INTO {} ({columns}) VALUES ({})", table.name, places.join(", "));
    if replace && table.rest.is_empty() {
        sql += " ON CONFLICT DO NOTHING";
    } else if replace {
        let set: Vec<_> =
            table.rest.iter().map(|column| format!("{0} = excluded.{0}", column.name)).collect();
        sql += &format!(" ON CONFLICT ({}) DO UPDATE SET {}", names(table.key.iter()), set.join(", "));
    }
    sql
}

/// Deletes the row with a key.
pub(super) fn delete(table: &Table) -> String {
    format!("DELETE FROM {} WHERE {}", table.name, is_key(table))
}

/// Reads the row with a key.
pub(super) fn select_key(table: &Table) -> String {
    format!("{} WHERE {}", table.select(), is_key(table))
}

/// Reads all rows of a partition, in the order of their keys.
pub(super) fn select_all(table: &Table) -> String {
    format!("{} WHERE partition_id = ?1 ORDER BY {}", table.select(), names(table.key.iter()))
}

/// Reads at most ?2 rows. With `has_key`, reads the rows after the key whose columns are ?3 and so on; otherwise reads
/// from the first row.
pub(super) fn scan(table: &Table, has_key: bool) -> String {
    let columns = || table.key.iter().skip(1);
    let places: Vec<_> = columns().enumerate().map(|(index, _)| format!("?{}", index + 3)).collect();
    let after = if has_key {
        format!("AND ({}) > ({}) ", names(columns()), places.join(", "))
    } else {
        String::new()
    };
    let order = names(table.key.iter());
    format!("{} WHERE partition_id = ?1 {after}ORDER BY {order} LIMIT ?2", table.select())
}

/// Reads the newest associations of a list, at most ?4.
pub(super) fn list() -> String {
    format!("{} ORDER BY time DESC, id2 LIMIT ?4", of_list())
}

/// Reads the newest associations of a list after the first ?5, at most ?4. The first ones are passed over in the index alone: with
/// OFFSET in a statement that returns rows, SQLite would look up the row of each of them.
pub(super) fn list_skipping() -> String {
    let columns = names(ASSOCIATIONS.read_columns());
    format!(
        "SELECT {columns} FROM (SELECT partition_id, id1, type, id2 FROM associations INDEXED BY associations_newest \
         WHERE partition_id = ?1 AND id1 = ?2 AND type = ?3 ORDER BY time DESC, id2 LIMIT ?4 OFFSET ?5) \
         CROSS JOIN associations USING (partition_id, id1, type, id2) ORDER BY time DESC, id2"
    )
}

/// Reads the associations of a list with time ?5 and ids above ?6, at most ?4.
pub(super) fn list_ties() -> String {
    format!("{} AND time = ?5 AND ?6 < id2 ORDER BY id2 LIMIT ?4", of_list())
}

/// Reads the associations of a list with times before ?5, at most ?4.
pub(super) fn list_older() -> String {
    format!("{} AND time < ?5 ORDER BY time DESC, id2 LIMIT ?4", of_list())
}

/// Reads the entries of index ?2 under the key ?3, at most ?4. With `has_id`, reads those with ids above ?5.
pub(super) fn entries(has_id: bool) -> String {
    let after = if has_id { "AND ?5 < id " } else { "" };
    let select = INDEX_ENTRIES.select();
    format!("{select} WHERE partition_id = ?1 AND index_id = ?2 AND value = ?3 {after}ORDER BY id LIMIT ?4")
}

/// The sum of the lengths of lists. A length is stored with its highest bit inverted, and is below 2⁶³.
pub(super) const LENGTHS: &str = "COALESCE(SUM(length + 9223372036854775807 + 1), 0)";

/// Selects a list through its index. Without statistics, SQLite would use the primary key for ties, and read the whole
/// list.
fn of_list() -> String {
    let select = ASSOCIATIONS.select();
    format!("{select} INDEXED BY associations_newest WHERE partition_id = ?1 AND id1 = ?2 AND type = ?3")
}

fn is_key(table: &Table) -> String {
    let equal = |(index, column): (usize, &Column)| format!("{} = ?{}", column.name, index + 1);
    table.key.iter().enumerate().map(equal).collect::<Vec<_>>().join(" AND ")
}

/// Returns a view for each table that shows its numbers without the inverted bit.
pub(super) fn views() -> String {
    let column = |column: &Column| match column.kind {
        Kind::Wide => format!(
            "CASE WHEN {0} < 0 THEN {0} + 9223372036854775807 + 1
             ELSE printf('%llu', {0} - 9223372036854775807 - 1) END AS {0}",
            column.name
        ),
        Kind::Small | Kind::Bytes => column.name.to_owned(),
    };
    let view = |table: &'static Table| {
        let columns: Vec<_> = table.columns().map(column).collect();
        format!(
            "DROP VIEW IF EXISTS plain_{0};\nCREATE VIEW plain_{0} AS SELECT {1} FROM {0};\n",
            table.name,
            columns.join(", ")
        )
    };
    ALL.map(view).concat()
}

/// Returns a number of 64 bits in SQLite's representation.
pub(super) fn stored(number: u64) -> i64 {
    (number ^ (1 << 63)).cast_signed()
}

/// Returns the number that [`stored`] has converted.
pub(super) fn plain(stored: i64) -> u64 {
    stored.cast_unsigned() ^ (1 << 63)
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Small(number) => ToSqlOutput::Owned(Value::Integer((*number).into())),
            Cell::Wide(number) => ToSqlOutput::Owned(Value::Integer(stored(*number))),
            Cell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

/// Returns the cells of a row that was read with [`Table::select`].
pub(super) fn cells(table: &'static Table, row: &Row<'_>) -> Result<Vec<Cell>, DatabaseError> {
    let damaged = |column: &Column| {
        DatabaseError::damaged(format!(
            "a row of the table {} has a wrong value in column {}",
            table.name, column.name
        ))
    };
    let cell = |(index, column): (usize, &Column)| {
        let value = row.get_ref(index).map_err(|_| damaged(column))?;
        match (column.kind, value) {
            (Kind::Small, ValueRef::Integer(number)) => {
                u32::try_from(number).map(Cell::Small).map_err(|_| damaged(column))
            }
            (Kind::Wide, ValueRef::Integer(number)) => Ok(Cell::Wide(plain(number))),
            (Kind::Bytes, ValueRef::Blob(bytes)) => Ok(Cell::Bytes(bytes.into())),
            _ => Err(damaged(column)),
        }
    };
    table.read_columns().enumerate().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_numbers_keep_order_and_range() {
        let numbers = [0, 1, i64::MAX as u64, 1 << 63, u64::MAX];
        assert!(numbers.map(stored).is_sorted());
        assert_eq!(numbers.map(stored).map(plain), numbers);
    }
}
