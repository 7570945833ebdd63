//! A cluster of separate processes from one file, its metadata in a real etcd: it answers, starts and is asked while
//! etcd is away, and changes when it is back.

mod support;

#[path = "../../kith-metadata/tests/support/etcd.rs"]
mod etcd;

use etcd::Etcd;
use serde_json::Value;
use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use support::{
    cluster::{http_get, kith, signal, text},
    line::Line,
};

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

/// Free now, and likely so in a moment: a process has to come back where it was.
fn free_addrs(count: u32) -> Vec<String> {
    let held: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    held.iter().map(|listener| listener.local_addr().expect("an address").to_string()).collect()
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
        let addrs = free_addrs(NODES + SPARES + ROUTERS);
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
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(output)));
    told["error"]["code"].as_str().expect("a code").to_owned()
}

/// A node of each group and a router start again from what they keep.
fn some_start_again(machines: &mut Machines) {
    let log = machines.log_file();
    for node in [0, 3] {
        machines.nodes[node].kill();
        machines.nodes[node].start(&log);
    }
    machines.routers[1].kill();
    machines.routers[1].start(&log);
    machines.wait_until("all nodes are up at both routers again", |all| {
        (0..ROUTERS as usize).all(|router| all.nodes_up(router) == NODES as usize)
    });
}

