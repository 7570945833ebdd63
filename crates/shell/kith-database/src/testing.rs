//! For tests: a real MariaDB from the system's packages, on loopback, with its data in a temporary folder.

use kith_net::testing::free_address;
use mysql_async::{Conn, Error, OptsBuilder, SslOpts, prelude::Queryable};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Mutex;

/// The places where distributions install the server. They may not be in `PATH`.
const PROGRAMS: [&str; 3] = ["/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd", "/usr/libexec/mariadbd"];
/// The script that creates the tables of users and rights.
const SYSTEM_TABLES: &str = "/usr/share/mysql/mysql_system_tables.sql";
/// The limit of every wait, far above what any of them takes.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum number of attempts at a start. Another process may take the port between its choice and its use.
const STARTS_MAX: u32 = 5;
/// The server's error for a connection that has ended (`ER_NO_SUCH_THREAD`).
const UNKNOWN_THREAD: u16 = 1094;

/// The server that all tests of a binary share while any of them runs.
static SHARED: Mutex<Weak<MariaDb>> = Mutex::const_new(Weak::new());
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A running server, which is killed when dropped.
pub struct MariaDb {
    child: Option<Child>,
    folder: tempfile::TempDir,
    port: u16,
    arguments: Vec<String>,
}

impl MariaDb {
    /// Returns a server without users, which accepts every login. Other tests of this process share it.
    pub async fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().await;
        if let Some(server) = shared.upgrade() {
            return server;
        }
        let server = Arc::new(Self::start(&[]).await);
        *shared = Arc::downgrade(&server);
        server
    }

    /// Starts a server without users for one test alone.
    pub async fn start(arguments: &[String]) -> Self {
        let arguments = [&["--skip-grant-tables".to_owned()], arguments].concat();
        Self::start_with(arguments, |_| {}).await
    }

    /// As [`MariaDb::start`], with data that were shut down cleanly once. InnoDB does not recover from a crash before
    /// that.
    pub async fn start_to_be_killed() -> Self {
        let arguments = vec!["--skip-grant-tables".to_owned()];
        Self::start_with(arguments, |data| bootstrap(data, b"SELECT 1;\n")).await
    }

    /// Starts a server whose only user is `root`, from this machine and without a password.
    pub async fn start_with_users() -> Self {
        let tables = fs::read(SYSTEM_TABLES).expect("the script is in the server package");
        let root =
            br#"INSERT INTO global_priv VALUES ('localhost', 'root', '{"access":18446744073709551615}');"#;
        let script = [&b"USE mysql;\n"[..], &tables, root, b"\n"].concat();
        Self::start_with(vec![], |data| bootstrap(data, &script)).await
    }

    async fn start_with(arguments: Vec<String>, prepare: impl Fn(&Path)) -> Self {
        for _ in 0..STARTS_MAX {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let data = folder.path().join("data");
            fs::create_dir(&data).expect("the folder can be written");
            prepare(&data);
            let mut server =
                Self { child: None, folder, port: free_address().port(), arguments: arguments.clone() };
            server.spawn();
            if server.is_up().await {
                return server;
            }
        }
        panic!("MariaDB did not start {STARTS_MAX} times");
    }

    /// Kills the server, like a power failure.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the process can be killed");
            child.wait().expect("the process can be waited for");
        }
    }

    /// Starts the server again on the same port, with the same data.
    pub async fn restart(&mut self) {
        self.kill();
        self.spawn();
        assert!(self.is_up().await, "it comes up again: {}", self.log());
    }

    /// Pauses (`-STOP`) or resumes (`-CONT`) the server, and waits until it has taken effect.
    pub fn signal(&self, signal: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
        let is_stopped = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
            status.lines().any(|line| line.starts_with("State:\tT"))
        };
        while is_stopped() != (signal == "-STOP") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// Returns the id of the server's process.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Creates an empty database, and returns its name.
    pub async fn database(&self) -> String {
        let name = format!("graph_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.execute(&format!("CREATE DATABASE {name}")).await;
        name
    }

    /// Returns the address of a database.
    pub fn address(&self, database: &str) -> String {
        format!("mysql://root@127.0.0.1:{}/{database}", self.port)
    }

    /// Executes a statement as root.
    ///
    /// # Panics
    /// If the statement fails.
    pub async fn execute(&self, statement: &str) {
        let mut connection = self.connect().await.expect("the server accepts connections");
        let done = connection.query_drop(statement).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// Ends all connections to databases of tests. One that its client closes meanwhile has ended too.
    pub async fn end_connections(&self) {
        for row in self.rows("SELECT id FROM information_schema.processlist WHERE db LIKE 'graph%'").await {
            let id: String = row.chars().filter(char::is_ascii_digit).collect();
            let mut connection = self.connect().await.expect("the server accepts connections");
            match connection.query_drop(format!("KILL {id}")).await {
                Err(Error::Server(error)) if error.code == UNKNOWN_THREAD => {}
                ended => ended.unwrap_or_else(|error| panic!("KILL {id}: {error}")),
            }
        }
    }

    /// Returns how many rows the server has read from tables and indexes since it was started.
    pub async fn rows_read(&self) -> u64 {
        self.counter("Rows_read").await
    }

    /// Returns how many rows the server has sent to its clients.
    pub async fn rows_sent(&self) -> u64 {
        self.counter("Rows_sent").await
    }

    async fn counter(&self, name: &str) -> u64 {
        let mut connection = self.connect().await.expect("the server accepts connections");
        let count = connection.query_first(format!("SHOW GLOBAL STATUS LIKE '{name}'")).await;
        let (_, count): (String, u64) =
            count.expect("the statement succeeds").expect("the server has this counter");
        count
    }

    /// Returns the rows of a statement as text.
    pub async fn rows(&self, statement: &str) -> Vec<String> {
        let mut connection = self.connect().await.expect("the server accepts connections");
        let rows: Vec<mysql_async::Row> =
            connection.query(statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
        rows.into_iter().map(|row| format!("{row:?}")).collect()
    }

    async fn connect(&self) -> mysql_async::Result<Conn> {
        let options = OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.port)
            .user(Some("root"))
            .prefer_socket(false)
            .ssl_opts(None::<SslOpts>);
        Conn::new(options).await
    }

    fn spawn(&mut self) {
        let path = |name: &str| self.folder.path().join(name);
        let mut command = command(&path("data"));
        command.args(["--bind-address=127.0.0.1", "--skip-log-bin", "--max-connections=200"]);
        command.args(&self.arguments);
        command.arg(format!("--port={}", self.port));
        command.arg(format!("--socket={}", path("socket").display()));
        command.arg(format!("--pid-file={}", path("pid").display()));
        command.arg(format!("--log-error={}", path("log.err").display()));
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.child = Some(child.expect("MariaDB starts"));
    }

    /// Waits until the server answers. Returns `false` if its process has ended.
    async fn is_up(&mut self) -> bool {
        let started = Instant::now();
        while started.elapsed() < TIMEOUT {
            let child = self.child.as_mut().expect("the server was started");
            if child.try_wait().expect("the child can be waited for").is_some() {
                return false;
            }
            if self.connect().await.is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("MariaDB does not answer: {}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log.err")).unwrap_or_default()
    }

    /// Returns the path of a file in the server's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the server command with the arguments of every start.
fn command(data: &Path) -> Command {
    let program = PROGRAMS.iter().find(|program| Path::new(program).exists());
    let mut command = Command::new(program.expect("MariaDB is installed: see scripts/packages.sh"));
    command.args(["--no-defaults", "--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M"]);
    command.arg(format!("--datadir={}", data.display()));
    // A server that starts removes the temporary tables that it finds in its folder, of whichever server they are.
    let temporary = data.with_extension("tmp");
    fs::create_dir_all(&temporary).expect("the folder can be written");
    command.arg(format!("--tmpdir={}", temporary.display()));
    if is_root() {
        // The server refuses to run as root unless an option allows it.
        command.arg("--user=root");
    }
    command
}

/// Creates the data by running a script, and shuts the server down.
fn bootstrap(data: &Path, script: &[u8]) {
    fs::create_dir(data.join("mysql")).expect("the folder can be written");
    let log = data.with_extension("log");
    let mut child = command(data)
        .arg("--bootstrap")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).expect("the folder can be written"))
        .spawn()
        .expect("MariaDB starts");
    child.stdin.take().expect("the stream is piped").write_all(script).expect("the server reads");
    let status = child.wait().expect("the process can be waited for");
    assert!(status.success(), "the script is right: {}", fs::read_to_string(log).unwrap_or_default());
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}
