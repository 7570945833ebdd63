//! Changes of a live cluster's shape while it is read: nodes come and go, a driver dies, groups are taken out in turn.

use crate::support;
use kith_engine::{KeyType, ValueType};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};
use support::{
    cluster::{Cluster, kith, run_lines, signal},
    reference::{Case, Reference, differences},
    spare::{Spare, refused, run_json},
    values::{create, push},
};

const WORDS: (KeyType, ValueType) = (KeyType::String, ValueType::Text);
const PEOPLE: u64 = 5_000;

fn word(key: u64) -> String {
    format!("member {key}")
}

fn value(key: u64, version: u64) -> String {
    format!("value {key} of version {version}, {}", "x".repeat(500))
}

fn status(cluster: &Cluster) -> Value {
    run_json(cluster, &["cluster", "rebalance", "--status"])
}

/// Waits until the last rebalance has ended and freed what it gave up; how it ended.
fn settled(cluster: &mut Cluster) -> Value {
    let mut last = Value::Null;
    cluster.wait_until("the rebalance is over and has freed what it gave up", |cluster| {
        last = status(cluster);
        let is_over = ["finished", "aborted"].contains(&last["state"].as_str().unwrap_or_default());
        if last["state"] == "stopped" {
            run_json(cluster, &["cluster", "rebalance", "--continue", "--detach"]);
        }
        is_over && last["progress"]["reclaims_left"] == 0
    });
    last
}

/// Node → partitions, by group.
fn shape(cluster: &Cluster) -> Vec<(Option<u64>, u64, u64)> {
    let status = run_json(cluster, &["cluster", "status"]);
    let nodes = status["nodes"].as_array().expect("a list").iter();
    nodes
        .map(|it| {
            let number = |name: &str| it[name].as_u64().expect("a number");
            (it["group"].as_u64(), number("node"), number("partitions"))
        })
        .collect()
}

/// Reads without a pause until the test stops them; returns what was wrong.
struct Readers {
    ready_file: PathBuf,
    cases: Vec<Case>,
    edges: BTreeSet<(u64, u64)>,
    stop: AtomicBool,
    rounds: AtomicUsize,
    wrong: Mutex<Vec<String>>,
}

impl Readers {
    fn new(cluster: &Cluster) -> Self {
        let village = Reference::open("kith-village").expect("it comes with the project");
        Self {
            ready_file: cluster.ready_file.clone(),
            edges: village.edges(),
            cases: village.cases(4, &json!({"cache": "bypass"})),
            stop: AtomicBool::new(false),
            rounds: AtomicUsize::new(0),
            wrong: Mutex::default(),
        }
    }

