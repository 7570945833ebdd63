//! A limited number of connections with the same settings, and packets of statements on them.

use super::{
    MysqlOptions, MysqlTarget,
    failure::{failure, is_lost, is_no_database, is_victim},
    login,
    session::{self, Isolation, PacketSizes},
    sql,
};
use crate::DatabaseError;
use futures::{FutureExt, TryFutureExt};
use mysql_async::{Conn, Error, OptsBuilder, Row, Value, prelude::Queryable};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// The most bytes of the answers to a packet, unless the caller expects more. They contain ends of logs, and outcomes.
const ANSWERS_BYTES_MAX: usize = 64 << 20;
/// The separator of the statements of a packet.
const BETWEEN: &str = "; ";
/// The memory that a value takes beside its bytes, and the least memory of a row.
const VALUE_REST: usize = 64;

/// A pool of connections to one server.
pub(super) struct Connections {
    target: MysqlTarget,
    options: MysqlOptions,
    most: usize,
    isolation: Isolation,
    /// The sizes of packets that the server accepts, as reported by the newest connection of any pool.
    sizes: Arc<Mutex<PacketSizes>>,
    /// One permit per connection in use.
    free: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

/// A connection that is closed at once when it is dropped. Alone, the driver would first read everything that the server
/// still sends.
struct Connection(Option<Conn>);

impl Connection {
    fn get(&mut self) -> &mut Conn {
        self.0.as_mut().expect("only `drop` and `end` take it")
    }

    /// Says goodbye to the server.
    async fn end(mut self) {
        if let Some(connection) = self.0.take() {
            // If this fails, the connection is lost already.
            let _ = connection.disconnect().await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            // After its first step, the driver leaves the connection alone.
            let _ = connection.disconnect().now_or_never();
        }
    }
}

/// A connection in use. If it is dropped before [`Lease::give_back`], it is closed, and the server rolls its
/// transaction back.
pub(super) struct Lease<'a> {
    connection: Connection,
    from: &'a Connections,
    /// Whether the connection was idle before. In that case, the server may have closed it meanwhile.
    was_idle: bool,
    _permit: SemaphorePermit<'a>,
}

/// The result of a statement.
#[derive(Debug, Default)]
pub(super) struct StatementResult {
    /// The number of rows that the statement matched.
    pub affected: u64,
    pub rows: Vec<Row>,
}

/// The reason why a packet failed.
#[derive(Debug)]
pub(super) enum PacketError {
    /// The server refused a statement, or the connection was lost.
    Failed(Error),
    /// The answer did not arrive within this time.
    Late(std::time::Duration),
    /// The session is not as Kith needs it, for this reason.
    Unfit(String),
    /// The answer is longer than what was asked for.
    TooLong,
}

impl PacketError {
    /// Returns the meaning of this error before the commit.
    pub fn failure(&self) -> DatabaseError {
        match self {
            PacketError::Failed(error) => failure(error),
            PacketError::Late(limit) => {
                DatabaseError::unavailable(format!("it did not answer within {limit:?}"))
            }
            PacketError::Unfit(reason) => DatabaseError::Refused { reason: reason.clone() },
            PacketError::TooLong => {
                DatabaseError::damaged("the server answers with more rows than it was asked for")
            }
        }
    }

    /// Whether the server rolled the transaction back in favour of another one.
    pub fn is_victim(&self) -> bool {
        matches!(self, PacketError::Failed(error) if is_victim(error))
    }

    /// Whether the server refused a statement, and the connection is still usable.
    pub fn is_refusal(&self) -> bool {
        matches!(self, PacketError::Failed(Error::Server(_))) && !self.is_victim()
    }

    fn is_lost(&self) -> bool {
        matches!(self, PacketError::Failed(error) if is_lost(error))
    }
}

impl From<PacketError> for DatabaseError {
    fn from(error: PacketError) -> Self {
        error.failure()
    }
}

impl Connections {
    pub fn new(
        target: MysqlTarget,
        options: MysqlOptions,
        most: usize,
        isolation: Isolation,
        sizes: Arc<Mutex<PacketSizes>>,
    ) -> Self {
        let most = most.max(1);
        let (free, idle) = (Semaphore::new(most), Mutex::new(Vec::new()));
        Self { target, options, most, isolation, sizes, free, idle }
    }

