//! The tables of a graph, for both dialects: names, keys and types of columns. The statements that create the tables
//! are in `sqlite/sql.rs` and `mysql/sql.rs`; `docs/formats/database.md` explains them.

use crate::DatabaseError;
use std::sync::Arc;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number of at most 32 bits.
    Small,
    /// A number of 64 bits. Both dialects preserve its full range and its order.
    Wide,
    /// Bytes.
    Bytes,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

/// One table. Every key begins with [`PARTITION`], except that of [`UNIQUE_VALUES`].
#[derive(Debug)]
pub(crate) struct Table {
    pub name: &'static str,
    /// The primary key.
    pub key: &'static [Column],
    pub rest: &'static [Column],
}

/// A value of a column. Its order is that of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    Small(u32),
    Wide(u64),
    Bytes(Arc<[u8]>),
}

const fn small(name: &'static str) -> Column {
    Column { name, kind: Kind::Small }
}

const fn wide(name: &'static str) -> Column {
    Column { name, kind: Kind::Wide }
}

const fn bytes(name: &'static str) -> Column {
    Column { name, kind: Kind::Bytes }
}

/// The first column of every table.
pub(crate) const PARTITION: Column = small("partition_id");
const TERM: Column = wide("term");
const POSITION: Column = wide("position");
const SCHEMA: Column = small("schema_id");
const INDEX: Column = small("index_id");
const VALUE: Column = bytes("value");

pub(crate) static OBJECTS: Table = Table {
    name: "objects",
    key: &[PARTITION, wide("id")],
    rest: &[small("type"), TERM, POSITION, SCHEMA, bytes("data")],
};

pub(crate) static ASSOCIATIONS: Table = Table {
    name: "associations",
    key: &[PARTITION, wide("id1"), small("type"), wide("id2")],
    rest: &[wide("time"), TERM, POSITION, SCHEMA, bytes("data")],
};

pub(crate) static COUNTS: Table =
    Table { name: "counts", key: &[PARTITION, wide("id1"), small("type")], rest: &[wide("length")] };

pub(crate) static INTENTS: Table =
    Table { name: "intents", key: &[PARTITION, TERM, POSITION], rest: &[bytes("bytes")] };

pub(crate) static PAIR_STAMPS: Table = Table {
    name: "pair_stamps",
    key: &[PARTITION, small("ordered_by"), wide("low"), wide("high")],
    rest: &[TERM, POSITION],
};

pub(crate) static FLOORS: Table =
    Table { name: "floors", key: &[PARTITION, small("ordered_by")], rest: &[TERM, POSITION] };

pub(crate) static OUTCOMES: Table = Table {
    name: "outcomes",
    key: &[PARTITION, bytes("write_id")],
    rest: &[wide("decided_ms"), bytes("bytes")],
};

pub(crate) static INDEX_ENTRIES: Table =
    Table { name: "index_entries", key: &[PARTITION, INDEX, VALUE, wide("id")], rest: &[] };

/// The unique values of the whole graph.
pub(crate) static UNIQUE_VALUES: Table =
    Table { name: "unique_values", key: &[INDEX, VALUE], rest: &[wide("id")] };

pub(crate) static PARTITIONS: Table =
    Table { name: "partitions", key: &[PARTITION], rest: &[TERM, POSITION] };

pub(crate) static TERMS: Table =
    Table { name: "terms", key: &[PARTITION, TERM], rest: &[wide("began_at"), wide("leader")] };

pub(crate) static CHANGES: Table =
    Table { name: "changes", key: &[PARTITION, POSITION], rest: &[TERM, wide("written_ms"), bytes("bytes")] };

/// All tables except `meta`, which identifies the graph.
pub(crate) static ALL: [&Table; 12] = [
    &OBJECTS,
    &ASSOCIATIONS,
    &COUNTS,
    &INTENTS,
    &PAIR_STAMPS,
    &FLOORS,
    &OUTCOMES,
    &INDEX_ENTRIES,
    &UNIQUE_VALUES,
    &PARTITIONS,
    &TERMS,
    &CHANGES,
];

impl Table {
    /// Iterates over all columns: the key, then the rest.
    pub fn columns(&self) -> impl Iterator<Item = &'static Column> + Clone + use<> {
        self.key.iter().chain(self.rest)
    }

    /// Iterates over the columns after the partition, in the order in which they are read.
    pub fn read_columns(&self) -> impl Iterator<Item = &'static Column> + Clone + use<> {
        self.columns().skip(1)
    }

    /// Returns a `SELECT` of all columns after the partition, up to and including the name of the table.
    pub fn select(&self) -> String {
        format!("SELECT {} FROM {}", names(self.read_columns()), self.name)
    }
}

/// Returns the names of columns, separated by commas.
pub(crate) fn names(columns: impl Iterator<Item = &'static Column>) -> String {
    columns.map(|column| column.name).collect::<Vec<_>>().join(", ")
}

/// The columns of a row that was read, without the partition, to be taken one by one.
pub(crate) struct Cells {
    table: &'static Table,
    rest: std::vec::IntoIter<Cell>,
}

impl Cells {
    pub fn new(table: &'static Table, cells: Vec<Cell>) -> Self {
        Self { table, rest: cells.into_iter() }
    }

    /// Takes the next column, which is a number of 64 bits.
    pub fn wide(&mut self) -> Result<u64, DatabaseError> {
        match self.rest.next() {
            Some(Cell::Wide(number)) => Ok(number),
            _ => Err(self.damaged()),
        }
    }

    /// Takes the next column, which is a small number.
    pub fn small<T: TryFrom<u32>>(&mut self) -> Result<T, DatabaseError> {
        match self.rest.next() {
            Some(Cell::Small(number)) => T::try_from(number).map_err(|_| self.damaged()),
            _ => Err(self.damaged()),
        }
    }

    /// Takes the next column, which is bytes.
    pub fn bytes(&mut self) -> Result<Arc<[u8]>, DatabaseError> {
        match self.rest.next() {
            Some(Cell::Bytes(bytes)) => Ok(bytes),
            _ => Err(self.damaged()),
        }
    }

    fn damaged(&self) -> DatabaseError {
        DatabaseError::damaged(format!(
            "a row of the table {} has a value of the wrong type",
            self.table.name
        ))
    }
}