    fn read(&self, arguments: &[&str]) {
        let mut start = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let keys: Vec<u64> = (0..300).map(|key| (start + key * 17) % (PEOPLE + 50)).collect();
            start += 1;
            let words: Vec<String> = keys.iter().copied().map(word).collect();
            let mut requests: Vec<Value> = self.cases.iter().map(|case| case.request.clone()).collect();
            requests.push(json!({"op": "mget", "store": "words", "keys": words, "deadline_ms": 60_000}));
            let mut command = kith(&["run", "--input", "-", "--concurrency", "4"]);
            command.arg("--ready-file").arg(&self.ready_file).args(arguments);
            let (mut answers, _) = run_lines(command, &requests, usize::MAX, || ());
            let mut wrong = Vec::new();
            if let Some(problem) = answers.pop().and_then(|answer| words_problem(&keys, &answer)) {
                wrong.push(problem);
            }
            wrong.extend(differences(&self.cases, &answers, &self.edges));
            self.wrong
                .lock()
                .expect("nobody panics with it")
                .extend(wrong.into_iter().map(|it| format!("{arguments:?}: {it}")));
            self.rounds.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Every value is of the one version that the answer names.
fn words_problem(keys: &[u64], answer: &Value) -> Option<String> {
    let Some(version) = answer["footer"]["versions"][0].as_u64() else {
        return Some(format!("{answer:.300}"));
    };
    let results = answer["results"].as_array()?;
    let expected = |key: u64| match key < PEOPLE {
        true => json!({"key": word(key), "state": "FOUND", "value": value(key, version)}),
        false => json!({"key": word(key), "state": "ABSENT", "value": null}),
    };
    let wrong = keys.iter().zip(results).find(|(key, result)| **result != expected(**key));
    match wrong {
        Some((_, result)) => Some(format!("{result:.300}")),
        None => (results.len() != keys.len()).then(|| "answers are missing".to_owned()),
    }
}

fn star(folder: &Path) -> PathBuf {
    let path = folder.join("star.csv");
    fs::write(&path, "src,dst\n0,1\n0,2\n").expect("written");
    path
}

/// The pid of the router that drives.
fn driver_pid(cluster: &Cluster, status: &Value) -> u32 {
    let driver = status["driver"].as_str().expect("a driver");
    let number =
        driver.trim_start_matches("router ").split(',').next().and_then(|it| it.parse::<usize>().ok());
    cluster.ready()["routers"][number.expect("a number")]["pid"].as_u64().expect("a pid") as u32
}

#[test]
fn a_cluster_changes_its_shape_while_it_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data").display().to_string();
    let shape = ["--processes", "--routers", "2", "--groups", "2", "--nodes", "3", "--data", &data];
    let mut cluster = Cluster::start(&shape);
    let village = Reference::open("kith-village").expect("it comes with the project");
    let load = village.load_arguments();
    cluster.must(&load.iter().map(String::as_str).collect::<Vec<_>>());
    create(&cluster, "words", WORDS.0, WORDS.1);
    for version in [1, 2] {
        let rows = (0..PEOPLE).map(|key| (word(key).into_bytes(), value(key, version).into_bytes()));
        push(&cluster, "words", WORDS, version, rows);
    }
    let spares = [100, 101].map(|node| Spare::start(&mut cluster, node, folder.path()));
    let readers = Readers::new(&cluster);
    thread::scope(|scope| {
        scope.spawn(|| readers.read(&[]));
        scope.spawn(|| readers.read(&["--direct"]));
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            grow(&mut cluster, &spares, folder.path());
            abort_and_even_out(&mut cluster);
            groups_in_turn(&cluster);
            leave(&mut cluster);
        }));
        readers.stop.store(true, Ordering::SeqCst);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    let wrong = readers.wrong.lock().expect("nobody panics with it");
    let rounds = readers.rounds.load(Ordering::SeqCst);
    assert!(wrong.is_empty(), "{} of {rounds} rounds: {}", wrong.len(), wrong.join("\n"));
    assert!(4 < rounds, "{rounds} rounds");
}

/// A node is added to each group; the driver is killed while a stealer does not move.
fn grow(cluster: &mut Cluster, spares: &[Spare; 2], folder: &Path) {
    let add = ["cluster", "add-node", &spares[0].addr, "101", "--batch", "2", "--grace", "1"];
    let plan = run_json(cluster, &add.iter().copied().chain(["--plan"]).collect::<Vec<_>>());
    assert_eq!((&plan["state"], &plan["progress"]["moves"]), (&json!("planned"), &json!(12)), "{plan}");
    assert!(
        plan["progress"]["bytes"].as_u64().is_some_and(|bytes| 500_000 < bytes),
        "both versions move: {plan}"
    );
    assert_eq!(plan["overhead"], 1.0, "new nodes only get, old ones only give");
    assert!(
        shape(cluster).iter().any(|(group, node, _)| group.is_none() && *node == 100),
        "a plan changes nothing"
    );

    signal(spares[0].pid(), "STOP");
    let begun = run_json(cluster, &add.iter().copied().chain(["--detach"]).collect::<Vec<_>>());
    let star = star(folder).display().to_string();
    let (code, message) = refused(cluster, &["load", "graph", &star, "--graph", "star"]);
    assert_eq!(code, "rebalance_running", "{message}");
    assert!(message.contains(begun["id"].as_str().expect("an id")), "{message}");
    assert_eq!(refused(cluster, &["cluster", "drain-group", "0"]).0, "rebalance_running");
    signal(driver_pid(cluster, &begun), "KILL");
    signal(spares[0].pid(), "CONT");
    let ended = settled(cluster);
    assert_eq!((&ended["state"], &ended["id"]), (&json!("finished"), &begun["id"]), "{ended}");
    assert_ne!(ended["driver"], begun["driver"], "another router, or the same one started again, drove on");
    assert_eq!(ended["progress"]["moves_done"], 12);
    let shape = shape(cluster);
    assert_eq!(shape.len(), 8);
    assert!(shape.iter().all(|(group, _, partitions)| group.is_some() && *partitions == 6), "{shape:?}");

    // Both versions moved: a rollback is as quick as before, and answers from the new nodes too.
    cluster.must(&["store", "rollback", "words"]);
    let request = json!({"op": "mget", "store": "words", "keys": (0..PEOPLE).map(word).collect::<Vec<_>>()});
    let keys: Vec<u64> = (0..PEOPLE).collect();
    for way in [&[][..], &["--direct"]] {
        let mut command = cluster.kith(&["run", "--input", "-"]);
        command.args(way);
        let (answers, _) = run_lines(command, std::slice::from_ref(&request), usize::MAX, || ());
        assert_eq!(words_problem(&keys, &answers[0]), None);
        assert_eq!(answers[0]["footer"]["versions"], json!([1]));
    }
    cluster.must(&["store", "swap", "words", "2", "--force"]);
    // A new version goes to the new owners.
    cluster.must(&["load", "graph", &star, "--graph", "star"]);
}

