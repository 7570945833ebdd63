//! A live graph whose database cannot be used: reads, writes and the status of the cluster say what is wrong, and everything
//! works again once the database does.

use super::{
    site::{GRAPH, Site, Talk, code},
    support::{cluster::text, in_time, wait_until},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, thread::sleep, time::Duration};

const SHAPE: [&str; 6] = ["--groups", "1", "--nodes", "2", "--partitions", "4"];

fn add(id: u64) -> Value {
    json!({"op": "object_add", "graph": GRAPH, "type": "person", "id": id, "data": {"name": "Ada"}})
}

fn get(id: u64) -> Value {
    json!({"op": "object_get", "graph": GRAPH, "id": id, "critical": true})
}

/// Repeats a line until its answer has this code. Returns the answer.
fn ask_until(talk: &mut Talk, expected: Option<&str>, mut line: impl FnMut() -> Value) -> Value {
    let mut answer = Value::Null;
    let is_as_expected = in_time().any(|()| {
        answer = talk.ask(&line());
        sleep(Duration::from_millis(50));
        code(&answer) == expected
    });
    assert!(is_as_expected, "{answer}");
    answer
}

/// Returns the errors of nodes that the status of the cluster shows.
fn errors(site: &Site) -> Vec<String> {
    let status: Value = serde_json::from_str(&site.cluster.must(&["cluster", "status", "-o", "json"]))
        .expect("the output is JSON");
    let nodes = status["live_graphs"][0]["nodes"].as_array().expect("a list").iter();
    nodes.filter_map(|node| Some(node["error"].as_str()?.to_owned())).collect()
}

/// Reads the log of each node, whose lines are objects, and checks that it does not say the same again and again. A process
/// that starts again says it once more.
fn assert_warnings_are_not_repeated(site: &Site) {
    for node in ["node-000", "node-001"] {
        let log = site.cluster.data().join(node).with_extension("log");
        let log = fs::read_to_string(log).expect("the log of a node");
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for line in log.lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let mut fields = line.as_object().expect("an object").clone();
            let level = fields["level"].as_str().expect("a level").to_owned();
            for field in ["timestamp", "target", "message"] {
                assert!(fields[field].is_string(), "{field}: {line}");
            }
            fields.remove("timestamp");
            let text = Value::Object(fields).to_string();
            if level == "WARN" || level == "ERROR" {
                *times.entry(text).or_default() += 1;
            }
        }
        assert!(times.keys().any(|text| text.contains("database")), "{log}");
        let repeated: Vec<_> = times.iter().filter(|(_, times)| 2 < **times).collect();
        assert!(repeated.is_empty(), "{repeated:?}");
        assert!(times.len() < 40, "{times:?}");
    }
}

#[test]
fn a_database_that_is_gone_is_named_by_reads_writes_and_the_status() {
    let processes = ["--processes", "--log-format", "json"];
    let mut site = Site::start_on_mariadb(&[&SHAPE[..], &processes].concat());
    let mut talk = site.talk(1);
    talk.must(&add(1));
    assert_eq!(errors(&site), [""; 0]);

    site.kill_server();
    let mut id = 1;
    let mut next = || {
        id += 1;
        add(id)
    };
    let refused = ask_until(&mut talk, Some("database_unavailable"), &mut next);
    assert!(refused["error"]["message"].as_str().expect("text").contains("nothing was written"), "{refused}");
    ask_until(&mut talk, Some("partitions_unavailable"), || get(1));
    wait_until("both nodes tell the error", || errors(&site).len() == 2);
    let shown = site.command(&["cluster", "status"]);
    assert!(
        text(&shown).contains("live graph \"social\", node 0: the database is unavailable"),
        "{}",
        text(&shown)
    );

    // Nodes that start without the database say the same.
    site.restart();
    let mut talk = site.talk(1);
    let refused = ask_until(&mut talk, Some("database_unavailable"), &mut next);
    assert!(
        refused["error"]["message"].as_str().expect("text").contains("is not open on this node"),
        "{refused}"
    );
    let refused = ask_until(&mut talk, Some("partitions_unavailable"), || get(1));
    assert!(refused.to_string().contains("the database is unavailable"), "{refused}");
    wait_until("both nodes tell the error", || errors(&site).len() == 2);

    // Meanwhile the nodes try again and again.
    sleep(Duration::from_secs(3));
    assert_warnings_are_not_repeated(&site);

    assert!(site.restart_server());
    ask_until(&mut talk, None, next);
    assert_eq!(ask_until(&mut talk, None, || get(1))["object"]["data"]["name"], "Ada");
    wait_until("both nodes have the database again", || errors(&site).is_empty());
}

