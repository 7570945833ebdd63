//! The baseline of writes: the transaction that Kith commits for an association, sent to MariaDB without Kith.
//!
//! The baseline does nothing else. It reads nothing, checks no types or preconditions, remembers no outcome, and takes the
//! position from the table. The whole transaction is sent in one packet.

use super::site::Association;
use futures::{StreamExt, stream};
use kith_database::{GraphIdentity, MysqlDatabase, MysqlOptions, MysqlTarget};
use kith_types::{PartitionCount, partition_of_id};
use mysql_async::{Conn, OptsBuilder, SslOpts, prelude::Queryable};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The size of the change record that Kith writes in addition to the rows of an association without data, in bytes.
const CHANGE_BYTES: usize = 64;

/// The rows that a transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The association, the length of its list, the end of the log and the change record, as Kith does.
    Log,
    /// The association and the length of its list.
    NoLog,
}

/// Connections to a MariaDB.
pub struct Direct {
    connections: Vec<Mutex<Conn>>,
    partitions: PartitionCount,
}

impl Direct {
    /// Creates the tables in the database that `address` names, and connects to it.
    pub async fn start(port: u16, address: &str, partitions: PartitionCount, connections: usize) -> Self {
        let target = MysqlTarget::parse(address, None).expect("an address");
        let identity = GraphIdentity { graph: 1, partitions };
        let created = MysqlDatabase::create(target, identity, MysqlOptions::default()).await;
        drop(created.expect("the tables can be created"));
        let database = address.rsplit_once('/').expect("an address").1;
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(port)
            .user(Some("root"))
            .db_name(Some(database))
            .prefer_socket(false)
            .tcp_nodelay(true)
            .ssl_opts(None::<SslOpts>);
        let connect = |_| async { Mutex::new(Conn::new(options.clone()).await.expect("MariaDB is up")) };
        let connections = stream::iter(0..connections).then(connect).collect().await;
        Self { connections, partitions }
    }

    /// Adds an association.
    pub async fn add(&self, association: &Association, rows: Rows) {
        self.add_over(&mut *self.connections[0].lock().await, association, rows).await;
    }

    /// Adds many associations, one at a time over each connection. Returns the time that this took.
    pub async fn add_all(&self, associations: &[Association], rows: Rows) -> Duration {
        let started = Instant::now();
        let share = associations.len().div_ceil(self.connections.len());
        let work = self.connections.iter().zip(associations.chunks(share));
        stream::iter(work)
            .for_each_concurrent(None, async |(connection, associations)| {
                let mut connection = connection.lock().await;
                for association in associations {
                    self.add_over(&mut connection, association, rows).await;
                }
            })
            .await;
        started.elapsed()
    }

    async fn add_over(&self, connection: &mut Conn, association: &Association, rows: Rows) {
        let Association { id1, id2, time, data, .. } = association;
        let partition = partition_of_id(*id1, self.partitions).0;
        let bytes = data.as_deref().unwrap_or_default().bytes().map(|byte| format!("{byte:02x}"));
        let data = bytes.collect::<String>();
        let change = "ab".repeat(CHANGE_BYTES + data.len() / 2);
        let log_end = match rows {
            Rows::Log => {
                format!("UPDATE partitions SET position = position + 1 WHERE partition_id = {partition};")
            }
            Rows::NoLog => String::new(),
        };
        let log_entry = match rows {
            Rows::Log => format!(
                "INSERT INTO changes (partition_id, position, term, written_ms, bytes)
                 SELECT partition_id, position, term, {time}, x'{change}' FROM partitions WHERE partition_id = {partition};"
            ),
            Rows::NoLog => String::new(),
        };
        let transaction = format!(
            "START TRANSACTION; {log_end}
             INSERT INTO associations (partition_id, id1, type, id2, time, term, position, schema_id, data)
             VALUES ({partition}, {id1}, 1, {id2}, {time}, 1, 1, 1, x'{data}');
             INSERT INTO counts (partition_id, id1, type, length) VALUES ({partition}, {id1}, 1, 1)
             ON DUPLICATE KEY UPDATE length = length + 1; {log_entry} COMMIT"
        );
        connection.query_drop(transaction).await.expect("MariaDB commits the transaction");
    }
}
