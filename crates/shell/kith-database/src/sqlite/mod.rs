//! A live graph in one SQLite file. Acknowledged commits survive the death of the process and a power failure, but not
//! a disk failure.

mod failure;
mod home;
mod reader;
mod sql;
mod work;
mod writer;

use self::{
    failure::failure,
    home::Home,
    reader::{Reader, Readers},
    work::{Work, WorkResult},
    writer::Writer,
};
use crate::{
    AssociationPage, BeginTerm, CommitError, Database, DatabaseError, DatabaseFuture, GraphIdentity,
    LogFuture, ObjectPage, PartitionQueries, SCHEMA_VERSION, Trim, TrimResult, fold::fold,
};
use futures::future::BoxFuture;
use kith_live::{AssociationKey, Batch, RowsAt};
use kith_types::clock::millis_since_1970;
use kith_types::{LogPoint, PartitionId};
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// The most prepared statements that a connection keeps. There are fewer different statements.
const STATEMENTS_MAX: usize = 64;

/// Limits and timeouts for the use of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// The most concurrent reads. Each has its own connection and thread.
    pub readers_max: usize,
    /// The time to wait for a lock that another process holds on the file.
    pub lock_wait: Duration,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { readers_max: 8, lock_wait: Duration::from_secs(5) }
    }
}

/// The database of a graph in one file.
///
/// [`Database::begin_term`] and [`Database::points`] notice if the file was removed or replaced after it was opened.
/// They then fail with the error that opening it would return.
pub struct SqliteDatabase {
    home: Arc<Home>,
    writer: Arc<Writer>,
    readers: Arc<Readers>,
}

impl SqliteDatabase {
    /// Creates the database of a graph. Does nothing if the file holds that graph already. Blocks.
    ///
    /// # Errors
    /// [`DatabaseError::OtherGraph`] or [`DatabaseError::OtherPartitions`] if the file holds another graph; any other
    /// [`DatabaseError`] if it cannot be used.
    pub fn create(
        file: &Path,
        identity: GraphIdentity,
        options: SqliteOptions,
    ) -> Result<Self, DatabaseError> {
        let mut connection = connect(file, options, OpenFlags::SQLITE_OPEN_CREATE)?;
        let transaction = begin(&mut connection)?;
        if check(&transaction, file, identity) == Err(no_graph(file)) {
            migrate(&transaction, 0, identity)?;
            for partition in identity.partitions.iter() {
                let mut insert = transaction.prepare_cached(sql::PUT_PARTITION).map_err(|e| failure(&e))?;
                let start = sql::stored(0);
                insert.execute(params![partition.0, start, start]).map_err(|error| failure(&error))?;
            }
        }
        transaction.commit().map_err(|error| failure(&error))?;
        sync_folder(file)?;
        Self::start(connection, file, identity, options)
    }

    /// Opens the database of a graph, and migrates its tables to the version of this release. Blocks.
    ///
    /// # Errors
    /// [`DatabaseError::NoGraph`] if the file holds no graph; [`DatabaseError::OtherGraph`] or
    /// [`DatabaseError::OtherPartitions`] if it holds another one; any other [`DatabaseError`] if it cannot be used.
    pub fn open(file: &Path, identity: GraphIdentity, options: SqliteOptions) -> Result<Self, DatabaseError> {
        if !file.exists() {
            return Err(no_graph(file));
        }
        let connection = connect(file, options, OpenFlags::empty())?;
        Self::start(connection, file, identity, options)
    }

    fn start(
        mut connection: Connection,
        file: &Path,
        identity: GraphIdentity,
        options: SqliteOptions,
    ) -> Result<Self, DatabaseError> {
        let transaction = begin(&mut connection)?;
        let version = check(&transaction, file, identity)?;
        migrate(&transaction, version, identity)?;
        transaction.commit().map_err(|error| failure(&error))?;
        let writer =
            Writer::start(connection).map_err(|error| DatabaseError::unavailable(error.to_string()))?;
        let home = Arc::new(Home::new(file, identity)?);
        let readers = Readers::new(Arc::clone(&home), options);
        Ok(Self { home, writer: Arc::new(writer), readers: Arc::new(readers) })
    }
}

fn no_graph(file: &Path) -> DatabaseError {
    DatabaseError::NoGraph { address: file.display().to_string() }
}

fn begin(connection: &mut Connection) -> Result<rusqlite::Transaction<'_>, DatabaseError> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| failure(&error))
}

fn connect(file: &Path, options: SqliteOptions, flags: OpenFlags) -> Result<Connection, DatabaseError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(file, flags)?;
        connection.busy_timeout(options.lock_wait)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        let mode: String = connection.query_row(sql::WAL, [], |row| row.get(0))?;
        connection.execute_batch(sql::SETTINGS)?;
        Ok((connection, mode))
    };
    let (connection, mode) = open().map_err(|error| failure(&error))?;
    if mode != "wal" {
        let path = file.display();
        let reason = format!("{path} is on a file system on which SQLite cannot keep a write-ahead log");
        return Err(DatabaseError::Refused { reason });
    }
    Ok(connection)
}

