//! A cluster with a live graph, and conversations with it.

use super::support::cluster::{Cluster, kith, text};
use kith_database::testing::MariaDb;
use parking_lot::Mutex;
use rustix::process::Pid;
use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdout, Command, Output, Stdio},
    thread,
};
use tokio::runtime::Runtime;

pub const GRAPH: &str = "social";

/// Association types of every kind: one-sided, symmetric, and with a named inverse, with and without fields.
pub const TYPES: &str = r#"
[object.person]
fields = { name = "text", age = { type = "i64", nullable = true } }

[object.page]
fields = { title = { type = "text", default = "untitled" } }

[object.tag]

[association.likes]
fields = { note = { type = "text", nullable = true } }

[association.loves]
cap = 4
fields = { note = { type = "text", nullable = true } }

[association.knows]

[association.friend]
symmetric = true
fields = { note = { type = "text", nullable = true } }

[association.rival]
symmetric = true
fields = { note = { type = "text", nullable = true } }

[association.follows]
inverse = "followed_by"
fields = { note = { type = "text", nullable = true } }

[association.hires]
inverse = "hired_by"
fields = { note = { type = "text", nullable = true } }

[association.hired_by]
cap = 3
"#;

/// A cluster, and the database server of its graph if the cluster's own database does not hold it.
pub struct Site {
    pub cluster: Cluster,
    /// The arguments with which the cluster was started.
    arguments: Vec<String>,
    folder: tempfile::TempDir,
    server: Option<Mutex<MariaDb>>,
}

impl Site {
    /// Starts a cluster with the live graph [`GRAPH`] in its own database.
    pub fn start(arguments: &[&str]) -> Self {
        let site = Self::without_graph(arguments, None);
        site.create(GRAPH, &[]);
        site
    }

    /// Starts a cluster with the live graph [`GRAPH`] in a MariaDB server.
    pub fn start_on_mariadb(arguments: &[&str]) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (server, address) = runtime.block_on(async {
            let server = MariaDb::start_to_be_killed().await;
            let address = server.address(&server.database().await);
            (server, address)
        });
        let site = Self::without_graph(arguments, Some(server));
        site.create(GRAPH, &["--storage", &address]);
        site
    }

    /// Starts a cluster without a graph.
    pub fn start_empty(arguments: &[&str]) -> Self {
        Self::without_graph(arguments, None)
    }

    fn without_graph(arguments: &[&str], server: Option<MariaDb>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cluster = Cluster::start(arguments);
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self { cluster, arguments, folder, server: server.map(Mutex::new) }
    }

    /// Kills the MariaDB server and starts it again, if there is one. Returns whether there is one.
    pub fn restart_server(&self) -> bool {
        let Some(server) = &self.server else { return false };
        Runtime::new().expect("a runtime").block_on(server.lock().restart());
        true
    }

    /// Returns the process id of the MariaDB server, if there is one.
    pub fn server_pid(&self) -> Option<Pid> {
        let server = self.server.as_ref()?.lock();
        Pid::from_raw(server.pid() as i32)
    }

    /// Kills all processes of the cluster, and starts it again with the same data. Routers get other addresses.
    pub fn restart(&mut self) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        self.cluster.restart(&arguments);
    }

    /// Kills the MariaDB server.
    pub fn kill_server(&self) {
        self.server.as_ref().expect("the site has a server").lock().kill();
    }

    /// Runs a statement on the MariaDB server. Returns its rows as text.
    pub fn rows(&self, statement: &str) -> Vec<String> {
        let server = self.server.as_ref().expect("the site has a server").lock();
        Runtime::new().expect("a runtime").block_on(server.rows(statement))
    }

    /// Creates a live graph with [`TYPES`].
    pub fn create(&self, graph: &str, more: &[&str]) {
        let created = self.apply(graph, TYPES, more);
        assert!(created.status.success(), "{}", text(&created));
    }

    /// Runs `kith schema apply` with these types.
    pub fn apply(&self, graph: &str, types: &str, more: &[&str]) -> Output {
        let path = self.file("types.toml", types);
        self.command(&[&["schema", "apply", &path, "--graph", graph, "-o", "json"], more].concat())
    }

    /// Writes a file in the folder of the site. Returns its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, content).expect("the file can be written");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// Runs a `kith` command. Returns its output.
    pub fn command(&self, arguments: &[&str]) -> Output {
        self.cluster.kith(arguments).output().expect("kith runs")
    }

    /// Starts a conversation with any router.
    pub fn talk(&self, concurrency: u32) -> Talk {
        Talk::start(self.cluster.kith(&["run"]), concurrency)
    }

    /// Starts a conversation with the router with the given index.
    pub fn talk_to(&self, router: usize, concurrency: u32) -> Talk {
        Talk::at(&self.routers()[router], concurrency)
    }

    /// Returns the addresses of the routers.
    pub fn routers(&self) -> Vec<String> {
        let ready = self.cluster.ready();
        let routers = ready["routers"].as_array().expect("a list").iter();
        routers.map(|router| router["addr"].as_str().expect("an address").to_owned()).collect()
    }
}

/// A conversation: a `kith run` process that answers lines. The process ends when this value is dropped.
pub struct Talk {
    child: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    /// Starts a conversation with the router at an address.
    pub fn at(addr: &str, concurrency: u32) -> Self {
        Self::start(kith(&["run", "--router", addr]), concurrency)
    }

    fn start(mut command: Command, concurrency: u32) -> Self {
        command.args(["--input", "-", "--concurrency", &concurrency.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("kith run starts");
        let answers = BufReader::new(child.stdout.take().expect("the output is piped")).lines();
        Self { child, answers }
    }

    /// Sends several lines without waiting in between. Returns their answers.
    pub fn ask_all(&mut self, lines: &[Value]) -> Vec<Value> {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (input, answers) = (self.child.stdin.as_mut().expect("the input is piped"), &mut self.answers);
        thread::scope(|scope| {
            scope.spawn(move || input.write_all(text.as_bytes()).expect("kith run reads"));
            let answer = |_: &Value| {
                let line = answers.next().expect("kith run answers every line").expect("the output is text");
                serde_json::from_str(&line).expect("each line is JSON")
            };
            lines.iter().map(answer).collect()
        })
    }

    pub fn ask(&mut self, line: &Value) -> Value {
        self.ask_all(std::slice::from_ref(line)).remove(0)
    }

    /// Calls [`Talk::ask`] with a line that must succeed.
    pub fn must(&mut self, line: &Value) -> Value {
        let answer = self.ask(line);
        assert!(answer.get("error").is_none(), "{line}: {answer}");
        answer
    }

    /// Sends a line that must fail. Returns the code of the error and the whole error as JSON text.
    pub fn refused(&mut self, line: &Value) -> (String, String) {
        let answer = self.ask(line);
        let code = code(&answer).unwrap_or_else(|| panic!("{line} is answered: {answer}")).to_owned();
        (code, answer["error"].to_string())
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // The process may still wait for answers, which nobody needs any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the error code of an answer; `None` if the answer is not an error.
pub fn code(answer: &Value) -> Option<&str> {
    answer["error"]["code"].as_str()
}
