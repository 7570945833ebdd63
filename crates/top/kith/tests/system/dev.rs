//! `kith dev` as a newcomer meets it: ports that can be remembered, a cluster that goes on without a terminal, and its end.

use crate::support;
use serde_json::Value;
use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};
use support::{
    cluster::{Cluster, dev, http_get, is_alive, kith, signal, text},
    wait_until,
};

/// The ports of `kith dev` while they are free: queries, HTTP, Redis clients, Gremlin drivers.
const USUAL: [u16; 4] = [7000, 7080, 7379, 7182];

/// A folder whose cluster ends with it.
struct ClusterFolder(tempfile::TempDir);

impl ClusterFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs a command here.
    fn run(&self, mut command: Command) -> Output {
        command.current_dir(self.path()).stdin(Stdio::null()).output().expect("kith runs")
    }

    fn must(&self, command: Command) -> String {
        let output = self.run(command);
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Detached, on free ports.
    fn detach(&self, arguments: &[&str]) -> Value {
        let mut command = dev(arguments);
        command.args(["--detach", "-o", "json"]);
        serde_json::from_str(&self.must(command)).expect("one object")
    }

    fn stop(&self, arguments: &[&str]) -> Output {
        let mut command = kith(&["dev", "--stop"]);
        command.args(arguments);
        self.run(command)
    }

    fn ready(&self) -> Value {
        let text = fs::read_to_string(self.path().join(".kith/ready.json")).expect("the ready file");
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for ClusterFolder {
    fn drop(&mut self) {
        let _ = self.stop(&[]);
    }
}

fn pid(value: &Value) -> u32 {
    value.as_u64().and_then(|pid| pid.try_into().ok()).expect("a process id")
}

/// The supervisor, and the processes of databases, nodes and routers.
fn pids(ready: &Value) -> Vec<u32> {
    let kinds = ["databases", "nodes", "routers"].into_iter();
    let processes = kinds.flat_map(|key| ready[key].as_array().expect("a list"));
    std::iter::once(pid(&ready["pid"])).chain(processes.map(|process| pid(&process["pid"]))).collect()
}

fn error_code(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    // Lines of the log may come before.
    let code = stderr.lines().find_map(|line| line.strip_prefix("error[")?.split_once(']'));
    code.unwrap_or_else(|| panic!("no error: {}", text(output))).0.to_owned()
}

fn ports(ready: &Value) -> Vec<u16> {
    let addrs = ["router", "http", "resp", "gremlin"].map(|key| ready[key].as_str().expect("an address"));
    addrs.iter().map(|addr| addr.rsplit_once(':').expect("a port").1.parse().expect("a number")).collect()
}

/// One test for both cases: two would take the ports from each other.
#[test]
fn the_usual_ports_are_served_while_they_are_free_and_others_where_they_are_taken() {
    let detached = || {
        let mut command = kith(&["dev", "--detach", "--groups", "1", "--nodes", "1"]);
        command.args(["--processes"]);
        command
    };
    // What this test cannot take, somebody else has taken.
    let taken: Vec<TcpListener> =
        USUAL.iter().filter_map(|port| TcpListener::bind(("127.0.0.1", *port)).ok()).collect();
    let folder = ClusterFolder::new();
    let output = folder.must(detached());
    for (usual, port) in USUAL.iter().zip(ports(&folder.ready())) {
        assert_ne!(*usual, port);
        assert!(
            output.contains(&format!("127.0.0.1:{port}")) && output.contains(&format!("{usual} is taken")),
            "{output}"
        );
    }
    assert!(folder.stop(&[]).status.success());
    drop(taken);
    let output = folder.must(detached());
    for (usual, port) in USUAL.iter().zip(ports(&folder.ready())) {
        let is_others = || TcpStream::connect(("127.0.0.1", *usual)).is_ok();
        assert!(*usual == port || is_others(), "{usual} is free, and {port} is served");
        assert_eq!(output.contains(&format!("{usual} is taken")), *usual != port, "{output}");
    }
}

#[test]
fn the_front_page_of_a_process_says_what_it_is_and_what_is_there() {
    let folder = ClusterFolder::new();
    let ready = folder.detach(&["--groups", "1", "--nodes", "1"]);
    let page = http_get(ready["http"].as_str().expect("an address"), "/");
    for expected in ["200 OK", "router 0", "/healthz", "/readyz", "/metrics", "Documentation: https://"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    for key in ["router", "resp", "gremlin"] {
        assert!(page.contains(ready[key].as_str().expect("an address")), "{key}: {page}");
    }
}

/// The addresses on which a process listens.
fn listens(pid: u32) -> Vec<SocketAddr> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let sockets: Vec<String> = links.map(|link| link.display().to_string()).collect();
    let table = fs::read_to_string("/proc/net/tcp").expect("Linux has it");
    let listening = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_own = sockets.contains(&format!("socket:[{}]", fields.get(9)?));
        let (_, port) = fields[1].split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        (is_own && fields[3] == "0A").then(|| SocketAddr::from(([127, 0, 0, 1], port)))
    });
    listening.collect()
}

