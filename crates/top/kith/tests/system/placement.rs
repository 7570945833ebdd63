//! Stores of fewer copies than there are groups: which nodes have files of them and map them, by a look at their
//! directories; pushes, repairs and changes of shape that keep to it.

use crate::support;
use kith_routing::store_groups;
use kith_types::GroupId;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};
use support::{
    cluster::{Cluster, signal},
    spare::{Spare, refused, run_json},
    stream::Stream,
    words::{assert_reads, judge, mget, push_version, read_on},
};

const PEOPLE: u64 = 1_000;
const GROUPS: u32 = 3;

/// The groups that are to hold a store, of so many groups.
fn home(store: &str, groups: u32, copies: u32) -> BTreeSet<u32> {
    let groups: Vec<GroupId> = (0..groups).map(GroupId).collect();
    store_groups(store, &groups, copies).into_iter().map(|group| group.0).collect()
}

/// The first name of a kind of which that holds: names decide where stores lie.
fn named(kind: &str, holds: impl Fn(&str) -> bool) -> String {
    (0..).map(|number| format!("{kind}-{number}")).find(|name| holds(name)).expect("there is one")
}

/// The files of nodes: group → its node's process and components folder.
struct Disks(BTreeMap<u32, Vec<(u32, PathBuf)>>);

impl Disks {
    fn of(cluster: &Cluster, root: &Path) -> Self {
        let status = run_json(cluster, &["cluster", "status"]);
        let mut disks: BTreeMap<u32, Vec<(u32, PathBuf)>> = BTreeMap::new();
        for it in status["nodes"].as_array().expect("a list") {
            let number = |name: &str| it[name].as_u64().expect("a number") as u32;
            let node = number("node");
            let own = if node < 100 { format!("data/node-{node:03}") } else { format!("spare-{node}") };
            disks
                .entry(number("group"))
                .or_default()
                .push((number("pid"), root.join(own).join("components")));
        }
        Self(disks)
    }

    /// The groups whose nodes all have a version's files and map them. No node of another group does either.
    fn with(&self, store: &str, version: u64) -> BTreeSet<u32> {
        let mut with = BTreeSet::new();
        for (group, nodes) in &self.0 {
            let has = nodes.iter().map(|(pid, folder)| {
                let folder = folder.join(store);
                let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("a process of this test");
                let is_mapped = maps.contains(&format!("{}/", folder.display()));
                let is_there = folder.join("values").join(version.to_string()).join("manifest.json").exists();
                assert!(is_there || !folder.exists(), "{folder:?} holds something else");
                assert_eq!(is_there, is_mapped, "{folder:?}");
                is_there
            });
            let has: BTreeSet<bool> = has.collect();
            assert_eq!(has.len(), 1, "the nodes of group {group} differ about {store}");
            if has.contains(&true) {
                with.insert(*group);
            }
        }
        with
    }
}

/// Deep verification finds the store whole on these groups, and asks no other.
fn assert_whole(cluster: &Cluster, store: &str, groups: &BTreeSet<u32>) {
    let report = run_json(cluster, &["store", "verify", store, "--deep"]);
    assert_eq!(report["ok"], true, "{report}");
    let nodes = report["nodes"].as_array().expect("a list").iter();
    let asked: BTreeSet<u32> = nodes.map(|it| it["group"].as_u64().expect("a number") as u32).collect();
    assert_eq!(asked, *groups, "{store}");
    let answer = self::run_json(cluster, &["store", "where", store, "17"]);
    let replicas: Vec<&Value> = answer["replicas"].as_array().expect("a list").iter().collect();
    assert_eq!(replicas.len(), groups.len(), "{answer}");
    assert!(replicas.iter().all(|replica| replica["state"] == "FOUND"), "{answer}");
}

/// A node that does not hold a store is not waited for.
fn push_without_a_stranger(cluster: &mut Cluster, store: &str) {
    let home = home(store, GROUPS, 1);
    let stranger = (0..GROUPS).find(|group| !home.contains(group)).expect("two do not hold it");
    let pid = cluster.node_pids(u64::from(stranger))[0];
    signal(pid, "STOP");
    push_version(cluster, store, PEOPLE, 2);
    signal(pid, "CONT");
}

/// Stores of three groups: one that a fourth group will take over, one that stays, one in two groups, one everywhere.
struct Stores {
    leaving: String,
    staying: String,
    two: String,
    every: String,
}

impl Stores {
    fn new() -> Self {
        let leaving = named("leaving", |name| home(name, 4, 1) == BTreeSet::from([3]));
        let staying = named("staying", |name| {
            home(name, 4, 1) != BTreeSet::from([3]) && home(name, 3, 1) != home(&leaving, 3, 1)
        });
        let two = named("two", |name| home(name, 3, 2).is_superset(&home(&staying, 3, 1)));
        Self { leaving, staying, two, every: "every".to_owned() }
    }

