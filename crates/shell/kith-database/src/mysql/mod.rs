//! A live graph in a database that speaks the MySQL protocol: MariaDB or MySQL, or for larger graphs, TiDB, Vitess or
//! Galera.
//!
//! Commits run under `READ COMMITTED`. The first statement locks the ends of the logs, and nobody else writes the rows
//! of a partition, so gap locks would only make leaders of neighbouring partitions wait. Reads are snapshots under
//! `REPEATABLE READ`.

mod connections;
mod failure;
mod login;
mod session;
mod snapshot;
mod sql;
mod transaction;

pub use login::PasswordError;

use self::{
    connections::{Connections, PacketError, StatementResult},
    failure::CallError,
    session::{Isolation, PacketSizes},
};
use crate::{
    AssociationPage, BeginTerm, CommitError, Database, DatabaseError, DatabaseFuture, GraphIdentity,
    LogFuture, MysqlTarget, ObjectPage, PartitionQueries, SCHEMA_VERSION, Trim, TrimResult, fold::fold, rows,
};
use futures::future::BoxFuture;
use kith_live::{AssociationKey, Batch, RowsAt};
use kith_types::clock::millis_since_1970;
use kith_types::{LogPoint, PartitionId};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};

/// Limits and timeouts for the use of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MysqlOptions {
    /// The most concurrent write transactions, each on its own connection.
    pub writers_max: usize,
    /// The most concurrent reads, each on its own connection.
    pub readers_max: usize,
    /// The time limit of connecting and logging in.
    pub connect_timeout: Duration,
    /// The time limit of the answer to a packet of statements, and of the wait for a free connection.
    pub statement_timeout: Duration,
    /// Whether the server accepts several statements in one packet. If not, every statement costs a round trip.
    pub statements_together: bool,
}

impl Default for MysqlOptions {
    fn default() -> Self {
        Self {
            writers_max: 4,
            readers_max: 8,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
            statements_together: true,
        }
    }
}

/// The database of a graph on a server. A database holds at most one graph.
///
/// [`Database::begin_term`] and [`Database::points`] notice if the database was dropped or replaced after it was
/// opened. They then fail with the error that opening it would return.
pub struct MysqlDatabase {
    home: Home,
    writers: Connections,
    readers: Connections,
}

/// The graph that a database is expected to hold.
struct Home {
    /// The name of the database in errors.
    address: String,
    identity: GraphIdentity,
}

impl Home {
    /// Checks the answer to [`sql::META`], and returns the version of the tables.
    fn check(&self, meta: Option<StatementResult>) -> Result<u32, DatabaseError> {
        let row = meta.into_iter().flat_map(|returned| returned.rows).next();
        let [version, graph, partitions] = sql::numbers("meta", row.ok_or_else(|| self.no_graph())?)?;
        let version = u32::try_from(version).unwrap_or(u32::MAX);
        self.identity.check(version, graph, partitions)?;
        Ok(version)
    }

    fn no_graph(&self) -> DatabaseError {
        DatabaseError::NoGraph { address: self.address.clone() }
    }
}

impl MysqlDatabase {
    /// Creates the tables of a graph, and their database if there is none. If the tables exist already, or some of them do, only
    /// the missing ones are created.
    ///
    /// # Errors
    /// [`DatabaseError::OtherGraph`] or [`DatabaseError::OtherPartitions`] if the database has another graph; any other
    /// [`DatabaseError`] if it cannot be used.
    pub async fn create(
        target: MysqlTarget,
        identity: GraphIdentity,
        options: MysqlOptions,
    ) -> Result<Self, DatabaseError> {
        let database = Self::new(target, identity, options);
        match database.version().await {
            Err(DatabaseError::NoGraph { .. }) => {
                database.writers.create_missing().await?;
                database.migrate(0).await?;
                let mut statements = sql::put_partitions(identity);
                // The row of `meta` is written last. Without it, the database has no graph.
                statements.push(sql::put_meta(identity));
                database.write(&statements).await?;
                database.version().await?;
            }
            Err(error) => return Err(error),
            Ok(version) => database.migrate(version).await?,
        }
        Ok(database)
    }

    /// Opens the database of a graph, and migrates its tables to the version of this release.
    ///
    /// # Errors
    /// [`DatabaseError::NoGraph`] if the database has no graph; [`DatabaseError::OtherGraph`] or
    /// [`DatabaseError::OtherPartitions`] if it has another one; any other [`DatabaseError`] if it cannot be used.
    pub async fn open(
        target: MysqlTarget,
        identity: GraphIdentity,
        options: MysqlOptions,
    ) -> Result<Self, DatabaseError> {
        let database = Self::new(target, identity, options);
        let version = database.version().await?;
        database.migrate(version).await?;
        Ok(database)
    }

