//! A live graph whose database cannot be used: reads, writes and the status of the cluster say what is wrong, and everything
//! works again once the database does.

use super::{
    site::{GRAPH, Site, Talk, code},
    support::{cluster::text, in_time, wait_until},
};
use serde_json::{Value, json};
use std::{thread::sleep, time::Duration};

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

#[test]
fn a_database_that_is_gone_is_named_by_reads_writes_and_the_status() {
    let mut site = Site::start_on_mariadb(&[&SHAPE[..], &["--processes"]].concat());
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

    assert!(site.restart_server());
    ask_until(&mut talk, None, next);
    assert_eq!(ask_until(&mut talk, None, || get(1))["object"]["data"]["name"], "Ada");
    wait_until("both nodes have the database again", || errors(&site).is_empty());
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
    ask_until(&mut talk, Some("database_refused"), &mut next);
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