#[test]
fn a_cluster_of_machines_outlives_its_etcd() {
    let mut machines = Machines::start();
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    machines.must(0, &["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "first");
    let reads = |all: &Machines, router: usize, value: &str| {
        let output = all.at(router, &["get", "people", "a"]);
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains(value)
    };
    machines.wait_until("the other router follows", |all| reads(all, 1, "first"));
    machines.wait_until("the other router knows the graph", |all| {
        all.at(1, &["graph", "connections", MEMBER, "--graph", "village"]).status.success()
    });
    machines.assert_answers("first");
    machines.wait_until("all are alive in etcd", |all| all.alive() == (NODES + ROUTERS) as usize);

    // Away: reads go on, changes say why they cannot.
    machines.etcd[0].kill();
    machines.assert_answers("first");
    assert_eq!(refusal(&machines.push(0, "lost")), "metadata_unavailable");
    assert_eq!(refusal(&machines.at(1, &["store", "rollback", "people"])), "metadata_unavailable");
    some_start_again(&mut machines);
    machines.assert_answers("first");

    // Back, with its data: watches and leases go on.
    machines.etcd[0].restart();
    machines.wait_until("all are alive in etcd again", |all| all.alive() == (NODES + ROUTERS) as usize);
    machines.must_push(0, "second");
    machines.wait_until("the other router follows again", |all| reads(all, 1, "second"));
    machines.assert_answers("second");

    // Back without the history that the watches would go on from.
    machines.etcd[0].restart();
    machines.must_push(1, "third");
    machines.etcd[0].compact();
    machines.must_push(1, "fourth");
    machines.wait_until("the other router follows after a compaction", |all| reads(all, 0, "fourth"));
    machines.assert_answers("fourth");
}

/// Whether `/readyz` of a router says that it is to be asked.
fn is_ready(machines: &Machines, router: usize) -> bool {
    let told = machines.must(0, &["cluster", "status"]);
    let routers = told["routers"].as_array().expect("a list");
    let http = routers[router]["http"].as_str().expect("an address");
    http_get(http, "/readyz").starts_with("HTTP/1.1 200")
}

/// What a router reads of the key that is pushed.
fn value(machines: &Machines, router: usize) -> Value {
    machines.must(router, &["get", "people", "a"])["value"].clone()
}

/// The second router alone has lost etcd: its profiles, the status of the cluster and its log say so, once.
fn the_second_says_that_it_is_behind(machines: &Machines) {
    let keys = machines.folder.path().join("keys");
    fs::write(&keys, "a\n").expect("written");
    let read = ["mget", "people", "--keys-from", keys.to_str().expect("UTF-8"), "--profile"];
    let told = text(&machines.at(1, &read));
    assert!(told.contains("metadata_age_ms"), "{told}");
    assert!(!text(&machines.at(0, &read)).contains("metadata_age_ms"));
    machines.wait_until("it is not ready", |all| !is_ready(all, 1));
    assert!(is_ready(machines, 0));
    let status = machines.must(0, &["cluster", "status"]);
    assert!(3_000 < status["routers"][1]["metadata_age_ms"].as_u64().expect("a number"), "{status}");
    assert_eq!(machines.log().matches("the metadata store is out of reach").count(), 1, "{}", machines.log());
}

/// What the second router starts from on its disk, while the line to etcd is cut, is no newer than before.
fn the_second_starts_from_what_it_knew(machines: &mut Machines) {
    let cut = Instant::now();
    let log = machines.log_file();
    machines.routers[1].kill();
    machines.routers[1].start(&log);
    let (mut age, mut at_least) = (None, Duration::ZERO);
    machines.wait_until("it serves what it knew", |all| {
        at_least = cut.elapsed();
        let status = all.must(0, &["cluster", "status"]);
        age = status["routers"][1]["metadata_age_ms"].as_u64().map(Duration::from_millis);
        age.is_some()
    });
    assert!(at_least < age.expect("it is told") + CLOCKS_APART, "{age:?} after {at_least:?}");
    assert_eq!(value(machines, 1), "second");
}

#[test]
fn a_router_that_alone_loses_etcd_says_so_and_no_swap_ends_before_it_does() {
    let mut machines = Machines::start();
    let line = Line::to(machines.etcd[0].host());
    let log = machines.log_file();
    machines.routers[1].kill();
    let through = format!("etcd://{}", line.addr());
    machines.routers[1].arguments.extend(["--metadata".to_owned(), through]);
    machines.routers[1].start(&log);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "first");
    machines.must_push(0, "second");
    machines.wait_until("all are alive in etcd", |all| all.alive() == (NODES + ROUTERS) as usize);
    machines
        .wait_until("the other router is ready", |all| all.nodes_up(1) == NODES as usize && is_ready(all, 1));

    // Whoever rolls back is told when everybody serves it.
    let told = machines.must(0, &["store", "rollback", "people"]);
    assert_eq!(told["routers"], serde_json::json!([{"router": 1, "state": "seen"}]), "{}", machines.log());
    assert_eq!((value(&machines, 0), value(&machines, 1)), ("first".into(), "first".into()));

    // Or when those that do not know that they may not.
    line.cut();
    let newest = told["before"].to_string();
    let told = machines.must(0, &["store", "swap", "people", &newest, "--force"]);
    assert_eq!(told["routers"], serde_json::json!([{"router": 1, "state": "expired"}]), "{}", machines.log());
    assert_eq!((value(&machines, 0), value(&machines, 1)), ("second".into(), "first".into()));
    the_second_says_that_it_is_behind(&machines);

    // If nobody knows better, all are asked.
    machines.etcd[0].kill();
    machines.wait_until("both are ready", |all| is_ready(all, 0) && is_ready(all, 1));
    assert_eq!(value(&machines, 0), "second");

    machines.etcd[0].restart();
    line.mend();
    machines.wait_until("it follows again", |all| value(all, 1) == "second" && is_ready(all, 1));

    line.cut();
    the_second_starts_from_what_it_knew(&mut machines);
}

#[test]
fn the_loss_of_a_zone_loses_no_answer() {
    let machines = Machines::start();
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    machines.must(0, &["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "1");
    machines.must(0, &["store", "create", "ids", "--key", "id"]);
    let ids = machines.folder.path().join("ids.csv");
    // Some in each of the 24 partitions.
    let keys: Vec<String> = (0..500).map(|id| id.to_string()).collect();
    let rows: String = keys.iter().map(|id| format!("{id},{id}\n")).collect();
    fs::write(&ids, format!("key,value\n{rows}")).expect("written");
    machines.must(0, &["store", "push", "ids", ids.to_str().expect("UTF-8")]);
    let listed = machines.folder.path().join("keys.txt");
    fs::write(&listed, keys.join("\n")).expect("written");
    let asked = ["mget", "ids", "--keys-from", listed.to_str().expect("UTF-8")];
    assert_eq!(machines.must(0, &asked)["footer"]["found"], keys.len());

    for (zone, name) in ZONES.iter().enumerate() {
        let lost = || machines.nodes.iter().take(NODES as usize).skip(zone).step_by(ZONES.len());
        let pids: Vec<u32> = lost().map(|machine| machine.child.as_ref().expect("it runs").id()).collect();
        assert_eq!(pids.len(), 2);
        pids.iter().for_each(|pid| signal(*pid, "STOP"));
        machines.assert_answers("1");
        for router in 0..ROUTERS as usize {
            assert_eq!(machines.must(router, &asked)["footer"]["found"], keys.len(), "without zone {name}");
        }
        pids.iter().for_each(|pid| signal(*pid, "CONT"));
        machines.wait_until("the zone is back", |all| {
            (0..ROUTERS as usize).all(|router| all.nodes_up(router) == NODES as usize)
        });
    }
}

#[test]
fn a_cluster_that_a_zone_can_take_down_is_not_made_unless_told() {
    let etcd = Etcd::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("kith.toml");
    let places = [(0, "a"), (1, "a"), (2, "a"), (3, "b")];
    let nodes = places.map(|(node, zone)| format!("[[node]]\nnode = {node}\nzone = \"{zone}\"\n")).concat();
    let objects = folder.path().join("objects");
    let file =
        format!("metadata = \"etcd://{}\"\nobject-store = \"{}\"\n{nodes}", etcd.host(), objects.display());
    fs::write(&config, file).expect("written");
    let create = |flags: &[&str]| {
        let shape = ["--groups", "2", "--nodes", "2", "--partitions", "24", "-o", "json"];
        let config = ["cluster", "create", "--config", config.to_str().expect("UTF-8")];
        kith(&[&config[..], &shape, flags].concat()).output().expect("kith runs")
    };
    let refused = create(&[]);
    assert_eq!(refusal(&refused), "replicas_together");
    assert!(text(&refused).contains("12 of 24 partitions"), "{}", text(&refused));
    assert!(create(&["--allow-shared-zones"]).status.success());
}

#[test]
fn two_members_of_three_are_enough_for_changes() {
    let mut machines = Machines::start_with(Etcd::start_three().into());
    machines.must(0, &["store", "create", "people"]);
    for member in 0..machines.etcd.len() {
        machines.etcd[member].kill();
        let pushed = format!("without {member}");
        // A push that meets an election fails, and has changed nothing.
        machines.wait_until("a push succeeds", |all| {
            let output = all.push(0, &pushed);
            let is_done = output.status.success();
            assert!(
                is_done || refusal(&output) == "metadata_unavailable",
                "{}\n{}",
                text(&output),
                all.log()
            );
            is_done
        });
        machines.wait_until("both routers answer by it", |all| {
            (0..ROUTERS as usize).all(|router| all.must(router, &["get", "people", "a"])["value"] == pushed)
        });
        machines.etcd[member].restart();
    }
    machines.wait_until("all are alive in etcd", |all| all.alive() == (NODES + ROUTERS) as usize);
}

/// Reads without a pause, of whichever router answers, until told to stop; what was wrong.
fn read_on(routers: &str, stop: &AtomicBool) -> Vec<String> {
    let mut wrong = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        for arguments in
            [&["get", "people", "a"][..], &["graph", "connections", MEMBER, "--graph", "village"]]
        {
            let output = kith(&[arguments, &["--router", routers]].concat()).output().expect("kith runs");
            if !output.status.success() {
                wrong.push(text(&output));
            }
        }
    }
    wrong
}

#[test]
fn a_cluster_changes_its_shape_while_its_etcd_and_its_driver_die() {
    let mut machines = Machines::start();
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    machines.must(0, &["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "first");
    let log = machines.log_file();
    machines.nodes.iter_mut().skip(NODES as usize).for_each(|spare| spare.start(&log));
    machines.wait_until("the spares are up", |all| {
        (0..ROUTERS as usize).all(|router| all.nodes_up(router) == (NODES + SPARES) as usize)
    });
    let routers = format!("{},{}", machines.router(1), machines.router(0));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_on(&routers, &stop));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| grow(&mut machines)));
        stop.store(true, Ordering::Relaxed);
        let wrong = reader.join().expect("the reader ends");
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
        assert!(wrong.is_empty(), "{} reads failed: {}", wrong.len(), wrong[0]);
    });
    machines.assert_answers("first");
    machines.must_push(0, "second");
    machines.wait_until("the other router follows", |all| {
        String::from_utf8_lossy(&all.at(1, &["get", "people", "a"]).stdout).contains("second")
    });
    machines.assert_answers("second");
}