#[test]
fn a_write_that_is_too_large_for_the_server_fails_alone() {
    let site = Site::start_on_mariadb(&SHAPE);
    site.rows("SET GLOBAL max_allowed_packet = 1048576");
    site.rows("CREATE DATABASE small");
    let described = site.cluster.must(&["graph", "describe", GRAPH, "-o", "json"]);
    let described: Value = serde_json::from_str(&described).expect("the output is JSON");
    let (server, _) = described["storage"].as_str().expect("text").rsplit_once('/').expect("a path");
    site.create("small", &["--storage", &format!("{server}/small")]);
    let mut talk = site.talk(32);
    let put = |id: u64, bytes: usize| {
        let data = json!({"name": "x".repeat(bytes)});
        json!({"op": "object_add", "graph": "small", "type": "person", "id": id, "data": data})
    };
    // Of writes that are committed together, only the large ones fail.
    let is_large = |id: u64| id % 8 == 3;
    let writes: Vec<Value> =
        (1..=64).map(|id| put(id, if is_large(id) { 600_000 } else { 20_000 })).collect();
    for (id, answer) in (1..=64).zip(talk.ask_all(&writes)) {
        let expected = is_large(id).then_some("too_large");
        assert_eq!(code(&answer), expected, "{id}: {answer}");
        assert!(!is_large(id) || answer.to_string().contains("max_allowed_packet"), "{answer}");
    }
    let get = |id: u64| json!({"op": "object_get", "graph": "small", "id": id, "critical": true});
    assert_eq!(talk.must(&get(3))["object"], Value::Null);
    assert_eq!(talk.must(&get(4))["object"]["id"], 4);
    talk.must(&put(3, 500_000));
    assert!(errors(&site).is_empty(), "the database works");
}

#[test]
fn a_database_that_was_dropped_is_named() {
    let site = Site::start_on_mariadb(&SHAPE);
    let mut talk = site.talk(1);
    // A new graph answers graph queries at once.
    let first = talk.ask(&json!({"op": "connections", "graph": GRAPH, "id": 1}));
    assert_eq!(code(&first), Some("member_not_found"), "{first}");
    talk.must(&add(1));
    let described = site.cluster.must(&["graph", "describe", GRAPH, "-o", "json"]);
    let described: Value = serde_json::from_str(&described).expect("the output is JSON");
    let storage = described["storage"].as_str().expect("text");
    let name = storage.rsplit('/').next().expect("the name of the database");

    let mut id = 1;
    let mut next = || {
        id += 1;
        add(id)
    };
    site.rows(&format!("DROP DATABASE {name}"));
    ask_until(&mut talk, Some("database_empty"), &mut next);
    site.rows(&format!("CREATE DATABASE {name}"));
    let refused = ask_until(&mut talk, Some("database_empty"), &mut next);
    assert!(refused.to_string().contains("there is no graph in the database"), "{refused}");
    let has_errors = in_time().any(|()| {
        sleep(Duration::from_millis(50));
        errors(&site).iter().any(|error| error.contains("there is no graph in the database"))
    });
    assert!(has_errors, "{:?}", errors(&site));
    assert_eq!(code(&talk.ask(&get(1))), Some("partitions_unavailable"));
}