fn abort_and_even_out(cluster: &mut Cluster) {
    let drain = ["cluster", "drain", "0", "--batch", "1", "--grace", "1", "--throttle", "1", "--detach"];
    let begun = run_json(cluster, &drain);
    let aborted = run_json(cluster, &["cluster", "rebalance", "--abort"]);
    assert_eq!((&aborted["state"], &aborted["id"]), (&json!("aborted"), &begun["id"]), "{aborted}");
    settled(cluster);
    let of_first = |cluster: &Cluster| -> u64 {
        shape(cluster).iter().filter(|(group, ..)| *group == Some(0)).map(|(.., partitions)| partitions).sum()
    };
    assert_eq!(of_first(cluster), 24, "every partition has an owner, whatever was finished");
    // The next change waits until what this one gave up is freed.
    let evened = run_json(cluster, &["cluster", "rebalance", "--apply", "--grace", "3"]);
    assert_eq!(evened["state"], "finished");
    assert!(shape(cluster).iter().all(|(.., partitions)| *partitions == 6), "{:?}", shape(cluster));
}

/// As for an upgrade.
fn groups_in_turn(cluster: &Cluster) {
    for group in ["0", "1"] {
        let drained = run_json(cluster, &["cluster", "drain-group", group]);
        assert_eq!((&drained["state"], &drained["progress"]["moves"]), (&json!("finished"), &json!(0)));
        let other = if group == "0" { "1" } else { "0" };
        assert_eq!(refused(cluster, &["cluster", "drain-group", other]).0, "shape_refused");
        assert_eq!(refused(cluster, &["cluster", "drain-group", group]).0, "shape_refused");
        let restored = run_json(cluster, &["cluster", "restore-group", group]);
        assert_eq!(restored["state"], "finished");
    }
    assert_eq!(refused(cluster, &["cluster", "drain-group", "9"]).0, "shape_refused");
    let (code, message) = refused(cluster, &["cluster", "remove-group", "1"]);
    assert!(code == "shape_refused" && message.contains("kith cluster drain-group"), "{message}");
    assert_eq!(refused(cluster, &["cluster", "drain", "77"]).0, "bad_shape");
}

fn leave(cluster: &mut Cluster) {
    let removed = run_json(cluster, &["cluster", "remove-node", "1", "--grace", "0"]);
    assert_eq!(removed["state"], "finished", "{removed}");
    settled(cluster);
    let shape = shape(cluster);
    assert!(shape.contains(&(None, 1, 0)), "it is a spare now: {shape:?}");
    assert_eq!(shape.iter().filter(|(group, ..)| *group == Some(0)).count(), 3);
    assert_eq!(refused(cluster, &["cluster", "rebalance", "--abort"]).0, "no_rebalance");
}
