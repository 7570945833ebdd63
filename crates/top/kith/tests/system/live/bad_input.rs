//! Invalid input is refused with a code and a helpful message, and changes nothing.

use super::site::{GRAPH, Site, TYPES, Talk};
use crate::support::cluster::text;
use serde_json::{Value, json};
use std::process::Output;

const SHAPE: [&str; 6] = ["--groups", "1", "--nodes", "2", "--partitions", "4"];

/// Returns the code of a command's error and the whole error as JSON text.
fn error(output: &Output) -> (String, String) {
    assert!(!output.status.success(), "the command must fail: {}", text(output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(output)));
    let error = &answer["error"];
    (error["code"].as_str().unwrap_or_default().to_owned(), error.to_string())
}

fn refused(talk: &mut Talk, mut line: Value, code: &str, said: &str) {
    if line.get("graph").is_none() {
        line["graph"] = json!(GRAPH);
    }
    let (got, message) = talk.refused(&line);
    assert!(got == code && message.contains(said), "{line}: expected {code} and {said:?}: {message}");
}

fn with(mut line: Value, name: &str, value: Value) -> Value {
    line[name] = value;
    line
}

#[test]
fn writes_that_make_no_sense_are_refused_and_write_nothing() {
    let site = Site::start(&SHAPE);
    let mut talk = site.talk(4);
    let first = talk.must(
        &json!({"op": "object_add", "graph": GRAPH, "type": "person", "id": 1, "data": {"name": "Ada"}}),
    );
    let edge = json!({"op": "assoc_add", "graph": GRAPH, "id1": 1, "type": "friend", "id2": 2, "time": 5,
        "data": {"note": "x"}, "write_id": "the-first"});
    let edge_version = talk.must(&edge)["version"].as_u64().expect("a version");
    let long = "x".repeat(70_000);
    let longer = "x".repeat((1 << 20) + 1);
    let add = |kind: &str, data: Value| json!({"op": "object_add", "type": kind, "data": data});
    let assoc = |kind: &str, data: Value| json!({"op": "assoc_add", "id1": 1, "type": kind, "id2": 2, "time": 9, "data": data});
    let update = |data: Value| json!({"op": "object_update", "id": 1, "data": data});
    let change =
        |to: &str| json!({"op": "assoc_change_type", "id1": 1, "type": "friend", "id2": 2, "new_type": to});
    let near = with(add("tag", json!({})), "near", json!(1));
    for (line, code, said) in [
        (add("persom", json!({})), "unknown_type", "did you mean \\\"person\\\"?"),
        (assoc("freind", json!({})), "unknown_type", "did you mean \\\"friend\\\"?"),
        (change("rivals"), "unknown_type", "did you mean \\\"rival\\\"?"),
        (add("person", json!({"nmae": "Ada"})), "bad_fields", "did you mean \\\"name\\\"?"),
        (add("person", json!({})), "bad_fields", "name"),
        (add("person", json!({"name": 7})), "bad_fields", "expected text"),
        (add("tag", json!({"name": "Ada"})), "bad_fields", "name"),
        (update(json!({"name": null})), "bad_fields", "name"),
        (update(json!({"age": "old"})), "bad_fields", "age"),
        (assoc("knows", json!({"note": "x"})), "bad_fields", "note"),
        (add("person", json!({"name": longer})), "too_large", "1048576"),
        (update(json!({"name": longer})), "too_large", "1048576"),
        (assoc("friend", json!({"note": long})), "too_large", "65536"),
        (with(add("tag", json!({})), "id", json!(1)), "object_exists", "1"),
        (with(near, "id", json!(9)), "bad_request", "not both"),
        (with(update(json!({})), "if_version", json!(99)), "condition_failed", "99"),
        (with(update(json!({})), "if_exists", json!(false)), "condition_failed", "exists already"),
        (with(change("rival"), "if_version", json!(edge_version + 1)), "condition_failed", "version"),
        (change("friend"), "bad_request", "the old one"),
        (change("likes"), "bad_request", "only one of these types has an inverse"),
        (with(edge.clone(), "time", json!(6)), "write_id_taken", "the-first"),
        (with(update(json!({})), "write_id", json!("two words")), "bad_request", "write_id"),
        (with(update(json!({})), "if_versoin", json!(1)), "bad_request", "did you mean `if_version`?"),
        (with(update(json!({})), "graph", json!("socail")), "unknown_graph", "social"),
        (json!({"op": "object_update", "id": 1}), "bad_request", "data"),
    ] {
        refused(&mut talk, line, code, said);
    }
    reads_that_make_no_sense_are_refused(&mut talk);
    assert_unchanged(&mut talk, &first);
    // With one group, a network is normally read from all nodes at once through incoming associations, which one-sided types
    // do not keep.
    let network = json!({"op": "network", "graph": GRAPH, "id": 1, "edge_type": "likes", "return": "size"});
    assert_eq!(talk.must(&network)["degree"], 0);
    the_largest_object_is_stored(&mut talk);
}

