//! The rival: PostgreSQL with an indexed edge table, queried by a Rust client over a Unix socket.
//!
//! It has every advantage that costs it nothing: a covering index in both directions, index-only scans, all data in
//! memory, prepared statements that are planned once, no JIT and no parallel workers for queries this short, and the
//! quickest of several ways to write the query. `fsync` is off, which only the load notices.

use super::Edges;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tokio_postgres::{Client, Config, NoTls, Statement};

/// Ways to count the members within two steps. All return the size of the first degree and this count.
const QUERIES: [(&str, &str); 3] = [
    (
        "union",
        "WITH first AS MATERIALIZED (SELECT dst FROM edge WHERE src = $1)
         SELECT (SELECT count(*) FROM first),
                (SELECT count(*) FROM (SELECT dst FROM first
                                       UNION SELECT e.dst FROM first f JOIN edge e ON e.src = f.dst) n WHERE dst <> $1)",
    ),
    (
        "distinct",
        "SELECT (SELECT count(*) FROM edge WHERE src = $1),
                (SELECT count(*) FROM (SELECT DISTINCT dst FROM (
                    SELECT e.dst FROM edge f JOIN edge e ON e.src = f.dst WHERE f.src = $1
                    UNION ALL SELECT dst FROM edge WHERE src = $1) n WHERE dst <> $1) d)",
    ),
    (
        "count distinct",
        "SELECT (SELECT count(*) FROM edge WHERE src = $1),
                (SELECT count(DISTINCT dst) FROM (
                    SELECT e.dst FROM edge f JOIN edge e ON e.src = f.dst WHERE f.src = $1
                    UNION ALL SELECT dst FROM edge WHERE src = $1) n WHERE dst <> $1)",
    ),
];
/// The time limit of a start, which is far above what it takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server that holds the graph. It is stopped when dropped.
pub struct Postgres {
    server: Child,
    /// Its data and socket.
    _folder: tempfile::TempDir,
    client: Client,
    statements: Vec<(&'static str, Statement)>,
    /// The statement that is used.
    chosen: usize,
    /// The process that answers.
    pub backend: u32,
    pub version: String,
}

impl Postgres {
    /// Starts a server with the graph. Returns `None` with a message if PostgreSQL is not installed.
    pub async fn start(graph: &Edges) -> Option<Self> {
        let Some(bin) = newest_bin() else {
            eprintln!("skipped: PostgreSQL is absent; scripts/packages.sh --bench installs it");
            return None;
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        run(as_user(&bin.join("initdb"))
            .args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"])
            .arg(&data));
        let server = start(&bin, &data, folder.path());
        let client = connect(folder.path()).await;
        load(&client, graph, folder.path()).await;
        let statements = prepare(&client).await;
        let backend: i32 =
            client.query_one("SELECT pg_backend_pid()", &[]).await.expect("its process").get(0);
        let version: String = client.query_one("SHOW server_version", &[]).await.expect("its version").get(0);
        Some(Self {
            server,
            _folder: folder,
            client,
            statements,
            chosen: 0,
            backend: backend as u32,
            version,
        })
    }

    /// Chooses the way to write the query that is fastest for such members. Returns its name.
    pub async fn choose(&mut self, sample: &[u64]) -> &'static str {
        let mut least = vec![Duration::MAX; self.statements.len()];
        // The first pass plans anew and brings pages into memory; the shortest of several was not disturbed.
        for _ in 0..5 {
            for ((_, statement), least) in self.statements.iter().zip(&mut least) {
                let started = Instant::now();
                for id in sample {
                    ask(&self.client, statement, *id).await;
                }
                *least = started.elapsed().min(*least);
            }
        }
        self.chosen = (0..least.len()).min_by_key(|index| least[*index]).expect("there are queries");
        self.statements[self.chosen].0
    }

    /// The number of members in the first degree, and the number within two steps.
    pub async fn network(&self, id: u64) -> (u64, u64) {
        ask(&self.client, &self.statements[self.chosen].1, id).await
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT: ends its sessions and itself, quickly and cleanly.
        let _ = Command::new("kill").args(["-INT", &self.server.id().to_string()]).status();
        let _ = self.server.wait();
    }
}

fn newest_bin() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path());
    let mut versions: Vec<PathBuf> = versions.filter(|path| path.join("bin/postgres").exists()).collect();
    versions.sort();
    Some(versions.pop()?.join("bin"))
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// The command that starts a program. PostgreSQL refuses to run as root, so root runs it as its own user.
fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
    command
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn start(bin: &Path, data: &Path, socket: &Path) -> Child {
    let mut command = as_user(&bin.join("postgres"));
    command.arg("-D").arg(data).arg("-k").arg(socket);
    for setting in [
        "listen_addresses=",
        "fsync=off",
        "shared_buffers=512MB",
        "work_mem=256MB",
        "jit=off",
        "max_parallel_workers_per_gather=0",
        // The plan is the same for every member; by default, PostgreSQL plans anew for each, which takes a third of the
        // time of a query about few connections.
        "plan_cache_mode=force_generic_plan",
        "autovacuum=off",
    ] {
        command.args(["-c", setting]);
    }
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("postgres starts")
}

async fn connect(socket: &Path) -> Client {
    let started = Instant::now();
    loop {
        let connected =
            Config::new().host_path(socket).user("postgres").dbname("postgres").connect(NoTls).await;
        match connected {
            Ok((client, connection)) => {
                // A connection that is lost shows in the next query.
                tokio::spawn(async move { drop(connection.await) });
                return client;
            }
            Err(error) => assert!(started.elapsed() < TIMEOUT, "connect to PostgreSQL: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn load(client: &Client, graph: &Edges, folder: &Path) {
    let file = folder.join("edges.csv");
    let lines: String = graph.edges.iter().map(|(a, b)| format!("{a},{b}\n{b},{a}\n")).collect();
    fs::write(&file, lines).expect("the folder can be written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let file = file.display();
    let steps = format!(
        "CREATE TABLE edge (src int NOT NULL, dst int NOT NULL);
         COPY edge FROM '{file}' (FORMAT csv);
         CREATE UNIQUE INDEX ON edge (src, dst);
         CLUSTER edge USING edge_src_dst_idx;"
    );
    client.batch_execute(&steps).await.expect("the graph is loaded");
    // Marks all pages as visible. Otherwise, index-only scans read the table too.
    client.batch_execute("VACUUM (ANALYZE) edge").await.expect("the table is vacuumed");
}

async fn prepare(client: &Client) -> Vec<(&'static str, Statement)> {
    let mut statements = Vec::new();
    for (name, text) in QUERIES {
        statements.push((name, client.prepare(text).await.expect("the query is right")));
    }
    statements
}

async fn ask(client: &Client, statement: &Statement, id: u64) -> (u64, u64) {
    let row = client.query_one(statement, &[&(id as i32)]).await.expect("PostgreSQL answers");
    let number = |column: usize| row.get::<_, i64>(column) as u64;
    (number(0), number(1))
}
