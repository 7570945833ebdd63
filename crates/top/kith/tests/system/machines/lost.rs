//! A cluster whose etcd is lost for good, without a backup.

use super::{MEMBER, Machine, Machines, NODES, ROUTERS, refusal, support};
use crate::support::cluster::{kith, text};
use kith_cluster::testing::Etcd;
use serde_json::Value;
use std::fs;

/// The steps of docs/operating/machines.md: stop everything, name an empty etcd, recover, start everything.
fn recover(machines: &mut Machines, database: &mut Machine) -> Value {
    let processes = machines.nodes.iter_mut().chain(&mut machines.routers);
    processes.for_each(Machine::kill);
    database.kill();
    let lost = std::mem::replace(&mut machines.etcd[0], Etcd::start());
    let file = fs::read_to_string(&machines.config).expect("it is there");
    fs::write(&machines.config, file.replace(&lost.host(), &machines.etcd[0].host())).expect("written");
    drop(lost);
    let copy = |name: &str| machines.folder.path().join(name).join("topology.json");
    let copies = ["node-0", "node-3", "router-1"].map(copy);
    let run = || {
        let config = machines.config.to_str().expect("UTF-8");
        let mut command = kith(&["cluster", "recover", "--config", config, "-o", "json"]);
        command.args(&copies).output().expect("kith runs")
    };
    let recovered = run();
    assert!(recovered.status.success(), "{}", text(&recovered));
    // Another time it refuses, and changes nothing.
    assert_eq!(refusal(&run()), "topology_mismatch");
    let log = machines.log_file();
    database.start(&log);
    for machine in machines.nodes.iter_mut().take(NODES as usize).chain(&mut machines.routers) {
        machine.start(&log);
    }
    machines.wait_until("all nodes are up at both routers", |all| {
        (0..ROUTERS as usize).all(|router| all.nodes_up(router) == NODES as usize)
    });
    serde_json::from_slice(&recovered.stdout).expect("JSON")
}

#[test]
fn a_cluster_whose_etcd_is_lost_is_recovered_from_what_its_machines_keep() {
    let mut machines = Machines::start();
    let mut database =
        Machine::new("database", "--id", 0, String::new(), machines.config.to_str().expect("UTF-8"));
    let data = machines.folder.path().join("database").to_str().expect("UTF-8").to_owned();
    database.arguments.extend(["--data".to_owned(), data, "--end-with-stdin".to_owned()]);
    database.start(&machines.log_file());
    let edges = support::root().join("testdata/kith-village/edges.csv.gz");
    machines.must(0, &["load", "graph", edges.to_str().expect("UTF-8"), "--graph", "village"]);
    machines.must(0, &["store", "create", "people"]);
    machines.must_push(0, "first");
    machines.must_push(0, "second");
    let types = machines.folder.path().join("social.toml");
    fs::write(&types, "[object.person]\nfields = { name = \"text\" }\n").expect("written");
    let apply = ["schema", "apply", types.to_str().expect("UTF-8"), "--graph", "social"];
    machines.wait_until("the live graph is there", |all| all.at(0, &apply).status.success());
    let add = |all: &Machines, id: &str, name: &str| {
        let data = format!("{{\"name\":\"{name}\"}}");
        all.at(0, &["object", "add", "--graph", "social", "--type", "person", "--id", id, "--data", &data])
    };
    machines.wait_until("it is written", |all| add(all, "7", "Ada").status.success());
    machines.wait_until("the other router follows", |all| {
        String::from_utf8_lossy(&all.at(1, &["get", "people", "a"]).stdout).contains("second")
            && all.at(1, &["graph", "connections", MEMBER, "--graph", "village"]).status.success()
            && all.at(1, &["object", "get", "7", "--graph", "social"]).status.success()
    });

    let recovered = recover(&mut machines, &mut database);
    assert_eq!((&recovered["stores"], &recovered["live_graphs"]), (&2.into(), &1.into()), "{recovered}");
    machines.assert_answers("second");
    let read = |all: &Machines, id: &str| {
        let output = all.at(0, &["object", "get", id, "--graph", "social", "--critical"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    machines.wait_until("what was written is read", |all| read(all, "7").contains("Ada"));
    machines.wait_until("writes go on", |all| add(all, "8", "Bob").status.success());
    assert!(read(&machines, "8").contains("Bob"));
    // Versions go on too: back, and a new one.
    machines.must(0, &["store", "rollback", "people"]);
    machines.wait_until("the version before serves", |all| {
        String::from_utf8_lossy(&all.at(1, &["get", "people", "a"]).stdout).contains("first")
    });
    machines.must_push(0, "third");
    machines.wait_until("the other router follows", |all| {
        String::from_utf8_lossy(&all.at(1, &["get", "people", "a"]).stdout).contains("third")
    });
    machines.assert_answers("third");
}
