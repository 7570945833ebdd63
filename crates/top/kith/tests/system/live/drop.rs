//! Live graphs are listed, described and dropped like loaded graphs, and a dropped graph leaves nothing behind.

use super::{
    site::{GRAPH, Site, TYPES, Talk, code},
    support::{cluster::text, in_time},
};
use serde_json::{Value, json};

const SHAPE: [&str; 6] = ["--groups", "1", "--nodes", "2", "--partitions", "4"];

fn object(id: u64, op: &str) -> Value {
    json!({"op": op, "graph": GRAPH, "id": id})
}

fn add(id: u64) -> Value {
    json!({"op": "object_add", "graph": GRAPH, "type": "person", "id": id, "data": {"name": "Ada"}})
}

fn read(site: &Site, arguments: &[&str]) -> Value {
    serde_json::from_str(&site.cluster.must(&[arguments, &["-o", "json"]].concat()))
        .expect("the output is JSON")
}

/// Returns the keys of the metadata store that name the graph.
fn keys(site: &Site) -> Vec<&'static str> {
    let metadata =
        std::fs::read_to_string(site.cluster.data().join("metadata.json")).expect("the metadata file exists");
    let keys = ["live-graphs/social", "leaders/social"];
    keys.into_iter().filter(|key| metadata.contains(key)).collect()
}

/// Repeats a critical read of an object until it is answered.
fn read_at_last(talk: &mut Talk, id: u64) -> Value {
    let mut read = object(id, "object_get");
    read["critical"] = json!(true);
    let mut got = Value::Null;
    let is_answered = in_time().any(|()| {
        got = talk.ask(&read);
        std::thread::sleep(std::time::Duration::from_millis(20));
        code(&got).is_none()
    });
    assert!(is_answered, "{got}");
    got
}

#[test]
fn a_dropped_graph_leaves_nothing_behind() {
    let site = Site::start(&SHAPE);
    let edges = site.file("edges.csv", "src,dst\n1,2\n");
    site.cluster.must(&["load", "graph", &edges, "--graph", "village"]);
    let mut talk = site.talk(1);
    let first = talk.must(&add(1));
    let graphs = read(&site, &["graph", "list"]);
    let kinds: Vec<_> = [0, 1]
        .map(|index| &graphs["graphs"][index])
        .into_iter()
        .map(|graph| (&graph["graph"], &graph["kind"]))
        .collect();
    assert_eq!(json!(kinds), json!([["social", "live"], ["village", "loaded"]]));
    let described = read(&site, &["graph", "describe", GRAPH]);
    assert_eq!(described["storage"], "database:0");
    assert_eq!((&described["partitions"], &described["revision"]), (&json!(4), &json!(1)));
    let follows = described["types"].as_array().expect("types").iter().find(|kind| kind["name"] == "follows");
    assert_eq!(follows.expect("the type was declared")["inverse"], "followed_by");

    let unconfirmed = site.command(&["graph", "drop", GRAPH]);
    assert_eq!(unconfirmed.status.code(), Some(2), "{}", text(&unconfirmed));
    let file = site.cluster.data().join("database-000/social.sqlite");
    assert!(file.is_file());
    let output = site.cluster.must(&["graph", "drop", GRAPH, "--yes"]);
    assert!(output.contains("rows in database:0 were removed"), "{output}");
    assert!(!file.exists());
    assert_eq!(keys(&site), [""; 0]);
    assert_eq!(code(&talk.ask(&object(1, "object_get"))), Some("unknown_graph"));
    let again = site.command(&["graph", "drop", GRAPH, "--yes", "-o", "json"]);
    assert!(text(&again).contains("unknown_graph") && text(&again).contains("village"), "{}", text(&again));

    site.create(GRAPH, &[]);
    // The conversation that wrote object 1 would add the ticket of that write, so another one reads.
    let mut talk = site.talk(1);
    let got = read_at_last(&mut talk, 1);
    assert_eq!(got["object"], Value::Null, "the new graph does not have the object");
    talk.must(&add(1));
    let mut read = object(1, "object_get");
    read["ticket"] = first["ticket"].clone();
    assert_eq!(code(&talk.ask(&read)), Some("wrong_ticket"));
}

#[test]
fn a_graph_without_a_database_can_only_be_dropped_without_its_rows() {
    let site = Site::start(&SHAPE);
    let file = site.cluster.data().join("database-000/social.sqlite");
    // The file that the drop leaves belongs to another graph of this name, so the database refuses the new graph.
    site.cluster.must(&["graph", "drop", GRAPH, "--yes", "--keep-rows"]);
    assert!(file.is_file(), "--keep-rows leaves the file");
    let refused = site.apply(GRAPH, TYPES, &[]);
    assert!(text(&refused).contains("database_other_graph"), "{}", text(&refused));
    assert_eq!(keys(&site), [""; 0], "nothing is left of a graph that was not created");
}

#[test]
fn a_graph_is_dropped_only_while_its_server_answers() {
    let site = Site::start_on_mariadb(&SHAPE);
    let mut talk = site.talk(1);
    talk.must(&add(1));
    let both = ["live-graphs/social", "leaders/social"];
    assert_eq!(keys(&site), both);
    let storage = read(&site, &["graph", "describe", GRAPH])["storage"].clone();
    let storage = storage.as_str().expect("text");

    site.kill_server();
    let refused = site.command(&["graph", "drop", GRAPH, "--yes", "-o", "json"]);
    assert!(!refused.status.success(), "{}", text(&refused));
    let error: Value = serde_json::from_slice(&refused.stdout).expect("the output is JSON");
    assert_eq!(error["error"]["code"], "database_unavailable", "{error}");
    let (message, help) = (error["error"]["message"].to_string(), error["error"]["help"].to_string());
    assert!(message.contains("the rows of graph") && message.contains("cannot be removed"), "{error}");
    assert!(help.contains(storage) && help.contains("--keep-rows"), "{error}");
    assert_eq!(keys(&site), both, "nothing was changed");

    assert!(site.restart_server());
    assert_eq!(read_at_last(&mut talk, 1)["object"]["id"], 1, "the object is unchanged");
    site.cluster.must(&["graph", "drop", GRAPH, "--yes"]);
    assert_eq!(keys(&site), [""; 0]);
    let name = storage.rsplit('/').next().expect("a name");
    assert_eq!(site.rows(&format!("SHOW TABLES FROM {name}")), [""; 0]);
    assert_eq!(code(&talk.ask(&object(1, "object_get"))), Some("unknown_graph"));
}
