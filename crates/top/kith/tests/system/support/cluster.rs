//! Starting, asking and killing a `kith dev`.

use serde_json::Value;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A running `kith dev`; ended when dropped.
pub struct Cluster {
    child: Child,
    pub ready_file: PathBuf,
    /// Set for its commands.
    env: Vec<(String, String)>,
    _folder: tempfile::TempDir,
}

/// No test relies on a port that somebody else may use.
const FREE_PORTS: [&str; 8] = ["--port", "0", "--http-port", "0", "--resp-port", "0", "--gremlin-port", "0"];

/// In the folder of a cluster.
const READY_FILE: &str = "ready.json";
const LOG_FILE: &str = "dev.log";

/// Starts a `kith dev` with its files in `folder`.
fn spawn(folder: &Path, arguments: &[&str], prepare: impl Fn(&mut Command)) -> Child {
    let log = fs::File::options().create(true).append(true).open(folder.join(LOG_FILE)).expect("a log file");
    let ready_file = folder.join(READY_FILE);
    let mut command = dev(&["--end-with-stdin", "--ready-file", ready_file.to_str().expect("UTF-8")]);
    prepare(&mut command);
    command.args(arguments).stdin(Stdio::piped()).stderr(log).spawn().expect("kith dev starts")
}

/// A `kith dev` on free ports, with other arguments besides.
pub fn dev(arguments: &[&str]) -> Command {
    let mut command = kith(&["dev"]);
    command.args(FREE_PORTS).args(arguments);
    command
}

/// One run of the binary.
pub fn kith(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kith"));
    command.args(arguments).env_remove("KITH_ROUTER");
    command
}

impl Cluster {
    /// Starts a cluster and waits until it answers. Its data goes where the test's files are, unless they say where.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_in(arguments, &[])
    }

    /// As [`Cluster::start`]; it and its commands see these variables.
    pub fn start_in(arguments: &[&str], env: &[(String, String)]) -> Self {
        let mut cluster = Self::start_with(arguments, |command, folder| {
            command.envs(env.iter().cloned());
            if !arguments.contains(&"--data") {
                command.arg("--data").arg(folder.join("data"));
            }
        });
        cluster.env = env.to_vec();
        cluster
    }

    /// As [`Cluster::start`]; its data goes to a temporary directory that it makes in `parent`.
    pub fn start_temporary(arguments: &[&str], parent: &Path) -> Self {
        Self::start_with(arguments, |command, _| {
            command.env("TMPDIR", parent);
        })
    }

    fn start_with(arguments: &[&str], prepare: impl Fn(&mut Command, &Path)) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().to_owned();
        let start = || spawn(&path, arguments, |command| prepare(command, &path));
        let ready_file = path.join(READY_FILE);
        let mut cluster = Self { child: start(), ready_file, env: Vec::new(), _folder: folder };
        cluster.wait_until_ready(start);
        cluster
    }

    /// Waits until the cluster is ready. A cluster that starts again listens where it did before. Another test may have got one
    /// of these ports meanwhile, for a connection of its own; then `start` starts the cluster once more.
    fn wait_until_ready(&mut self, start: impl Fn() -> Child) {
        self.wait_until("the cluster is ready", |cluster| {
            let log_file = cluster._folder.path().join(LOG_FILE);
            let log = fs::read_to_string(&log_file).unwrap_or_default();
            if let Some(ended) = cluster.child.try_wait().expect("the child can be waited for") {
                assert!(log.contains("error[port_in_use]"), "kith dev ended: {ended:?}\n{log}");
                fs::write(&log_file, "").expect("the log can be written");
                cluster.child = start();
            }
            cluster.ready_file.exists()
        });
    }

    /// Kills the supervisor and all its processes, and starts it again with [`Cluster::data`]: a cluster that was started with these
    /// arguments and without `--data`.
    pub fn restart(&mut self, arguments: &[&str]) {
        let pids = self.pids();
        // First the one that would start the others again.
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
        for pid in pids {
            // It ends by itself when it sees that its supervisor is gone.
            let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status();
            self.wait_until("a process is gone", |_| has_ended(pid));
        }
        fs::remove_file(&self.ready_file).expect("it is there");
        let start = self.starter(arguments);
        self.child = start();
        self.wait_until_ready(start);
    }

    /// Starts the supervisor with these arguments, [`Cluster::data`] and the variables of this cluster.
    fn starter<'a>(&self, arguments: &'a [&'a str]) -> impl Fn() -> Child + use<'a> {
        let (data, folder, env) = (self.data(), self._folder.path().to_owned(), self.env.clone());
        move || {
            spawn(&folder, arguments, |command| {
                command.arg("--data").arg(&data).envs(env.iter().cloned());
            })
        }
    }

    /// The processes of all its members that run in processes of their own.
    fn pids(&self) -> Vec<u32> {
        let ready = self.ready();
        let members = ["nodes", "routers", "databases"].map(|of| ready[of].as_array().cloned());
        let pids = members.iter().flatten().flatten().filter_map(|member| member["pid"].as_u64());
        pids.map(|pid| pid as u32).filter(|pid| *pid != self.pid()).collect()
    }

    /// The ready file's content.
    pub fn ready(&self) -> Value {
        let text = fs::read_to_string(&self.ready_file).expect("the ready file is there");
        serde_json::from_str(&text).expect("the ready file is JSON")
    }

    /// Its data directory, unless another was given.
    pub fn data(&self) -> PathBuf {
        self._folder.path().join("data")
    }

    /// The supervisor's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the supervisor is gone.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the child can be waited for").is_some()
    }

    /// A command against this cluster.
    pub fn kith(&self, arguments: &[&str]) -> Command {
        let mut command = kith(arguments);
        command.arg("--ready-file").arg(&self.ready_file).envs(self.env.iter().cloned());
        command
    }

    /// Runs a command that must succeed; its standard output.
    pub fn must(&self, arguments: &[&str]) -> String {
        let output = self.kith(arguments).output().expect("kith runs");
        assert!(output.status.success(), "kith {}: {}", arguments.join(" "), text(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Answers one request a line through `kith run`.
    pub fn run(&self, requests: &[Value], concurrency: u32) -> (Vec<Value>, i32) {
        self.run_and_then(requests, concurrency, usize::MAX, || ())
    }

    /// As [`Cluster::run`]; does something when `at` answers have come and others are under way.
    pub fn run_and_then(
        &self,
        requests: &[Value],
        concurrency: u32,
        at: usize,
        then: impl FnOnce(),
    ) -> (Vec<Value>, i32) {
        let command = self.kith(&["run", "--input", "-", "--concurrency", &concurrency.to_string()]);
        run_lines(command, requests, at, then)
    }

    /// Waits, not for ever, until something holds.
    pub fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        super::wait_until(what, || holds(self));
    }

    /// The value of a metric, as `/metrics` of the ready file's `http` has it.
    pub fn metric(&self, name: &str) -> Option<f64> {
        metric_at(self.ready()["http"].as_str().expect("an address"), name)
    }

    /// Where each node serves its metrics, by id.
    pub fn nodes_http(&self) -> Vec<String> {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let addr = self.ready()["router"].as_str().expect("an address").to_owned();
        runtime.block_on(async {
            let router = kith_client::RouterClient::connect(&[addr]).await.expect("the router is up");
            let topology = router.topology().await.expect("it knows the nodes");
            topology.nodes.iter().map(|node| node.http.clone()).collect()
        })
    }

    /// Process ids of the nodes of one group.
    pub fn node_pids(&self, group: u64) -> Vec<u32> {
        let ready = self.ready();
        let nodes = ready["nodes"].as_array().expect("nodes are a list").iter();
        nodes
            .filter(|node| node["group"] == group)
            .map(|node| node["pid"].as_u64().expect("a pid") as u32)
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(10) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
    }
}

/// The whole answer of an HTTP endpoint.
pub fn http_get(addr: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).expect("the endpoint is up");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n").expect("it listens");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers with text");
    text
}

