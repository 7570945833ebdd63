//! A limited number of connections with the same settings, and packets of statements on them.

use super::{
    MysqlOptions, MysqlTarget,
    failure::{failure, is_lost, is_victim},
    sql,
};
use crate::DatabaseError;
use futures::TryFutureExt;
use mysql_async::{Conn, Error, Row, prelude::Queryable};
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// A pool of connections to one server.
pub(super) struct Connections {
    target: MysqlTarget,
    options: MysqlOptions,
    most: usize,
    /// The statements that set up a new connection.
    settings: Vec<String>,
    /// One permit per connection in use.
    free: Semaphore,
    idle: Mutex<Vec<Conn>>,
}

/// A connection in use. If it is dropped before [`Lease::give_back`], it is closed, and the server rolls its
/// transaction back.
pub(super) struct Lease<'a> {
    connection: Conn,
    from: &'a Connections,
    /// Whether the connection was idle before. In that case, the server may have closed it meanwhile.
    was_idle: bool,
    _permit: SemaphorePermit<'a>,
}

/// The result of a statement.
#[derive(Debug, Default)]
pub(super) struct Returned {
    /// The number of rows that the statement matched.
    pub affected: u64,
    pub rows: Vec<Row>,
}

/// Why a packet failed.
#[derive(Debug)]
pub(super) enum PacketError {
    /// The server refused a statement, or the connection was lost.
    Failed(Error),
    /// The answer did not arrive within this time.
    Late(std::time::Duration),
}

impl PacketError {
    /// Returns the meaning of this error before the commit.
    pub fn failure(&self) -> DatabaseError {
        match self {
            PacketError::Failed(error) => failure(error),
            PacketError::Late(patience) => {
                DatabaseError::unavailable(format!("it did not answer within {patience:?}"))
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
    pub fn new(target: MysqlTarget, options: MysqlOptions, most: usize, isolation: &str) -> Self {
        let lock_wait_seconds = (options.statement_timeout.as_secs() / 2).max(1);
        let settings = sql::settings(isolation, lock_wait_seconds);
        let most = most.max(1);
        let (free, idle) = (Semaphore::new(most), Mutex::new(Vec::new()));
        Self { target, options, most, settings, free, idle }
    }

    /// Waits for a free connection, and runs the first packet of a transaction on it. A connection that turns out to be
    /// closed is replaced.
    pub async fn begin(&self, first: &[String]) -> Result<(Lease<'_>, Vec<Returned>), PacketError> {
        loop {
            let mut lease = self.lease().await?;
            match lease.run(first).await {
                Ok(returned) => return Ok((lease, returned)),
                // The server was probably restarted, so all other idle connections are closed too.
                Err(error) if lease.was_idle && error.is_lost() => self.close_idle(),
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits for a free connection. The server may have closed it.
    pub async fn lease(&self) -> Result<Lease<'_>, PacketError> {
        let patience = self.options.statement_timeout;
        let permit = timeout(patience, self.free.acquire()).await.map_err(|_| PacketError::Late(patience))?;
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

    async fn connect(&self) -> Result<Conn, PacketError> {
        let patience = self.options.connect_timeout;
        let options = self.target.options().map_err(|error| {
            // An error of the driver would lose the causes of this one.
            PacketError::Failed(Error::Other(kith_types::with_causes(&error).into()))
        })?;
        let connected = async {
            let mut connection = Conn::new(options).await?;
            for setting in &self.settings {
                connection.query_drop(setting).await?;
            }
            Ok(connection)
        };
        let connected = timeout(patience, connected).await.map_err(|_| PacketError::Late(patience))?;
        connected.map_err(PacketError::Failed)
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
            // If a connection cannot be closed cleanly, dropping it closes it.
            let _ = timeout(self.options.connect_timeout, connection.disconnect()).await;
        }
    }
}

impl Lease<'_> {
    /// Runs statements in one packet, or one by one if the server does not accept several in a packet.
    pub async fn run(&mut self, statements: &[String]) -> Result<Vec<Returned>, PacketError> {
        let patience = self.from.options.statement_timeout;
        let together = self.from.options.statements_together;
        let run = run(&mut self.connection, statements, together).map_err(PacketError::Failed);
        timeout(patience, run).await.map_err(|_| PacketError::Late(patience))?
    }

    /// Runs statements in as few packets as their sizes allow. Returns their results.
    pub async fn run_all(&mut self, statements: &[String]) -> Result<Vec<Returned>, PacketError> {
        let (mut rest, mut returned) = (statements, Vec::with_capacity(statements.len()));
        while !rest.is_empty() {
            let (packet, others) = rest.split_at(first_packet(rest));
            returned.extend(self.run(packet).await?);
            rest = others;
        }
        Ok(returned)
    }

    /// Returns the connection to the pool. No transaction may be open.
    pub fn give_back(self) {
        let Lease { connection, from, _permit, .. } = self;
        if !from.free.is_closed() {
            from.idle.lock().push(connection);
        }
    }
}

/// Returns how many of these statements fit into one packet, but at least one.
pub(super) fn first_packet(statements: &[String]) -> usize {
    let mut bytes = 0;
    let fits = |statement: &&String| {
        bytes += statement.len();
        bytes <= sql::PACKET_BYTES
    };
    statements.iter().take_while(fits).count().max(1)
}

async fn run(
    connection: &mut Conn,
    statements: &[String],
    together: bool,
) -> mysql_async::Result<Vec<Returned>> {
    let mut returned = Vec::with_capacity(statements.len());
    let packets = if together { vec![statements] } else { statements.chunks(1).collect() };
    for packet in packets {
        let mut result = connection.query_iter(packet.join("; ")).await?;
        for _ in packet {
            // Reading the rows of one statement advances to the next statement.
            let affected = result.affected_rows();
            returned.push(Returned { affected, rows: result.collect().await? });
        }
    }
    Ok(returned)
}