/// A node is added to each group; meanwhile etcd dies and comes back, and the router that drives dies for good.
fn grow(machines: &mut Machines) {
    let stealer = machines.nodes[NODES as usize].child.as_ref().expect("it runs").id();
    signal(stealer, "STOP");
    let add = ["cluster", "add-node", "4", "5", "--batch", "4", "--grace", "0", "--detach"];
    let begun = machines.must(0, &add);
    machines.etcd[0].kill();
    machines.routers[0].kill();
    machines.etcd[0].restart();
    signal(stealer, "CONT");
    let status = |all: &Machines| all.must(1, &["cluster", "rebalance", "--status"]);
    machines.wait_until("the rebalance is over and has freed what was given up", |all| {
        let status = status(all);
        if status["state"] == "stopped" {
            all.must(1, &["cluster", "rebalance", "--continue"]);
        }
        status["state"] == "finished" && status["progress"]["reclaims_left"] == 0
    });
    let ended = status(machines);
    assert_eq!(ended["id"], begun["id"]);
    assert_ne!(ended["driver"], begun["driver"], "another router drove on");
    let told = machines.must(1, &["cluster", "status"]);
    let nodes = told["nodes"].as_array().expect("a list");
    assert!(nodes.len() == 6 && nodes.iter().all(|node| node["partitions"] == 8), "{told}");
    let log = machines.log_file();
    machines.routers[0].start(&log);
    for command in ["drain-group", "restore-group"] {
        assert_eq!(machines.must(1, &["cluster", command, "0"])["state"], "finished");
    }
    machines.wait_until("the router is back", |all| all.nodes_up(0) == (NODES + SPARES) as usize);
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
