//! A cluster of separate processes from one file, its metadata in a real etcd: it answers, starts and is asked while
//! etcd is away, and changes when it is back.

mod lost;
mod outages;
mod shapes;
mod zones;

use crate::support;
use kith_cluster::testing::Etcd;
use kith_net::testing::free_addresses;
use serde_json::Value;
use std::{
    fs,
    path::PathBuf,
    process::{Child, Output, Stdio},
    time::Duration,
};
use support::cluster::{kith, text};

const NODES: u32 = 4;
/// In the file, and in no group; not started unless a test does.
const SPARES: u32 = 2;
const ROUTERS: u32 = 2;
/// Nodes lie in them in turn.
const ZONES: [&str; 2] = ["a", "b"];
/// The time of a file and the clock of a test are this close.
const CLOCKS_APART: Duration = Duration::from_millis(500);
/// Connections of a member of the village.
const MEMBER: &str = "9043";
const CONNECTIONS: usize = 666;

/// The machines, and what they are run from.
struct Machines {
    /// Its members.
    etcd: Vec<Etcd>,
    folder: tempfile::TempDir,
    config: PathBuf,
    nodes: Vec<Machine>,
    routers: Vec<Machine>,
}

/// One process; ends with its input, or when dropped.
struct Machine {
    arguments: Vec<String>,
    addr: String,
    child: Option<Child>,
}

impl Machine {
    fn new(role: &str, flag: &str, id: u32, addr: String, config: &str) -> Self {
        let arguments = [role, "--config", config, flag, &id.to_string()].map(str::to_owned).to_vec();
        Self { arguments, addr, child: None }
    }

