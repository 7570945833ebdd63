//! Open graphs, whose types come from writes.

use super::site::{GRAPH, Site, Talk, code};
use crate::support::cluster::text;
use serde_json::{Value, json};
use std::{fs, thread};

const TYPES: &str = "open = true\n\n[object.page]\nfields = { title = \"text\" }\n";

/// Starts a cluster with two routers and an open graph.
fn start() -> Site {
    let site = Site::start_empty(&["--groups", "2", "--nodes", "2", "--partitions", "8", "--routers", "2"]);
    let created = site.apply(GRAPH, TYPES, &[]);
    assert!(created.status.success(), "{}", text(&created));
    site
}

fn line(op: &str, fields: Value) -> Value {
    let mut line = fields;
    line["op"] = json!(op);
    line["graph"] = json!(GRAPH);
    line
}

fn knows(id1: u64, kind: &str, id2: u64) -> Value {
    line("assoc_add", json!({"id1": id1, "type": kind, "id2": id2, "time": id2, "data": {"since": 1.0}}))
}

/// Sends lines through both routers at the same time. All of them must succeed. Returns the last ticket of each router.
fn at_once(talks: &mut [Talk], lines: &[Vec<Value>]) -> Vec<Value> {
    thread::scope(|scope| {
        let asked = talks.iter_mut().zip(lines).map(|(talk, lines)| scope.spawn(|| talk.ask_all(lines)));
        let asked: Vec<_> = asked.collect();
        let answers = asked.into_iter().map(|asked| asked.join().expect("the lines are answered"));
        answers
            .map(|answers| {
                for answer in &answers {
                    assert_eq!(code(answer), None, "{answer}");
                }
                answers.last().expect("a line")["ticket"].clone()
            })
            .collect()
    })
}

/// Returns the types that the graph has, as `kith schema show` prints them.
fn shown(site: &Site) -> String {
    site.cluster.must(&["schema", "show", "--graph", GRAPH])
}

fn connections(site: &Site, id: &str, kind: &str) -> String {
    let arguments =
        ["graph", "connections", id, "--graph", GRAPH, "--edge-type", kind, "--critical", "-o", "json"];
    site.cluster.must(&arguments)
}

#[test]
fn two_routers_add_the_same_labels_and_a_restart_keeps_them() {
    let mut site = start();
    let mut talks = [site.talk_to(0, 16), site.talk_to(1, 16)];
    // Nobody has used these labels yet.
    let none = line("assoc_range", json!({"id1": 1, "type": "knows", "critical": true}));
    assert_eq!(talks[0].must(&none), json!({"out": [], "more": false}));
    let count = line("assoc_count", json!({"id1": 1, "type": "knows"}));
    assert_eq!(talks[0].must(&count), json!({"count": 0}));
    let delete = line("assoc_delete", json!({"id1": 1, "type": "knows", "id2": 2}));
    assert_eq!(talks[0].refused(&delete).0, "unknown_type");

    // Both routers meet twelve labels of objects and twelve of associations, in different orders.
    let lines = |router: u64| {
        let labels = (0..12).map(|label| if router == 0 { label } else { 11 - label });
        let lines = labels.flat_map(|label| {
            let data = json!({"name": "é", "age": {"@type": "g:Int64", "@value": 29}});
            let id = 100 + 20 * label + router;
            [
                line("object_add", json!({"type": format!("kind {label}"), "id": id, "data": data})),
                knows(1 + router, &format!("to \"{label}\""), id),
            ]
        });
        lines.collect::<Vec<_>>()
    };
    let tickets = at_once(&mut talks, &[lines(0), lines(1)]);
    // The other router and every replica show what a ticket names, although they may not know the label yet.
    for (router, group) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let label = if router == 0 { 0 } else { 11 };
        let id1 = 2 - router as u64;
        let fields = json!({"id1": id1, "type": format!("to \"{label}\""), "ticket": tickets, "group": group, "with_data": true});
        let id2 = 100 + 20 * label + id1 - 1;
        let answer = talks[router].must(&line("assoc_range", fields));
        assert_eq!(answer, json!({"out": [[id2, id2, {"since": 1.0}]], "more": false}));
    }
    let types = shown(&site);
    assert!(types.starts_with("open = true\n\n[object.page]\n"), "{types}");
    assert_eq!(types.matches("[object.\"kind ").count(), 12, "each label was added once: {types}");
    assert_eq!(types.matches("[association.\"to \\\"").count(), 12, "{types}");

    drop(talks);
    site.restart();
    let mut talk = site.talk_to(1, 4);
    let get = line("object_get", json!({"id": 100, "critical": true}));
    let data = json!({"age": {"@type": "g:Int64", "@value": 29}, "name": "é"});
    let object = talk.must(&get)["object"].clone();
    assert_eq!((&object["type"], &object["data"]), (&json!("kind 0"), &data));
    let inverse = line("assoc_get", json!({"id1": 100, "type": "~to \"0\"", "ids": [1], "critical": true}));
    assert_eq!(talk.must(&inverse), json!({"out": [[1, 100]]}));
    assert_eq!(shown(&site), types);
    assert_eq!(connections(&site, "1", "to \"0\""), "{\"ids\":[100]}\n");
    assert_eq!(connections(&site, "1", "to nobody"), "{\"ids\":[]}\n");
    // Distances follow both directions.
    let in_edges =
        json!({"id": 100, "to": [1, 101], "edge_type": "to \"0\"", "direction": "in", "critical": true});
    let far = line("distance", in_edges);
    assert_eq!(talk.must(&far), json!({"distances": [1, null]}));
}