    /// Removes the tables of a graph, but no other tables of the database. Does nothing if the database has no graph.
    ///
    /// # Errors
    /// [`DatabaseError::OtherGraph`] or [`DatabaseError::OtherPartitions`] if the database has another graph. If the
    /// connection is lost, some tables may have been removed; repeat the call.
    pub async fn remove(
        target: MysqlTarget,
        identity: GraphIdentity,
        options: MysqlOptions,
    ) -> Result<(), DatabaseError> {
        let database = Self::new(target, identity, options);
        let removed = match database.version().await {
            Err(DatabaseError::NoGraph { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => database.write(&sql::drop_tables()).await,
        };
        database.close().await;
        removed
    }

    fn new(target: MysqlTarget, identity: GraphIdentity, options: MysqlOptions) -> Self {
        // Until a connection has reported the sizes, the usual ones are assumed.
        let sizes = Arc::new(Mutex::new(PacketSizes::of(4 << 20)));
        let pool = |most, isolation| {
            Connections::new(target.clone(), options.clone(), most, isolation, Arc::clone(&sizes))
        };
        Self {
            home: Home { address: target.address(), identity },
            writers: pool(options.writers_max, Isolation::ReadCommitted),
            readers: pool(options.readers_max, Isolation::RepeatableRead),
        }
    }

    /// Returns the version of the tables, if they hold the expected graph.
    async fn version(&self) -> Result<u32, DatabaseError> {
        let (lease, returned) = match self.writers.begin(&[sql::META.to_owned()]).await {
            Err(PacketError::Failed(error))
                if failure::is_no_table(&error) || failure::is_no_database(&error) =>
            {
                return Err(self.home.no_graph());
            }
            other => other?,
        };
        lease.give_back();
        self.home.check(returned.into_iter().next())
    }

    /// Returns a result. If a dropped or replaced database may have caused its error, and opening the database would fail,
    /// the error of opening it takes its place.
    async fn or_explained<T, E: CallError>(&self, result: Result<T, E>) -> Result<T, E> {
        let error = match result {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if let Some(DatabaseError::Damaged { .. } | DatabaseError::Refused { .. }) = error.of_database() {
            // The server reports a missing database only to a new connection.
            self.writers.close_idle();
            self.version().await?;
        }
        Err(error)
    }

    /// Migrates tables of version `from` to that of this release. 0 means that there are no tables.
    async fn migrate(&self, from: u32) -> Result<(), DatabaseError> {
        if from == SCHEMA_VERSION {
            return Ok(());
        }
        for migration in &sql::MIGRATIONS[from as usize..] {
            let statements: Vec<String> = migration.iter().map(|it| (*it).to_owned()).collect();
            self.write(&statements).await?;
        }
        self.write(&[sql::set_version()]).await
    }

    /// Runs statements outside of a transaction. Each of them may be repeated.
    async fn write(&self, statements: &[String]) -> Result<(), DatabaseError> {
        for statement in statements {
            let (lease, _) = self.writers.begin(std::slice::from_ref(statement)).await?;
            lease.give_back();
        }
        Ok(())
    }
}

impl Database for MysqlDatabase {
    fn identity(&self) -> GraphIdentity {
        self.home.identity
    }

    fn begin_term(&self, request: BeginTerm) -> DatabaseFuture<'_, LogPoint, CommitError> {
        Box::pin(async move {
            self.home.identity.check_partition(request.partition)?;
            self.or_explained(transaction::begin_term(&self.writers, &self.home, request).await).await
        })
    }

    fn commit(&self, batch: Batch) -> DatabaseFuture<'_, (), CommitError> {
        Box::pin(async move {
            let writes = fold(batch, self.home.identity.partitions, millis_since_1970())?;
            self.or_explained(transaction::commit(&self.writers, &writes).await).await
        })
    }

    fn read_many(&self, parts: Vec<PartitionQueries>) -> DatabaseFuture<'_, Vec<RowsAt>> {
        Box::pin(async move {
            parts.iter().try_for_each(|(partition, _)| self.home.identity.check_partition(*partition))?;
            let read = snapshot::read(&self.readers, parts, self.home.identity.partitions).await;
            self.or_explained(read).await
        })
    }

    fn points(&self, partitions: Vec<PartitionId>) -> DatabaseFuture<'_, Vec<LogPoint>> {
        Box::pin(async move {
            partitions.iter().try_for_each(|partition| self.home.identity.check_partition(*partition))?;
            self.or_explained(snapshot::points(&self.readers, &self.home, &partitions).await).await
        })
    }

    fn changes(&self, partition: PartitionId, after: LogPoint, bytes_max: usize) -> LogFuture<'_> {
        Box::pin(async move {
            self.home.identity.check_partition(partition)?;
            self.or_explained(snapshot::changes(&self.readers, partition, after, bytes_max).await).await
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
            let after = after.map(rows::object_key);
            let page = snapshot::scan(&self.readers, partition, after.as_ref(), limit).await;
            let (at, objects) = self.or_explained(page).await?;
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
            let after = after.map(rows::association_key);
            let page = snapshot::scan(&self.readers, partition, after.as_ref(), limit).await;
            let (at, associations) = self.or_explained(page).await?;
            Ok(AssociationPage { at, associations })
        })
    }

    fn trim(&self, partition: PartitionId, trim: Trim) -> DatabaseFuture<'_, TrimResult> {
        Box::pin(async move {
            self.home.identity.check_partition(partition)?;
            self.or_explained(transaction::trim(&self.writers, partition, trim).await).await
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.readers.close().await;
            self.writers.close().await;
        })
    }
}