fn reads_that_make_no_sense_are_refused(talk: &mut Talk) {
    let find = |kind: &str, field: &str, value: Value| json!({"op": "object_find", "type": kind, "field": field, "value": value});
    let likes = |line: Value| with(line, "edge_type", json!("likes"));
    for (line, code, said) in [
        (
            json!({"op": "assoc_range", "id1": 1, "type": "freind"}),
            "unknown_type",
            "did you mean \\\"friend\\\"?",
        ),
        (json!({"op": "object_get", "id": 1, "group": 7}), "unknown_group", "groups"),
        (find("person", "name", json!("Ada")), "no_index", "has no index"),
        (find("person", "nmae", json!("Ada")), "unknown_field", "did you mean \\\"name\\\"?"),
        (find("persom", "name", json!("Ada")), "unknown_type", "did you mean \\\"person\\\"?"),
        (with(find("person", "name", json!(1)), "limit", json!(0)), "out_of_range", "limit"),
        (likes(json!({"op": "connections", "id": 1, "direction": "in"})), "direction_not_kept", "one-sided"),
        (likes(json!({"op": "path", "id": 1, "to": 2})), "direction_not_kept", "a path"),
        (likes(json!({"op": "distance", "id": 1, "to": [2]})), "direction_not_kept", "a distance"),
        (likes(json!({"op": "common", "id": 1, "to": 2, "plan": "push"})), "direction_not_kept", "push"),
        (json!({"op": "assoc_range", "id1": 1, "type": "friend", "limit": 0}), "out_of_range", "limit"),
    ] {
        refused(talk, line, code, said);
    }
}

fn the_largest_object_is_stored(talk: &mut Talk) {
    let largest =
        json!({"op": "object_update", "graph": GRAPH, "id": 1, "data": {"name": "y".repeat((1 << 20) - 64)}});
    talk.must(&largest);
    let got = talk.must(&json!({"op": "object_get", "graph": GRAPH, "id": 1}));
    assert_eq!(got["object"]["data"]["name"].as_str().map(str::len), Some((1 << 20) - 64));
}

/// Checks that the graph has object 1 as it was first written, its one association at both ends, and no other associations.
fn assert_unchanged(talk: &mut Talk, first: &Value) {
    let got = talk.must(&json!({"op": "object_get", "graph": GRAPH, "id": 1, "critical": true}));
    assert_eq!(got["object"]["version"], first["version"]);
    for (id1, id2) in [(1, 2), (2, 1)] {
        let list = json!({"op": "assoc_range", "graph": GRAPH, "id1": id1, "type": "friend", "with_data": true, "critical": true});
        assert_eq!(talk.must(&list)["out"], json!([[id2, 5, {"note": "x"}]]));
    }
    for kind in ["knows", "rival", "likes"] {
        let count = json!({"op": "assoc_count", "graph": GRAPH, "id1": 1, "type": kind, "critical": true});
        assert_eq!(talk.must(&count), json!({"count": 0}));
    }
}

#[test]
fn live_graphs_and_stores_do_not_take_each_others_names() {
    let site = Site::start(&SHAPE);
    let edges = site.file("edges.csv", "src,dst\n1,2\n");
    let load = ["load", "graph", &edges, "--graph", GRAPH, "-o", "json"];
    assert_eq!(error(&site.command(&load)).0, "live_graph");
    assert_eq!(error(&site.command(&["store", "create", GRAPH, "-o", "json"])).0, "live_graph");
    let stores = site.cluster.must(&["store", "list", "-o", "json"]);
    assert!(!stores.contains("\"social\""), "the refused commands leave nothing: {stores}");
    site.cluster.must(&["load", "graph", &edges, "--graph", "village"]);
    let applied = site.apply("village", TYPES, &[]);
    assert_eq!((error(&applied).0.as_str(), applied.status.code()), ("loaded_graph", Some(1)));
    let mut talk = site.talk(4);
    let write = json!({"op": "object_add", "graph": "village", "type": "person", "data": {"name": "Ada"}});
    assert_eq!(talk.refused(&write).0, "loaded_graph");
    let show = ["schema", "show", "--graph", "village", "-o", "json"];
    assert_eq!(error(&site.command(&show)).0, "loaded_graph");
    // Both graphs still work.
    talk.must(&json!({"op": "connections", "graph": "village", "id": 1}));
    talk.must(&json!({"op": "object_add", "graph": GRAPH, "type": "tag"}));
}