#[test]
fn records_of_open_types_take_any_keys_and_values() {
    let site = start();
    let mut talk = site.talk(4);
    let add = |data: Value| line("object_add", json!({"type": "thing", "data": data, "id": 7}));
    talk.must(&add(json!({"z": [1, 2.0, null], "n": null, "map": {"a": 1}, "big": 3_000_000_000_u64})));
    let get = line("object_get", json!({"id": 7, "critical": true}));
    let read = |talk: &mut Talk| talk.must(&get)["object"]["data"].to_string();
    assert_eq!(read(&mut talk), r#"{"big":3000000000,"map":{"a":1},"z":[1,2.0,null]}"#);
    let change = json!({"z": null, "big": {"@type": "gx:BigDecimal", "@value": "1.50"}, "e": 1e300});
    talk.must(&line("object_update", json!({"id": 7, "data": change})));
    let big = r#"{"big":{"@type":"gx:BigDecimal","@value":"1.50"},"e":1e+300,"map":{"a":1}}"#;
    assert_eq!(read(&mut talk), big);
    for (data, said) in [
        (
            json!({"k": {"@type": "g:Int32", "@value": 3_000_000_000_u64}}),
            "a whole number in its range is expected",
        ),
        (json!({"k": {"@type": "g:Vertex", "@value": {"id": 1}}}), "cannot have a value of the type Vertex"),
        (json!({"k": {"@type": "g:Thing", "@value": 1}}), "the type \\\"g:Thing\\\" is not supported"),
        (json!({"": 1}), "1 to 255 bytes"),
    ] {
        let (got, message) = talk.refused(&line("object_update", json!({"id": 7, "data": data})));
        assert!(got == "bad_fields" && message.contains(said), "{got}: {message}");
    }
    // Declared types keep their rules, also in an open graph.
    let page = line("object_add", json!({"type": "page", "id": 8, "data": {"titel": "x"}}));
    assert_eq!(talk.refused(&page).0, "bad_fields");

    talk.must(&knows(7, "knows", 8));
    let renamed = json!({"id1": 7, "type": "knows", "id2": 8, "new_type": "likes", "if_exists": true});
    talk.must(&line("assoc_change_type", renamed));
    let likes = line("assoc_range", json!({"id1": 8, "type": "~likes", "with_data": true, "critical": true}));
    assert_eq!(talk.must(&likes), json!({"out": [[7, 8, {"since": 1.0}]], "more": false}));
    for label in ["~mine", "", "tab\t"] {
        let (got, message) = talk.refused(&line("object_add", json!({"type": label, "id": 9})));
        assert!(got == "bad_schema" && message.contains("1 to 255 bytes"), "{label:?} {got}: {message}");
    }
    let closed = site.apply(GRAPH, TYPES.trim_start_matches("open = true"), &[]);
    assert!(closed.status.success(), "{}", text(&closed));
    assert!(shown(&site).contains("[association.likes]\nopen = true\n"), "types that were added stay");
    assert_eq!(talk.refused(&line("object_add", json!({"type": "late", "id": 9}))).0, "unknown_type");
    talk.must(&line("object_add", json!({"type": "thing", "id": 9})));
    let wrong = site.apply(GRAPH, "open = true\n[object.thing]\nfields = { a = \"text\" }", &[]);
    assert!(text(&wrong).contains("the type is open"), "{}", text(&wrong));
}

#[test]
fn an_import_adds_its_type_and_an_export_brings_it_back() {
    let site = start();
    let things = "id,data\n1,\"{\"\"a\"\":1}\"\n2,\"{\"\"a\"\":{\"\"@type\"\":\"\"g:Int64\"\",\"\"@value\"\":1}}\"\n3,\"{}\"\n";
    let edges = "id1,id2,time,data\n1,2,5,\"{}\"\n2,3,6,\"{\"\"w\"\":0.5}\"\n";
    let wrong = site.file("wrong.csv", "1,\"{\"\"a\"\":{\"\"@type\"\":\"\"g:No\"\",\"\"@value\"\":1}}\"\n");
    let refused = site.command(&["import", GRAPH, "--objects", &wrong, "--type", "a thing"]);
    assert!(text(&refused).contains("g:No"), "{}", text(&refused));
    assert!(!shown(&site).contains("a thing"), "a refused file adds no type");
    for (flag, kind, content) in [("--objects", "a thing/é", things), ("--assocs", "leads to", edges)] {
        let file = site.file("in.csv", content);
        site.cluster.must(&["import", GRAPH, flag, &file, "--type", kind]);
        let exported = |graph: &str| {
            let file = site.file("out.csv", "");
            site.cluster.must(&["export", graph, flag, "--type", kind, "--out", &file]);
            fs::read_to_string(file).expect("the export was written")
        };
        let first = exported(GRAPH);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&first), sorted(content));
        let other = format!("copy{}", kind.len());
        let created = site.apply(&other, "open = true", &[]);
        assert!(created.status.success(), "{}", text(&created));
        let file = site.file("again.csv", &first);
        site.cluster.must(&["import", &other, flag, &file, "--type", kind]);
        assert_eq!(exported(&other), first);
    }
}
