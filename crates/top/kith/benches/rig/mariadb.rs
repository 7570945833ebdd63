//! The rival of the Voldemort paper (§6): MariaDB with a MyISAM table of keys and values, loaded by `LOAD DATA INFILE` and
//! made current by replacing a view.
//!
//! It has every advantage that costs it nothing: an index cache that holds the whole index, the paper's buffers for
//! loading (256 MB each), rows of fixed length, so that a row is one read, prepared statements, a Unix socket, no
//! privileges to check, no binary log, no InnoDB. It never calls `fsync`.

use mysql_async::{Conn, OptsBuilder, Statement, prelude::Queryable};
use parking_lot::Mutex;
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// The usual paths of the server, which is not on everybody's search path.
const PROGRAMS: [&str; 3] = ["/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd", "/usr/libexec/mariadbd"];
/// The time limit of a start, which is far above what it takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The view that is read.
const VIEW: &str = "people";
/// Connections of the client; each is a thread of the server. More are not quicker on few cores.
const CONNECTIONS: usize = 16;

/// The kind of a table's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// A primary key, which is the fastest to read by. It is built while rows are loaded.
    Primary,
    /// An ordinary index that is built only when all rows are loaded (`ALTER TABLE … DISABLE KEYS`), as in the paper.
    PutOff,
}

/// A running server without any table. It is stopped when dropped.
pub struct MariaDb {
    server: Child,
    /// Its data and socket.
    folder: tempfile::TempDir,
    /// The connection that loads tables and swaps the view.
    conn: Conn,
    pub pid: u32,
    pub version: String,
}

impl MariaDb {
    /// Starts a server. Returns `None` with a message if MariaDB is not installed.
    pub async fn start() -> Option<Self> {
        let Some(program) = PROGRAMS.iter().find(|program| Path::new(program).exists()) else {
            eprintln!("skipped: MariaDB is absent; scripts/packages.sh installs it");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let server = start(program, folder.path());
        let pid = server.id();
        let mut conn = connect(&socket(folder.path()), "").await;
        conn.query_drop("CREATE DATABASE bench").await.expect("a database");
        conn.query_drop("USE bench").await.expect("the database is there");
        let version: Option<String> = conn.query_first("SELECT VERSION()").await.expect("its version");
        Some(Self { server, folder, conn, pid, version: version.expect("a version") })
    }

    /// Loads `key,value` lines under one header line into a new table. Returns the time that this took.
    pub async fn load(&mut self, table: &str, file: &Path, value_bytes: usize, index: Index) -> Duration {
        let key = match index {
            Index::Primary => "PRIMARY KEY (id)",
            Index::PutOff => "KEY (id)",
        };
        let create = format!(
            "CREATE TABLE {table} (id BIGINT UNSIGNED NOT NULL, value VARBINARY({value_bytes}) NOT NULL, {key})
             ENGINE=MyISAM ROW_FORMAT=FIXED"
        );
        self.must(&create).await;
        let started = Instant::now();
        if index == Index::PutOff {
            self.must(&format!("ALTER TABLE {table} DISABLE KEYS")).await;
        }
        let file = file.display();
        self.must(&format!(
            "LOAD DATA INFILE '{file}' INTO TABLE {table} CHARACTER SET binary
             FIELDS TERMINATED BY ',' LINES TERMINATED BY '\\n' IGNORE 1 LINES (id, value)"
        ))
        .await;
        if index == Index::PutOff {
            self.must(&format!("ALTER TABLE {table} ENABLE KEYS")).await;
        }
        started.elapsed()
    }

    /// Makes the view show this table. Returns the time that this took.
    pub async fn swap(&mut self, table: &str) -> Duration {
        let started = Instant::now();
        self.must(&format!("CREATE OR REPLACE VIEW {VIEW} AS SELECT id, value FROM {table}")).await;
        started.elapsed()
    }

    /// The number of rows of the view.
    pub async fn rows(&mut self) -> u64 {
        let rows: Option<u64> =
            self.conn.query_first(format!("SELECT count(*) FROM {VIEW}")).await.expect("it counts");
        rows.expect("a count")
    }

    /// A client of the view.
    pub async fn reader(&self) -> Reader {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut conn = connect(&socket(self.folder.path()), "bench").await;
            let statement = conn.prep(format!("SELECT value FROM {VIEW} WHERE id = ?")).await;
            idle.push((conn, statement.expect("the query is right")));
        }
        Reader { free: Semaphore::new(CONNECTIONS), idle: Mutex::new(idle) }
    }

    async fn must(&mut self, statement: &str) {
        let done = self.conn.query_drop(statement).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.server.id().to_string()]).status();
        let _ = self.server.wait();
    }
}

/// Connections with the query prepared.
pub struct Reader {
    /// One permit for each idle connection. Queries wait for it in turn.
    free: Semaphore,
    idle: Mutex<Vec<(Conn, Statement)>>,
}

impl Reader {
    /// The value of a key; `None` if there is none.
    pub async fn get(&self, id: u64) -> Result<Option<Vec<u8>>, String> {
        let _permit = self.free.acquire().await.map_err(|error| error.to_string())?;
        let taken = self.idle.lock().pop();
        let (mut conn, statement) = taken.expect("a permit is a connection");
        let value = conn.exec_first(&statement, (id,)).await;
        self.idle.lock().push((conn, statement));
        value.map_err(|error| error.to_string())
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

fn start(program: &str, folder: &Path) -> Child {
    let data = folder.join("data");
    std::fs::create_dir(&data).expect("the folder can be written");
    let mut command = Command::new(program);
    // The server checks no privileges, so it needs no tables of its own, and an empty folder is enough.
    command.args([
        "--no-defaults",
        "--skip-grant-tables",
        "--skip-networking",
        "--skip-innodb",
        "--skip-log-bin",
    ]);
    command.args(["--default-storage-engine=MyISAM", "--secure-file-priv=", "--key-buffer-size=512M"]);
    command.args([
        "--bulk-insert-buffer-size=256M",
        "--myisam-sort-buffer-size=256M",
        "--query-cache-type=OFF",
    ]);
    command.arg(format!("--datadir={}", data.display()));
    command.arg(format!("--socket={}", socket(folder).display()));
    command.arg(format!("--pid-file={}", folder.join("pid").display()));
    command.arg(format!("--log-error={}", folder.join("log").display()));
    if is_root() {
        // As root, the server runs only with this flag.
        command.arg("--user=root");
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("mariadbd starts")
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

async fn connect(socket: &Path, database: &str) -> Conn {
    let options = OptsBuilder::default()
        .socket(Some(socket.display().to_string()))
        .user(Some("root"))
        .db_name((!database.is_empty()).then_some(database));
    let started = Instant::now();
    loop {
        match Conn::new(options.clone()).await {
            Ok(conn) => return conn,
            Err(error) => assert!(started.elapsed() < TIMEOUT, "connect to MariaDB: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