/// Returns the version of the tables, if they hold the expected graph.
fn check(connection: &Connection, file: &Path, identity: GraphIdentity) -> Result<u32, DatabaseError> {
    let read = || {
        let tables: u32 = connection.query_row(sql::HAS_META, [], |row| row.get(0))?;
        if tables == 0 {
            return Ok(None);
        }
        let meta = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        connection.query_row(sql::META, [], meta).optional()
    };
    let meta: Option<(u32, i64, u32)> = read().map_err(|error| failure(&error))?;
    let (version, graph, partitions) = meta.ok_or_else(|| no_graph(file))?;
    identity.check(version, sql::plain(graph), partitions.into())?;
    Ok(version)
}

/// Migrates tables of version `from` to that of this release. 0 means that there are no tables.
fn migrate(connection: &Connection, from: u32, identity: GraphIdentity) -> Result<(), DatabaseError> {
    if from == SCHEMA_VERSION {
        return Ok(());
    }
    let run = || {
        for migration in &sql::MIGRATIONS[from as usize..] {
            connection.execute_batch(migration)?;
        }
        connection.execute_batch(&sql::views())?;
        let GraphIdentity { graph, partitions } = identity;
        connection.execute(sql::PUT_META, params![SCHEMA_VERSION, sql::stored(graph), partitions.get()])
    };
    run().map(|_| ()).map_err(|error| failure(&error))
}

/// Syncs the folder of a file. SQLite creates a new file, but does not wait until its name in the folder is on disk.
fn sync_folder(file: &Path) -> Result<(), DatabaseError> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| DatabaseError::unavailable(error.to_string()))
}

impl Database for SqliteDatabase {
    fn identity(&self) -> GraphIdentity {
        self.home.identity
    }

    fn begin_term(&self, request: BeginTerm) -> DatabaseFuture<'_, LogPoint, CommitError> {
        Box::pin(async move {
            self.home.identity.check_partition(request.partition)?;
            match self.writer.run(Work::BeginTerm(request, Arc::clone(&self.home))).await? {
                WorkResult::Began(point) => Ok(point),
                other => Err(mixed_up(&other).into()),
            }
        })
    }

    fn commit(&self, batch: Batch) -> DatabaseFuture<'_, (), CommitError> {
        Box::pin(async move {
            let writes = fold(batch, self.home.identity.partitions, millis_since_1970())?;
            self.writer.run(Work::Commit(writes)).await.map(|_| ())
        })
    }

    fn read_many(&self, parts: Vec<PartitionQueries>) -> DatabaseFuture<'_, Vec<RowsAt>> {
        let partitions = self.home.identity.partitions;
        Box::pin(async move {
            parts.iter().try_for_each(|(partition, _)| self.home.identity.check_partition(*partition))?;
            let read = move |reader: &Reader<'_>| {
                let read = |(partition, queries)| reader.read(partition, queries, partitions);
                parts.into_iter().map(read).collect()
            };
            self.readers.run(read).await
        })
    }

    fn points(&self, partitions: Vec<PartitionId>) -> DatabaseFuture<'_, Vec<LogPoint>> {
        Box::pin(async move {
            partitions.iter().try_for_each(|partition| self.home.identity.check_partition(*partition))?;
            let home = Arc::clone(&self.home);
            self.readers.run(move |reader| reader.points(&home, &partitions)).await
        })
    }

    fn changes(&self, partition: PartitionId, after: LogPoint, bytes_max: usize) -> LogFuture<'_> {
        Box::pin(async move {
            self.home.identity.check_partition(partition)?;
            self.readers.run(move |reader| Ok(reader.changes(partition, after, bytes_max))).await?
        })
    }

    fn scan_objects(
        &self,
        partition: PartitionId,
        after: Option<u64>,
        limit: u32,
    ) -> DatabaseFuture<'_, ObjectPage> {
        Box::pin(async move {
            self.home.identity.check_partition(partition)?;
            let after = after.map(crate::rows::object_key);
            let (at, objects) = self.readers.run(move |reader| reader.scan(partition, after, limit)).await?;
            Ok(ObjectPage { at, objects })
        })
    }

    fn scan_associations(
        &self,
        partition: PartitionId,
        after: Option<AssociationKey>,
        limit: u32,
    ) -> DatabaseFuture<'_, AssociationPage> {
        Box::pin(async move {
            self.home.identity.check_partition(partition)?;
            let after = after.map(crate::rows::association_key);
            let (at, associations) =
                self.readers.run(move |reader| reader.scan(partition, after, limit)).await?;
            Ok(AssociationPage { at, associations })
        })
    }

    fn trim(&self, partition: PartitionId, trim: Trim) -> DatabaseFuture<'_, TrimResult> {
        Box::pin(async move {
            self.home.identity.check_partition(partition)?;
            match self.writer.run(Work::Trim(partition, trim)).await {
                Ok(WorkResult::Trimmed(trimmed)) => Ok(trimmed),
                Ok(other) => Err(mixed_up(&other)),
                Err(CommitError::NotWritten(error)) => Err(error),
                // The outcome is unknown, but trimming may be repeated at any time.
                Err(error) => Err(DatabaseError::unavailable(error.to_string())),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let (writer, readers) = (self.writer.clone(), self.readers.clone());
        Box::pin(async move {
            readers.close().await;
            // This fails only if the process is ending, and then the thread ends too.
            let _ = tokio::task::spawn_blocking(move || writer.close()).await;
        })
    }
}

/// The writer's answer belongs to another request. This is a defect, but no reason to stop the process.
fn mixed_up(done: &WorkResult) -> DatabaseError {
    DatabaseError::Invalid { detail: format!("the writer's answer {done:?} belongs to another request") }
}