/// The answer of a port; nothing if it does not speak HTTP.
fn response_to(addr: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
    let _ = stream.write_all(request.as_bytes());
    let mut answer = [0; 1 << 10];
    let bytes = stream.read(&mut answer).unwrap_or(0);
    String::from_utf8_lossy(&answer[..bytes]).into_owned()
}

#[test]
fn web_pages_of_other_hosts_are_refused_on_every_port_of_every_process() {
    let folder = ClusterFolder::new();
    fs::write(folder.path().join("kith.toml"), "accepted-hosts = [\"console.example\"]\n").expect("written");
    let shape = ["--processes", "--groups", "1", "--nodes", "1", "--config", "kith.toml", "--data", "data"];
    let ready = folder.detach(&shape);
    let ports: Vec<SocketAddr> = pids(&ready).into_iter().flat_map(listens).collect();
    let body = r#"{"gremlin":"g.inject(1)"}"#;
    let socket = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let post = format!("content-type: text/plain\r\ncontent-length: {}\r\n", body.len());
    let requests = [
        ("GET /healthz", "", ""),
        ("GET /metrics", "", ""),
        ("GET /gremlin?gremlin=g.inject(1)", "", ""),
        ("GET /gremlin", socket, ""),
        ("POST /gremlin", &*post, body),
        ("POST /", &*post, body),
    ];
    let mut served = 0;
    for port in &ports {
        for (line, headers, body) in requests {
            let send =
                |from: &str| response_to(*port, &format!("{line} HTTP/1.1\r\n{from}\r\n{headers}\r\n{body}"));
            let is_served =
                |response: &str| response.starts_with("HTTP/1.1 2") || response.starts_with("HTTP/1.1 101");
            for from in [
                "host: evil.example",
                "host: 127.0.0.1\r\norigin: https://evil.example",
                "host: evil.example\r\norigin: http://evil.example",
                "host: localhost\r\norigin: null",
                "host: localhost\r\nsec-fetch-site: cross-site",
            ] {
                let response = send(from);
                assert!(!is_served(&response), "{port} {line} {from}: {response}");
            }
            let listed = send("host: console.example\r\norigin: https://console.example");
            assert_eq!(is_served(&listed), is_served(&send("host: localhost")), "{port} {line}: {listed}");
            served += usize::from(is_served(&listed));
        }
    }
    // Health and metrics of three processes, and the WebSocket. A traversal names no graph that there is.
    assert!(7 <= served, "{served} of {ports:?}");
    for log in ["database-000", "node-000", "router-000"] {
        let log = folder.path().join("data").join(log).with_extension("log");
        let log = fs::read_to_string(&log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let audit: Vec<&str> = log.lines().filter(|line| line.contains("audit=true")).collect();
        for part in ["a web page", "GET /metrics", "permission_denied", "evil.example", "127.0.0.1"] {
            assert!(audit.iter().any(|line| line.contains(part)), "{part}: {log}");
        }
    }
}

#[test]
fn a_detached_cluster_goes_on_without_its_terminal_until_it_is_stopped() {
    let folder = ClusterFolder::new();
    // Reading to the end of both outputs, as `detach` does, ends only if the cluster holds neither.
    let output = folder.detach(&["--processes", "--groups", "1", "--nodes", "2", "--data", "data"]);
    assert_eq!(output["log"], ".kith/ready.log");
    let ready = folder.ready();
    assert_eq!((&output["router"], &output["pid"]), (&ready["router"], &ready["pid"]));
    let supervisor = pid(&ready["pid"]);
    let stat = fs::read_to_string(format!("/proc/{supervisor}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    // After the name: state, parent, group, session, terminal.
    assert_eq!(
        (fields[3], fields[4]),
        (supervisor.to_string().as_str(), "0"),
        "a session without a terminal"
    );
    folder.must(kith(&["cluster", "status"]));
    let stopped = folder.stop(&["-o", "json"]);
    assert!(stopped.status.success(), "{}", text(&stopped));
    let reply: Value = serde_json::from_slice(&stopped.stdout).expect("JSON");
    assert_eq!(pid(&reply["stopped"]), supervisor);
    assert!(pids(&ready).iter().all(|pid| !is_running(*pid)), "all of it has ended");
    assert!(!folder.path().join(".kith/ready.json").exists());
    // Its data is kept.
    folder.detach(&["--data", "data"]);
    assert_eq!(folder.ready()["nodes"].as_array().map(Vec::len), Some(2));
}

/// Whether a process runs; one that has ended and that nobody has waited for does not.
fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    is_alive(pid) && stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[test]
fn a_cluster_is_stopped_by_its_folder_its_ready_file_or_its_data_directory() {
    let folder = ClusterFolder::new();
    let small = ["--groups", "1", "--nodes", "1"];
    for how in [
        &[][..],
        &["--ready-file", "a/r.json"],
        &["--data", "data"],
        &["--ready-file", "r", "--data", "data"],
    ] {
        let ready = folder.detach(&[&small, how].concat());
        let stopped = folder.stop(how);
        assert!(stopped.status.success(), "{how:?}: {}", text(&stopped));
        assert!(!is_running(pid(&ready["pid"])), "{how:?}");
    }
    let ready = folder.detach(&[&small[..], &["--ready-file", "r", "--data", "data"]].concat());
    let other = folder.stop(&["--ready-file", "r", "--data", "other"]);
    assert_eq!(error_code(&other), "usage");
    assert!(is_running(pid(&ready["pid"])));
    assert!(folder.stop(&["--data", "data"]).status.success());
}

#[test]
fn nothing_to_stop_is_a_clear_error() {
    let folder = ClusterFolder::new();
    assert_eq!(error_code(&folder.stop(&[])), "no_cluster");
    assert_eq!(error_code(&folder.stop(&["--data", "data"])), "not_running");
    fs::write(folder.path().join("no.json"), "{}").expect("written");
    assert_eq!(error_code(&folder.stop(&["--ready-file", "no.json"])), "ready_file_unreadable");
    let ready = folder.detach(&["--groups", "1", "--nodes", "1", "--data", "data"]);
    let first = pid(&ready["pid"]);
    signal(first, "KILL");
    wait_until("the cluster is gone", || !is_running(first));
    assert_eq!(error_code(&folder.stop(&[])), "stale_ready_file");
    assert_eq!(error_code(&folder.stop(&["--data", "data"])), "not_running");
    // Another cluster with the same data is not the one that this file names.
    let second = folder.detach(&["--data", "data", "--ready-file", "second.json"]);
    assert_eq!(error_code(&folder.stop(&[])), "stale_ready_file");
    assert!(is_running(pid(&second["pid"])));
    assert!(folder.stop(&["--ready-file", "second.json"]).status.success());
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let folder = ClusterFolder::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let failed = folder.run(kith(&[
        "dev",
        "--port",
        &port,
        "--http-port",
        "0",
        "--resp-port",
        "0",
        "--gremlin-port",
        "0",
    ]));
    assert_eq!((error_code(&failed).as_str(), failed.status.code()), ("port_in_use", Some(1)));
}

#[test]
fn a_cluster_that_cannot_start_says_so_to_who_detaches_it() {
    let folder = ClusterFolder::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let failed = folder.run(kith(&[
        "dev",
        "--detach",
        "--port",
        &port,
        "--http-port",
        "0",
        "--resp-port",
        "0",
        "--gremlin-port",
        "0",
    ]));
    assert_eq!((error_code(&failed).as_str(), failed.status.code()), ("port_in_use", Some(1)));
    assert!(!folder.path().join(".kith/ready.json").exists());
    folder.detach(&["--groups", "1", "--nodes", "1"]);
    let mut second = dev(&["--detach", "-o", "json"]);
    second.args(["--groups", "1"]);
    let second = folder.run(second);
    let error: Value = serde_json::from_slice(&second.stdout).expect("an error as JSON");
    assert_eq!(error["error"]["code"], "ready_file_in_use", "{}", text(&second));
}

#[test]
fn a_detached_start_that_is_interrupted_leaves_nothing() {
    let folder = ClusterFolder::new();
    let mut command = dev(&["--detach", "--processes", "--data", "data"]);
    let mut waiting = command.current_dir(folder.path()).stdout(Stdio::null()).spawn().expect("kith runs");
    let lock = folder.path().join("data/lock");
    let started = || fs::read_to_string(&lock).ok()?.trim().parse().ok();
    wait_until("the cluster begins to start", || started().is_some());
    signal(waiting.id(), "KILL");
    waiting.wait().expect("it has ended");
    let supervisor: u32 = started().expect("a process id");
    wait_until("what was started has ended", || !is_running(supervisor));
    assert!(!folder.path().join(".kith/ready.json").exists());
}

/// The temporary directories of clusters in `parent`.
fn temporary_in(parent: &Path) -> Vec<String> {
    let entries = fs::read_dir(parent).expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().into_string().expect("UTF-8"));
    names.filter(|name| name.starts_with("kith-dev-")).collect()
}

#[test]
fn many_nodes_of_one_process_share_its_topology_and_end_in_the_middle_of_a_load() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let mut cluster = Cluster::start_temporary(&["--groups", "2", "--nodes", "30"], parent.path());
    let data = parent.path().join(&temporary_in(parent.path())[0]);
    let node = |node: u32, what: &str| data.join(format!("node-{node:03}")).join(what);
    // A copy for each of them would be written and synced whenever one of the others changes anything.
    assert!(node(59, "kith.json").exists() && !node(59, "topology.json").exists());
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    let load = ["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"];
    let mut load = cluster.kith(&load).stderr(Stdio::null()).spawn().expect("kith runs");
    cluster.wait_until("nodes fetch", |_| (0..60).any(|at| node(at, "components/village").exists()));
    signal(cluster.pid(), "TERM");
    cluster.wait_until("it has ended", |cluster| cluster.has_ended());
    assert_eq!(temporary_in(parent.path()), Vec::<String>::new());
    load.wait().expect("the load ends, one way or the other");
}

#[test]
fn what_a_killed_cluster_left_behind_is_removed_by_the_next() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let left = || temporary_in(parent.path());
    let mut killed = Cluster::start_temporary(&["--groups", "1", "--nodes", "1"], parent.path());
    let before = left();
    assert_eq!(before.len(), 1);
    let pid = killed.pid();
    signal(pid, "KILL");
    killed.wait_until("it is gone", |killed| killed.has_ended());
    assert_eq!(left(), before, "nobody could tidy up");
    let running = Cluster::start_temporary(&["--groups", "1", "--nodes", "1"], parent.path());
    let now = left();
    assert!(now.len() == 1 && now != before, "{now:?}");
    let another = Cluster::start_temporary(&["--groups", "1", "--nodes", "1"], parent.path());
    assert!(left().len() == 2 && left().contains(&now[0]), "what is in use stays");
    drop((running, another));
    assert!(left().is_empty(), "{:?}", left());
}