/// The value of a metric, labels and all, of the process whose HTTP endpoint this is.
pub fn metric_at(addr: &str, name: &str) -> Option<f64> {
    let text = http_get(addr, "/metrics");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    Some(value.trim().parse().expect("a number"))
}

/// Feeds requests to a `kith run --input -` and reads its answers, one a line; does something when `at` have come.
pub fn run_lines(
    mut command: Command,
    requests: &[Value],
    at: usize,
    then: impl FnOnce(),
) -> (Vec<Value>, i32) {
    let lines: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kith run starts");
    let mut stdin = child.stdin.take().expect("its input is piped");
    let writer = thread::spawn(move || drop(stdin.write_all(lines.as_bytes())));
    let mut then = Some(then);
    let mut answers: Vec<Value> = Vec::new();
    for line in BufReader::new(child.stdout.take().expect("its output is piped")).lines() {
        let line = line.expect("its output is text");
        answers.push(serde_json::from_str(&line).expect("each line is JSON"));
        if at <= answers.len()
            && let Some(then) = then.take()
        {
            then();
        }
    }
    let mut stderr = String::new();
    child.stderr.take().expect("its errors are piped").read_to_string(&mut stderr).expect("they are text");
    let status = child.wait().expect("kith run ends");
    writer.join().expect("the writer ends");
    assert_eq!(answers.len(), requests.len(), "one answer a line: {status}\n{stderr}");
    (answers, status.code().unwrap_or(-1))
}

/// Sends a signal to a process that this test started. After `STOP`, waits until all of its threads stand still.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
    assert!(status.expect("kill runs").success(), "kill -{name} {pid}");
    if name == "STOP" {
        super::wait_until("the process stands still", || stands_still(pid));
    }
}

/// Whether all threads of a process are stopped.
fn stands_still(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        // The state follows the name of the thread, which is in parentheses.
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}

/// Whether a process is there.
pub fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Whether a process has ended, even if nobody has waited for it.
pub fn has_ended(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |text| text.is_empty())
}

/// Both outputs, for messages.
pub fn text(output: &Output) -> String {
    format!(
        "{}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}
