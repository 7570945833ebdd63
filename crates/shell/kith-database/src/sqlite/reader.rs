//! Reads of a file. Each read is a transaction, and thus a snapshot, on its own connection.

use super::{SqliteOptions, connect, failure::failure, home::Home, sql, work};
use crate::{
    DatabaseError, LogEntry, LogError, LogPart, log,
    read::{Rows, Select, answers, decode, selects},
    rows::{Key, Row},
    tables::{ASSOCIATIONS, CHANGES, Cell, Cells, INDEX_ENTRIES, Table},
};
use kith_live::{ListKey, ListPlace, RowQuery, RowsAt};
use kith_types::{LogPoint, PartitionCount, PartitionId};
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The pool of connections for reads.
pub(super) struct Readers {
    home: Arc<Home>,
    options: SqliteOptions,
    /// Each read under way holds one permit.
    free: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

/// A read transaction.
pub(super) struct Reader<'a>(&'a Connection);

impl Readers {
    pub fn new(home: Arc<Home>, options: SqliteOptions) -> Self {
        let free = Arc::new(Semaphore::new(options.readers_max.max(1)));
        Self { home, options, free, idle: Mutex::new(Vec::new()) }
    }

    /// Runs `read` in a snapshot, on a thread that may block.
    pub async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Reader<'_>) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let closed = || DatabaseError::unavailable("it has been closed");
        let permit = self.free.clone().acquire_owned().await.map_err(|_| closed())?;
        let readers = self.clone();
        let blocking = move || {
            let _permit = permit;
            readers.run_blocking(read)
        };
        tokio::task::spawn_blocking(blocking).await.map_err(|_| closed())?
    }

    fn run_blocking<T>(
        &self,
        read: impl FnOnce(&Reader<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                self.home.check_file()?;
                connect(&self.home.file, self.options, OpenFlags::empty())?
            }
        };
        connection.execute_batch("BEGIN").map_err(|error| failure(&error))?;
        let result = read(&Reader(&connection));
        // If a connection cannot end its snapshot, it is closed.
        if connection.execute_batch("COMMIT").is_ok() && !self.free.is_closed() {
            self.idle.lock().push(connection);
        }
        result
    }

    /// Waits for the reads under way, and closes the connections.
    pub async fn close(&self) {
        let all = u32::try_from(self.options.readers_max.max(1)).unwrap_or(u32::MAX);
        // This fails only if the pool was closed already.
        let _ = self.free.acquire_many(all).await;
        self.free.close();
        self.idle.lock().clear();
    }
}