    /// Names and copies.
    fn all(&self) -> [(&str, u32); 4] {
        [(&self.leaving, 1), (&self.staying, 1), (&self.two, 2), (&self.every, GROUPS)]
    }

    /// The version that a store serves once `staying` and `two` have been pushed again.
    fn version(&self, store: &str) -> u64 {
        if store == self.staying || store == self.two { 2 } else { 1 }
    }

    /// Every store lies where it is to lie, of so many groups, at these versions, and is read.
    fn check(&self, cluster: &Cluster, root: &Path, groups: u32, version: &dyn Fn(&str) -> u64) {
        let disks = Disks::of(cluster, root);
        for (store, copies) in self.all() {
            let home = home(store, groups, copies);
            assert_eq!(disks.with(store, version(store)), home, "{store}");
            assert_whole(cluster, store, &home);
            assert_reads(cluster, store, PEOPLE, version(store));
        }
    }
}

/// The only group of a store is not taken out; of two one may be, and which groups hold it does not change.
fn take_out_a_group(cluster: &mut Cluster, stores: &Stores) {
    let Stores { leaving, staying, two, .. } = stores;
    let only = home(staying, GROUPS, 1).first().expect("one holds it").to_string();
    let (code, message) = refused(cluster, &["cluster", "drain-group", &only]);
    assert_eq!(code, "shape_refused");
    assert!(message.contains(staying) && message.contains("replication"), "{message}");
    let taken: BTreeSet<u32> =
        [leaving, staying].into_iter().flat_map(|store| home(store, GROUPS, 1)).collect();
    let free = (0..GROUPS).find(|group| !taken.contains(group)).expect("they lie in two groups").to_string();
    cluster.must(&["cluster", "drain-group", &free]);
    push_version(cluster, two, PEOPLE, 2);
    for (store, _) in stores.all() {
        assert_reads(cluster, store, PEOPLE, stores.version(store));
    }
    cluster.must(&["cluster", "restore-group", &free]);
}

/// A fourth group takes over what is to be its own, under readers, and nothing else moves.
fn add_a_fourth_group(cluster: &mut Cluster, root: &Path, stores: &Stores) {
    let readers = [&stores.leaving, &stores.two].map(|store| reader(cluster, store));
    let _spares = [100, 101].map(|node| Spare::start(cluster, node, root));
    read_on(cluster, &readers);
    cluster.must(&["cluster", "add-group", "100", "101", "--grace", "0"]);
    cluster.wait_until("what was given up is freed", |cluster| {
        run_json(cluster, &["cluster", "rebalance", "--status"])["progress"]["reclaims_left"] == 0
    });
    read_on(cluster, &readers);
    for (store, copies) in stores.all() {
        let home = home(store, 4, copies);
        // All groups is what was asked for by number.
        assert_eq!(home.len() as u32, copies);
        // A node reports that it gave a version up, and then removes its files.
        cluster.wait_until(&format!("{store} lies in its groups only"), |cluster| {
            Disks::of(cluster, root).with(store, stores.version(store)) == home
        });
    }
    push_version(cluster, &stores.leaving, PEOPLE, 2);
    let version = |store: &str| if store == stores.leaving { 2 } else { stores.version(store) };
    stores.check(cluster, root, 4, &version);
    remove_a_group(cluster, stores, &version);
    let answers = readers.map(Stream::end);
    eprintln!("answers of two stores: {answers:?}");
}

/// A group leaves once it is taken out; another receives what it alone had beside the rest, and readers notice nothing.
fn remove_a_group(cluster: &mut Cluster, stores: &Stores, version: &dyn Fn(&str) -> u64) {
    let only: BTreeSet<u32> =
        [&stores.leaving, &stores.staying].into_iter().flat_map(|store| home(store, 4, 1)).collect();
    let two = home(&stores.two, 4, 2);
    let free = (0..GROUPS).filter(|group| !only.contains(group)).max_by_key(|group| two.contains(group));
    let free = free.expect("they lie in two groups").to_string();
    let (code, message) = refused(cluster, &["cluster", "remove-group", &free]);
    assert!(code == "shape_refused" && message.contains("kith cluster drain-group"), "{message}");
    cluster.must(&["cluster", "drain-group", &free]);
    let removed = run_json(cluster, &["cluster", "remove-group", &free, "--grace", "0"]);
    assert_eq!(removed["state"], "finished", "{removed}");
    let status = run_json(cluster, &["cluster", "status"]);
    assert_eq!(status["groups"].as_array().expect("a list").len(), 3, "{status}");
    let again = run_json(cluster, &["cluster", "remove-group", &free]);
    assert_eq!((&again["state"], &again["progress"]["moves"]), (&json!("finished"), &json!(0)), "{again}");
    for (store, _) in stores.all() {
        assert_reads(cluster, store, PEOPLE, version(store));
    }
    push_version(cluster, &stores.two, PEOPLE, 3);
    assert_reads(cluster, &stores.two, PEOPLE, 3);
}

