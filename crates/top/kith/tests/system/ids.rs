//! Ids above 2^53 in JSON: as texts on request, in the answers of all operations and commands.

use crate::support::{
    self,
    cluster::{Cluster, run_lines},
};
use serde_json::{Value, json};
use std::fs;

/// The least whole number that JavaScript rounds. The ids of the test are this one and those after it.
const BIG: u64 = (1 << 53) + 1;

const TYPES: &str = "[object.person]\nfields = { name = \"text\" }\n\n[association.likes]\n";

/// Loads a graph with columns and entities, a store and a live graph, whose ids are all large.
fn load(cluster: &Cluster) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(|n| BIG + n);
    let edges = file("e.csv", &format!("src,dst,since\n{a},{b},5\n{b},{c},6\n{a},{d},7\n{d},{c},8\n"));
    let schools = file("s.csv", &format!("{a},school,{d}\n{b},school,{d}\n"));
    let columns = ["--columns", "since:u64"];
    cluster.must(&["load", "graph", &edges, "--graph", "g", columns[0], columns[1], "--entities", &schools]);
    let rows = file("rows.jsonl", &format!("{{\"key\":{a},\"value\":\"x\"}}\n"));
    cluster.must(&["store", "create", "values", "--key", "id", "--value", "text"]);
    cluster.must(&["store", "push", "values", &rows]);
    let types = file("types.toml", TYPES);
    cluster.must(&["schema", "apply", &types, "--graph", "live"]);
}

#[test]
fn ids_are_texts_if_that_is_asked_for() {
    let cluster = Cluster::start(&["--groups", "1", "--nodes", "2", "--partitions", "4"]);
    load(&cluster);
    let [a, b, c, d] = [0, 1, 2, 3].map(|n| BIG + n);
    let text = |id: u64| id.to_string();
    let of = |op: &str, more: Value| {
        let mut line = json!({"op": op, "graph": "g", "id": text(a)});
        line.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        line
    };
    let live = |op: &str, more: Value| {
        let mut line = of(op, more);
        line["graph"] = json!("live");
        line
    };
    let asked = [
        (of("connections", json!({})), json!({"ids": [text(b), text(d)]})),
        (of("entities", json!({"kind": "school"})), json!({"entities": [text(d)]})),
        (
            of("edges", json!({})),
            json!({"edges": [{"id": text(b), "since": 5}, {"id": text(d), "since": 7}], "after": null}),
        ),
        (
            of("network", json!({})),
            json!({"id": text(a), "degree": 2, "n2": 1, "net": 3, "first": [text(b), text(d)], "second": [text(c)]}),
        ),
        (of("path", json!({"to": text(c)})), json!({"length": 2, "path": [text(a), text(b), text(c)]})),
        (of("common", json!({"to": text(c)})), json!({"ids": [text(b), text(d)]})),
        (of("suggest", json!({"k": 1})), json!({"suggestions": [[text(c), 2]]})),
        (
            json!({"op": "mget", "store": "values", "keys": [text(a)]}),
            json!({"key": text(a), "state": "FOUND", "value": "x"}),
        ),
        (live("object_add", json!({"type": "person", "data": {"name": "Ada"}})), json!({"id": text(a)})),
        (live("object_get", json!({"critical": true})), json!({"id": text(a), "type": "person"})),
        (
            json!({"op": "assoc_add", "graph": "live", "type": "likes", "id1": text(a), "id2": text(c), "time": 5}),
            json!({"existed": false}),
        ),
        (
            json!({"op": "assoc_range", "graph": "live", "type": "likes", "id1": text(a), "critical": true}),
            json!({"out": [[text(c), 5]], "more": false}),
        ),
        (
            json!({"op": "gremlin", "graph": "g", "gremlin": format!("g.V({a}L).out().hasLabel('member').order().by(id).project('it','id').by().by(id)")}),
            json!({"result": [
                {"it": {"id": text(b), "label": "member"}, "id": text(b)},
                {"it": {"id": text(d), "label": "member"}, "id": text(d)},
            ]}),
        ),
    ];
    let lines: Vec<Value> = asked.iter().map(|(line, _)| line.clone()).collect();
    let run = cluster.kith(&["run", "--input", "-", "--concurrency", "1", "--ids-as-text"]);
    let (answers, _) = run_lines(run, &lines, lines.len(), || {});
    for ((line, expected), answer) in asked.iter().zip(&answers) {
        let inner = ["object", "results"].iter().find_map(|name| answer.get(*name)).unwrap_or(answer);
        let found = if inner.is_array() { &inner[0] } else { inner };
        for (name, value) in expected.as_object().expect("an object") {
            assert_eq!(&found[name], value, "{line}: {answer}");
        }
    }
    // Without the flag, they are numbers.
    let (answers, _) = cluster.run(&lines[..1], 1);
    assert_eq!(answers[0], json!({"ids": [b, d]}));
    commands(&cluster, a, b, d);
}

/// Single commands have the flag too, unless they print no ids.
fn commands(cluster: &Cluster, a: u64, b: u64, d: u64) {
    let a = a.to_string();
    let json_of = |arguments: &[&str]| -> Value {
        let printed = cluster.must(&[arguments, &["-o", "json", "--ids-as-text"]].concat());
        serde_json::from_str(printed.lines().next().expect("a line")).expect("JSON")
    };
    let connections = json_of(&["graph", "connections", &a, "--graph", "g"]);
    assert_eq!(connections, json!({"ids": [b.to_string(), d.to_string()]}));
    assert_eq!(json_of(&["get", "values", &a])["key"], json!(a));
    assert_eq!(json_of(&["mget", "values", &a])["key"], json!(a));
    assert_eq!(json_of(&["store", "where", "values", &a])["key"], json!(a));
    assert_eq!(json_of(&["object", "get", &a, "--graph", "live"])["object"]["id"], json!(a));
    let exported = cluster.must(&["store", "export", "values", "--out", "-", "--ids-as-text"]);
    assert!(exported.contains(&format!("{{\"key\":\"{a}\",\"value\":\"x\"}}")), "{exported}");
    let refused = cluster.kith(&["cluster", "status", "--ids-as-text"]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2), "{}", support::cluster::text(&refused));
}