#[test]
fn types_that_cannot_change_stay_as_they_are() {
    let site = Site::start(&SHAPE);
    let shown = || site.cluster.must(&["schema", "show", "--graph", GRAPH]);
    let before = shown();
    let mut talk = site.talk(4);
    talk.must(
        &json!({"op": "object_add", "graph": GRAPH, "type": "person", "id": 1, "data": {"name": "Ada"}}),
    );
    for (from, to, said) in [
        ("[object.tag]", "", "cannot be removed"),
        ("[object.tag]", "[object.tga]", "did you mean"),
        ("name = \"text\"", "name = \"bytes\"", "name"),
        ("name = \"text\"", "name = \"text\", born = \"i64\"", "born"),
        ("inverse = \"followed_by\"", "inverse = \"has_follower\"", "cannot change"),
        ("[association.rival]\nsymmetric = true", "[association.rival]", "cannot change"),
        ("cap = 3", "cap = 0", "cap"),
        ("cap = 3", "cpa = 3", "did you mean \\\"cap\\\"?"),
        ("name = \"text\"", "name = \"txt\"", "did you mean \\\"text\\\"?"),
        ("[object.tag]", "[object", "TOML"),
    ] {
        assert!(TYPES.contains(from));
        for more in [&[][..], &["--dry-run"]] {
            let (code, message) = error(&site.apply(GRAPH, &TYPES.replace(from, to), more));
            assert!(code == "bad_schema" && message.contains(said), "{from} to {to}: {code}: {message}");
        }
    }
    assert_eq!(shown(), before);
    let (code, message) = error(&site.apply(GRAPH, TYPES, &["--storage", "mysql://root@127.0.0.1:1/x"]));
    assert!(code == "bad_request" && message.contains("database:0"), "{code}: {message}");
    // Permitted changes take effect, also for objects that are stored already.
    let types =
        TYPES.replace("name = \"text\"", "name = \"text\", born = { type = \"i64\", default = 1970 }");
    assert!(site.apply(GRAPH, &types, &[]).status.success());
    let get = json!({"op": "object_get", "graph": GRAPH, "id": 1, "critical": true});
    crate::support::wait_until("the nodes have the new types", || {
        talk.must(&get)["object"]["data"] == json!({"name": "Ada", "born": 1970, "age": null})
    });
}

#[test]
fn graphs_without_a_database_are_not_created() {
    let site = Site::start(&SHAPE);
    for (storage, code) in [
        ("nonsense", "bad_request"),
        ("database:x", "bad_request"),
        ("mysql://", "bad_request"),
        ("mysql://root:secret@127.0.0.1/x", "bad_request"),
        ("mysql://root@db.example/x", "url_not_allowed"),
        ("mysql://root@10.0.0.1/x", "url_not_allowed"),
        ("mysql://root@127.0.0.1:1/x?ca=/etc/passwd", "url_not_allowed"),
        ("postgres://root@127.0.0.1/x", "bad_request"),
        ("database:7", "database_unavailable"),
        ("mysql://root@127.0.0.1:1/x", "database_unavailable"),
    ] {
        let (got, message) = error(&site.apply("fresh", TYPES, &["--storage", storage]));
        assert_eq!(got, code, "{storage}: {message}");
        let show = ["schema", "show", "--graph", "fresh", "-o", "json"];
        assert_eq!(error(&site.command(&show)).0, "unknown_graph", "{storage}");
    }
    assert_eq!(site.apply("no/name", TYPES, &[]).status.code(), Some(2));
    site.create("fresh", &[]);
    site.talk(1).must(&json!({"op": "object_add", "graph": "fresh", "type": "tag"}));
}