    /// Returns what the server accepts in one packet.
    pub fn sizes(&self) -> PacketSizes {
        *self.sizes.lock()
    }

    /// Waits for a free connection, and runs the first packet of a transaction on it. A connection that turns out to be
    /// closed is replaced.
    pub async fn begin(&self, first: &[String]) -> Result<(Lease<'_>, Vec<StatementResult>), PacketError> {
        self.begin_reading(first, ANSWERS_BYTES_MAX).await
    }

    /// As [`Connections::begin`], for answers of at most this many bytes.
    pub async fn begin_reading(
        &self,
        first: &[String],
        answers_max: usize,
    ) -> Result<(Lease<'_>, Vec<StatementResult>), PacketError> {
        loop {
            let mut lease = self.lease().await?;
            match lease.run_reading(first, answers_max).await {
                Ok(returned) => return Ok((lease, returned)),
                // The server was probably restarted, so all other idle connections are closed too.
                Err(error) if lease.was_idle && error.is_lost() => self.close_idle(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a free connection. The server may have closed it.
    pub async fn lease(&self) -> Result<Lease<'_>, PacketError> {
        let limit = self.options.statement_timeout;
        let permit = timeout(limit, self.free.acquire()).await.map_err(|_| PacketError::Late(limit))?;
        let closed = |_| PacketError::Failed(mysql_async::DriverError::PoolDisconnected.into());
        let permit = permit.map_err(closed)?;
        let idle = self.idle.lock().pop();
        let was_idle = idle.is_some();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        Ok(Lease { connection, from: self, was_idle, _permit: permit })
    }

    /// Creates the database if the server says that there is none of this name. Returns why that failed.
    pub async fn create_missing(&self) -> Result<(), DatabaseError> {
        match self.lease().await {
            Err(PacketError::Failed(error)) if is_no_database(&error) => {}
            leased => return Ok(leased.map(Lease::give_back)?),
        }
        let options = self.login()?.db_name(None::<String>);
        let name = &self.target.url.database;
        let created = async {
            let mut connection = Connection(Some(Conn::new(options).await?));
            connection.get().query_drop(sql::create_database(name)).await
        };
        let limit = self.options.connect_timeout;
        let created = timeout(limit, created).await.map_err(|_| PacketError::Late(limit))?;
        created.map_err(|error| match failure(&error) {
            DatabaseError::Refused { reason } => DatabaseError::Refused {
                reason: format!("there is no database {name:?}, and it may not be created: {reason}"),
            },
            other => other,
        })
    }

    fn login(&self) -> Result<OptsBuilder, PacketError> {
        login::options(&self.target).map_err(|error| {
            // An error of the driver would lose the causes of this one.
            PacketError::Failed(Error::Other(kith_types::with_causes(&error).into()))
        })
    }

    async fn connect(&self) -> Result<Connection, PacketError> {
        let limit = self.options.connect_timeout;
        let options = self.login()?;
        let connected = async {
            let connection = Conn::new(options).await.map_err(PacketError::Failed)?;
            let mut connection = Connection(Some(connection));
            let sizes = self.set_up(connection.get()).await?;
            *self.sizes.lock() = sizes;
            Ok(connection)
        };
        timeout(limit, connected).await.map_err(|_| PacketError::Late(limit))?
    }

    /// Sets what Kith relies on in a new session, and checks it.
    async fn set_up(&self, connection: &mut Conn) -> Result<PacketSizes, PacketError> {
        let lock_wait_seconds = (self.options.statement_timeout.as_secs() / 2).max(1);
        for setting in session::settings(self.isolation, lock_wait_seconds) {
            connection.query_drop(setting).await.map_err(PacketError::Failed)?;
        }
        for setting in session::IF_KNOWN {
            match connection.query_drop(setting).await {
                Ok(()) | Err(Error::Server(_)) => {}
                Err(error) => return Err(PacketError::Failed(error)),
            }
        }
        let found = run(connection, &[session::VARIABLES.to_owned()], false, ANSWERS_BYTES_MAX).await?;
        let rows = found.into_iter().flat_map(|returned| returned.rows);
        let pairs = rows.filter_map(|row| mysql_async::from_row_opt::<(String, String)>(row).ok());
        let variables: BTreeMap<String, String> =
            pairs.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        session::check(&variables, self.isolation).map_err(PacketError::Unfit)
    }

    /// Closes the idle connections, so that new ones replace them.
    pub fn close_idle(&self) {
        self.idle.lock().clear();
    }

    /// Waits for the connections in use, and closes all connections.
    pub async fn close(&self) {
        let all = u32::try_from(self.most).unwrap_or(u32::MAX);
        // This fails only if the pool was closed already.
        let _ = self.free.acquire_many(all).await;
        self.free.close();
        let idle = std::mem::take(&mut *self.idle.lock());
        for connection in idle {
            let _ = timeout(self.options.connect_timeout, connection.end()).await;
        }
    }
}

impl Lease<'_> {
    /// Runs statements in one packet, or one by one if the server does not accept several in a packet.
    pub async fn run(&mut self, statements: &[String]) -> Result<Vec<StatementResult>, PacketError> {
        self.run_reading(statements, ANSWERS_BYTES_MAX).await
    }

    /// As [`Lease::run`], for answers of at most this many bytes.
    pub async fn run_reading(
        &mut self,
        statements: &[String],
        answers_max: usize,
    ) -> Result<Vec<StatementResult>, PacketError> {
        let limit = self.from.options.statement_timeout;
        let together = self.from.options.statements_together;
        let run = run(self.connection.get(), statements, together, answers_max);
        timeout(limit, run).await.map_err(|_| PacketError::Late(limit))?
    }

    /// Runs statements in as few packets as their sizes allow. Returns their results. The answers to each packet take at
    /// most `answers_max` bytes.
    pub async fn run_all(
        &mut self,
        statements: &[String],
        answers_max: usize,
    ) -> Result<Vec<StatementResult>, PacketError> {
        let (mut rest, mut returned) = (statements, Vec::with_capacity(statements.len()));
        while !rest.is_empty() {
            let (packet, others) = rest.split_at(first_packet(rest, self.from.sizes().statements));
            returned.extend(self.run_reading(packet, answers_max).await?);
            rest = others;
        }
        Ok(returned)
    }

    /// As [`Lease::run_all`], for statements that write.
    pub async fn write_all(&mut self, statements: &[String]) -> Result<Vec<StatementResult>, PacketError> {
        self.run_all(statements, ANSWERS_BYTES_MAX).await
    }

    /// Returns the connection to the pool. No transaction may be open.
    pub fn give_back(self) {
        let Lease { connection, from, _permit, .. } = self;
        if !from.free.is_closed() {
            from.idle.lock().push(connection);
        }
    }
}

/// Returns how many of these statements fit into a packet of this many bytes, but at least one.
pub(super) fn first_packet(statements: &[String], bytes_max: usize) -> usize {
    let mut bytes = 0;
    let fits = |statement: &&String| {
        bytes += statement.len() + BETWEEN.len();
        bytes <= bytes_max
    };
    statements.iter().take_while(fits).count().max(1)
}

async fn run(
    connection: &mut Conn,
    statements: &[String],
    together: bool,
    answers_max: usize,
) -> Result<Vec<StatementResult>, PacketError> {
    let mut returned = Vec::with_capacity(statements.len());
    let packets = if together { vec![statements] } else { statements.chunks(1).collect() };
    let mut bytes = 0;
    for packet in packets {
        let mut result = connection.query_iter(packet.join(BETWEEN)).map_err(PacketError::Failed).await?;
        for _ in packet {
            let (affected, mut rows) = (result.affected_rows(), Vec::new());
            // After the last row of one statement, the result is that of the next statement.
            while let Some(row) = result.next().await.map_err(PacketError::Failed)? {
                bytes += row_bytes(&row);
                if answers_max < bytes {
                    return Err(PacketError::TooLong);
                }
                rows.push(row);
            }
            returned.push(StatementResult { affected, rows });
        }
    }
    Ok(returned)
}

/// Returns about how much memory a row takes.
fn row_bytes(row: &Row) -> usize {
    let value = |index| match row.as_ref(index) {
        Some(Value::Bytes(bytes)) => bytes.len() + VALUE_REST,
        _ => VALUE_REST,
    };
    VALUE_REST + (0..row.len()).map(value).sum::<usize>()
}