impl Reader<'_> {
    fn rows<'a>(
        &self,
        table: &'static Table,
        statement: &str,
        cells: impl IntoIterator<Item = &'a Cell>,
    ) -> Result<Rows, DatabaseError> {
        let mut statement = self.0.prepare_cached(statement).map_err(|error| failure(&error))?;
        let mut rows = statement.query(params_from_iter(cells)).map_err(|error| failure(&error))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| failure(&error))? {
            found.push(sql::cells(table, row)?);
        }
        Ok(found)
    }

    pub fn read(
        &self,
        partition: PartitionId,
        queries: Vec<RowQuery>,
        partitions: PartitionCount,
    ) -> Result<RowsAt, DatabaseError> {
        let at = work::point(self.0, partition)?;
        let selects = selects(&queries, partitions);
        let rows: Result<Vec<Rows>, _> =
            selects.iter().map(|select| self.select(Cell::Small(partition.0), select)).collect();
        Ok(RowsAt { at, answers: answers(queries, &selects, rows?)? })
    }

    fn select(&self, partition: Cell, select: &Select) -> Result<Rows, DatabaseError> {
        match select {
            Select::All(table) => self.rows(table, &sql::select_all(table), [&partition]),
            Select::List { list, after, skip, limit } => {
                self.list(&partition, *list, *after, (*skip, *limit))
            }
            Select::Entries { index, key, after, limit } => {
                let mut cells = vec![partition, Cell::Small(index.0), Cell::Bytes(Arc::clone(key))];
                cells.push(Cell::Small(*limit));
                cells.extend(after.map(Cell::Wide));
                self.rows(&INDEX_ENTRIES, &sql::entries(after.is_some()), &cells)
            }
            Select::Number { what, kinds } => {
                let statement = what.statement(kinds, "?1", sql::LENGTHS);
                let mut statement = self.0.prepare_cached(&statement).map_err(|error| failure(&error))?;
                let number = statement.query_row([&partition], |row| row.get::<_, i64>(0));
                let number = u64::try_from(number.map_err(|error| failure(&error))?)
                    .map_err(|_| DatabaseError::damaged("a number of rows is below 0"))?;
                Ok(vec![vec![Cell::Wide(number)]])
            }
            Select::Keys { table, keys } => {
                let statement = sql::select_key(table);
                let row = |key: &Key| self.rows(table, &statement, std::iter::once(&partition).chain(key));
                let rows: Result<Vec<Rows>, _> = keys.iter().map(row).collect();
                Ok(rows?.into_iter().flatten().collect())
            }
        }
    }

    fn list(
        &self,
        partition: &Cell,
        list: ListKey,
        after: Option<ListPlace>,
        (skip, limit): (u32, u32),
    ) -> Result<Rows, DatabaseError> {
        let (id1, kind) = (Cell::Wide(list.id1), Cell::Small(list.kind.0.into()));
        let Some(ListPlace { time, id2 }) = after else {
            let (limit, count) = (Cell::Small(limit), Cell::Small(skip));
            let cells = [partition, &id1, &kind, &limit, &count];
            return match skip {
                0 => self.rows(&ASSOCIATIONS, &sql::list(), cells.into_iter().take(4)),
                _ => self.rows(&ASSOCIATIONS, &sql::list_skipping(), cells),
            };
        };
        let limit = limit.saturating_add(skip);
        let (time, id2) = (Cell::Wide(time), Cell::Wide(id2));
        let cells = [partition, &id1, &kind, &Cell::Small(limit), &time, &id2];
        let mut rows = self.rows(&ASSOCIATIONS, &sql::list_ties(), cells)?;
        let left = limit.saturating_sub(u32::try_from(rows.len()).unwrap_or(limit));
        if 0 < left {
            let cells = [partition, &id1, &kind, &Cell::Small(left), &time];
            rows.extend(self.rows(&ASSOCIATIONS, &sql::list_older(), cells)?);
        }
        Ok(rows.into_iter().skip(skip as usize).collect())
    }

    /// Returns the ends of logs, if the database holds the graph of `home`.
    pub fn points(&self, home: &Home, partitions: &[PartitionId]) -> Result<Vec<LogPoint>, DatabaseError> {
        home.check(self.0)?;
        partitions.iter().map(|partition| work::point(self.0, *partition)).collect()
    }

    /// Returns a page of a table in the order of its key.
    pub fn scan<R: Row>(
        &self,
        partition: PartitionId,
        after: Option<Key>,
        limit: u32,
    ) -> Result<(LogPoint, Vec<R>), DatabaseError> {
        let at = work::point(self.0, partition)?;
        let statement = sql::scan(R::TABLE, after.is_some());
        let head = [Cell::Small(partition.0), Cell::Small(limit)];
        let rows = self.rows(R::TABLE, &statement, head.iter().chain(after.iter().flatten()))?;
        Ok((at, decode(rows)?))
    }

    pub fn changes(
        &self,
        partition: PartitionId,
        after: LogPoint,
        bytes_max: usize,
    ) -> Result<LogPart, LogError> {
        let end = work::point(self.0, partition)?;
        log::check(partition, after, work::span(self.0, partition, after.term.0)?, end)?;
        let entries = self.entries(partition, after, bytes_max)?;
        log::part(partition, after, entries, end)
    }

    fn entries(
        &self,
        partition: PartitionId,
        after: LogPoint,
        bytes_max: usize,
    ) -> Result<Vec<LogEntry>, DatabaseError> {
        let statement = sql::scan(&CHANGES, true);
        let cells = [Cell::Small(partition.0), Cell::Small(log::ENTRIES_MAX), Cell::Wide(after.position.0)];
        let mut statement = self.0.prepare_cached(&statement).map_err(|error| failure(&error))?;
        let mut rows = statement.query(params_from_iter(&cells)).map_err(|error| failure(&error))?;
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.next().map_err(|error| failure(&error))? {
            let cells = sql::cells(&CHANGES, row)?;
            bytes +=
                cells.iter().map(|cell| if let Cell::Bytes(it) = cell { it.len() } else { 0 }).sum::<usize>();
            if bytes_max < bytes && !entries.is_empty() {
                break;
            }
            entries.push(LogEntry::take(&mut Cells::new(&CHANGES, cells))?);
        }
        Ok(entries)
    }
}