/// Reads a store again and again.
fn reader(cluster: &Cluster, store: &str) -> Stream {
    let keys = |turn: u64| (0..50).map(move |key| key * 20 + turn);
    Stream::start(cluster, (0..20).map(|turn| mget(store, keys(turn))).collect(), 1, judge)
}

#[test]
fn a_store_lies_in_as_many_groups_as_it_asks_for() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().canonicalize().expect("it is there");
    let data = root.join("data").display().to_string();
    let mut cluster = Cluster::start(&["--processes", "--groups", "3", "--nodes", "1", "--data", &data]);
    let stores = Stores::new();
    for (store, copies) in stores.all() {
        let create = ["store", "create", store, "--key", "id", "--value", "text", "--replication"];
        cluster.must(&[&create[..], &[&copies.to_string()]].concat());
        push_version(&cluster, store, PEOPLE, 1);
    }
    stores.check(&cluster, &root, GROUPS, &|_| 1);
    push_without_a_stranger(&mut cluster, &stores.staying);
    take_out_a_group(&mut cluster, &stores);
    add_a_fourth_group(&mut cluster, &root, &stores);
}

/// Reads a store's places: of each key as many distinct nodes as there are copies; all nodes that have some.
fn nodes_with(cluster: &Cluster, store: &str, copies: usize) -> BTreeSet<u64> {
    let mut all = BTreeSet::new();
    for key in 0..40 {
        let answer = run_json(cluster, &["store", "where", store, &key.to_string()]);
        let replicas = answer["replicas"].as_array().expect("a list");
        assert!(replicas.iter().all(|replica| replica["state"] == "FOUND"), "{answer}");
        let nodes: BTreeSet<u64> =
            replicas.iter().map(|replica| replica["node"].as_u64().expect("a number")).collect();
        assert_eq!((nodes.len(), replicas.len()), (copies, copies), "{answer}");
        all.extend(nodes);
    }
    all
}

fn network(cluster: &Cluster) -> Value {
    run_json(cluster, &["graph", "network-size", "9043", "-g", "village"])
}

/// Nobody notices the death of a node, which comes back.
fn kill_a_node_and_read(cluster: &mut Cluster, before: &Value) {
    signal(cluster.node_pids(0)[1], "KILL");
    for store in ["every", "two"] {
        assert_reads(cluster, store, PEOPLE, 1);
    }
    assert_eq!(network(cluster), *before);
    cluster.wait_until("it is back", |cluster| {
        let status = run_json(cluster, &["cluster", "status"]);
        status["nodes"].as_array().expect("a list").iter().all(|node| node["state"] == "up")
    });
}

#[test]
fn around_a_ring_stores_are_read_while_nodes_die_and_join() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().canonicalize().expect("it is there");
    let data = root.join("data").display().to_string();
    let ring = ["--placement", "ring", "--groups", "3", "--nodes", "5", "--partitions", "40"];
    let mut cluster = Cluster::start(&[&ring[..], &["--processes", "--data", &data]].concat());
    for (store, copies) in [("every", "3"), ("two", "2")] {
        cluster.must(&["store", "create", store, "--key", "id", "--value", "text", "--replication", copies]);
        push_version(&cluster, store, PEOPLE, 1);
        assert_reads(&cluster, store, PEOPLE, 1);
    }
    let edges = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/kith-village/edges.csv.gz");
    cluster.must(&["load", "graph", edges, "--graph", "village"]);
    let before = network(&cluster);
    assert_eq!(nodes_with(&cluster, "every", 3).len(), 5);
    nodes_with(&cluster, "two", 2);

    kill_a_node_and_read(&mut cluster, &before);

    // Ranks are no groups: none can be taken out.
    let (code, message) = refused(&cluster, &["cluster", "drain-group", "1"]);
    assert!(code == "shape_refused" && message.contains("ring"), "{code}: {message}");

    // A sixth node takes over its part, and the two nodes clockwise of it theirs, under readers.
    let readers = ["every", "two"].map(|store| reader(&cluster, store));
    let _spare = Spare::start(&mut cluster, 100, &root);
    read_on(&mut cluster, &readers);
    cluster.must(&["cluster", "add-node", "100", "--group", "0", "--grace", "0"]);
    read_on(&mut cluster, &readers);
    let answers = readers.map(Stream::end);
    eprintln!("answers of two stores: {answers:?}");
    assert!(nodes_with(&cluster, "every", 3).contains(&100));
    push_version(&cluster, "two", PEOPLE, 2);
    assert_reads(&cluster, "two", PEOPLE, 2);
    cluster.must(&["store", "rollback", "two"]);
    assert_reads(&cluster, "two", PEOPLE, 1);
    assert_eq!(network(&cluster), before);
}