    fn start(&mut self, log: &std::path::Path) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let log = fs::File::options().create(true).append(true).open(log).expect("a log file");
        let child = kith(&arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log).spawn();
        self.child = Some(child.expect("kith starts"));
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it can be waited for");
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Machines {
    /// With an etcd of one member.
    fn start() -> Self {
        Self::start_with(vec![Etcd::start()])
    }

    /// Makes the cluster and starts all of it; returns once it answers.
    fn start_with(etcd: Vec<Etcd>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().display();
        let hosts = etcd.iter().map(Etcd::host).collect::<Vec<_>>().join(",");
        let mut file = format!(
            "metadata = \"etcd://{hosts}\"\ncluster = \"village\"\ngroups = 2\nnodes = 2\npartitions = 24\nobject-store = \"{data}/objects\"\n"
        );
        // Given beforehand: a process has to come back where it was.
        let addrs = free_addresses((NODES + SPARES + ROUTERS) as usize);
        let addrs: Vec<String> = addrs.iter().map(ToString::to_string).collect();
        let (node_addrs, router_addrs) = addrs.split_at((NODES + SPARES) as usize);
        for (id, addr) in node_addrs.iter().enumerate() {
            file += &format!(
                "[[node]]\nnode = {id}\nzone = \"{}\"\nlisten = \"{addr}\"\ndata = \"{data}/node-{id}\"\nend-with-stdin = true\n",
                ZONES[id % ZONES.len()]
            );
        }
        for (id, addr) in router_addrs.iter().enumerate() {
            file += &format!(
                "[[router]]\nid = {id}\nlisten = \"{addr}\"\ndata = \"{data}/router-{id}\"\nend-with-stdin = true\n"
            );
        }
        file += "[session]\ndeadline-default-ms = 20000\n";
        let config = folder.path().join("kith.toml");
        fs::write(&config, file).expect("written");
        let path = config.to_str().expect("UTF-8").to_owned();
        let machines = |role: &str, flag: &str, addrs: &[String]| {
            let all = addrs.iter().enumerate();
            all.map(|(id, addr)| Machine::new(role, flag, id as u32, addr.clone(), &path)).collect::<Vec<_>>()
        };
        let nodes = machines("node", "--node", node_addrs);
        let routers = machines("router", "--id", router_addrs);
        let mut all = Self { etcd, folder, config, nodes, routers };
        all.create();
        let log = all.log_file();
        for machine in all.nodes.iter_mut().take(NODES as usize).chain(&mut all.routers) {
            machine.start(&log);
        }
        all.wait_until("all nodes are up at both routers", |all| {
            (0..ROUTERS as usize).all(|router| all.nodes_up(router) == NODES as usize)
        });
        all
    }

    fn create(&self) {
        let arguments = ["cluster", "create", "-o", "json", "--config", self.config.to_str().expect("UTF-8")];
        let created = || -> Value {
            let output = kith(&arguments).output().expect("kith runs");
            assert!(output.status.success(), "{}", text(&output));
            serde_json::from_slice(&output.stdout).expect("JSON")
        };
        let first = created();
        assert_eq!(
            (&first["created"], &first["groups"], &first["nodes"]),
            (&true.into(), &2.into(), &2.into())
        );
        let again = created();
        assert_eq!((&again["created"], &again["cluster_id"]), (&false.into(), &first["cluster_id"]));
        let other = kith(&[&arguments[..], &["--groups", "3"]].concat()).output().expect("kith runs");
        assert_eq!(refusal(&other), "topology_mismatch");
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("machines.log")
    }

    fn router(&self, router: usize) -> &str {
        &self.routers[router].addr
    }

    /// A command that asks one router.
    fn at(&self, router: usize, arguments: &[&str]) -> Output {
        let all = [arguments, &["--router", self.router(router), "-o", "json"]].concat();
        kith(&all).output().expect("kith runs")
    }

    fn must(&self, router: usize, arguments: &[&str]) -> Value {
        let output = self.at(router, arguments);
        assert!(output.status.success(), "{arguments:?}: {}\n{}", text(&output), self.log());
        let printed = String::from_utf8(output.stdout).expect("UTF-8");
        serde_json::from_str(printed.lines().last().expect("a last line")).expect("JSON")
    }

    fn nodes_up(&self, router: usize) -> usize {
        let output = self.at(router, &["cluster", "status"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let nodes = status["nodes"].as_array().cloned().unwrap_or_default();
        nodes.iter().filter(|node| node["state"] == "up").count()
    }

    /// Both routers, and a new client that asks the nodes, answer; and read what was pushed last.
    fn assert_answers(&self, pushed: &str) {
        for router in 0..ROUTERS as usize {
            let connections = ["graph", "connections", MEMBER, "--graph", "village"];
            for arguments in [&connections[..], &[&connections[..], &["--direct"]].concat()] {
                let answer = self.must(router, arguments);
                let ids = answer["ids"].as_array().unwrap_or_else(|| panic!("ids: {answer}"));
                assert_eq!(ids.len(), CONNECTIONS);
            }
            assert_eq!(self.must(router, &["get", "people", "a"])["value"], pushed);
        }
    }

    fn push(&self, router: usize, value: &str) -> Output {
        let rows = self.folder.path().join("people.csv");
        fs::write(&rows, format!("key,value\na,{value}\nb,b\n")).expect("written");
        self.at(router, &["store", "push", "people", rows.to_str().expect("UTF-8")])
    }

    fn must_push(&self, router: usize, value: &str) {
        let output = self.push(router, value);
        assert!(output.status.success(), "{}\n{}", text(&output), self.log());
    }

    /// The leased keys in etcd.
    fn alive(&self) -> usize {
        let keys = self.etcd[0].ctl(&["get", "--prefix", "--keys-only", "/kith/village/live/"]);
        keys.lines().filter(|line| !line.is_empty()).count()
    }

    fn wait_until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        support::wait_until_or_tell(what, || holds(self), || self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }
}

/// The code that a command failed with.
fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "{}", text(output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(output)));
    answer["error"]["code"].as_str().expect("a code").to_owned()
}

#[test]
fn a_node_names_what_it_lacks() {
    let etcd = Etcd::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("node");
    let node = |arguments: &[&str]| {
        let all = [&["node", "-o", "json"], arguments].concat();
        kith(&all).current_dir(folder.path()).output().expect("kith runs")
    };
    assert_eq!(refusal(&node(&["--node", "0", "--data", "d"])), "usage");
    assert_eq!(refusal(&node(&["--node", "0", "--metadata", "etcd://a"])), "usage");
    let (address, data) = (etcd.address(), data.to_str().expect("UTF-8").to_owned());
    let named = ["--node", "0", "--data", &data, "--metadata"];
    assert_eq!(refusal(&node(&[&named[..], &["etcd://a"]].concat())), "bad_settings");
    // Nodes never make a cluster.
    let empty = node(&[&named[..], &[&address]].concat());
    assert_eq!(refusal(&empty), "topology_unknown");
    assert!(text(&empty).contains("kith cluster create"), "{}", text(&empty));
    let anywhere = node(&[&named[..], &[&address, "--listen", "0.0.0.0:0"]].concat());
    assert_eq!(refusal(&anywhere), "usage");
}
