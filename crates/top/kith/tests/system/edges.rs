//! The operation `edges`: columns of every kind, every order, pages, cursors and their versions, on every way in.

use crate::support;
use serde_json::{Value, json};
use std::{cmp::Ordering, fs};
use support::cluster::{Cluster, text};

const GRAPH: &str = "people";
const MEMBER: u64 = 7;

/// An edge of the member: the other end, and what it has in the columns `since`, `weight` and `balance`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Edge(u64, u64, f64, i64);

/// Edges with many ties in every column, negative numbers and fractions.
fn edges() -> Vec<Edge> {
    let edge =
        |n: u64| Edge(n * 11 % 997 + 100, 2015 + n % 4, (n % 5) as f64 / 4.0 - 0.5, 3 - (n % 7) as i64);
    let mut edges: Vec<Edge> = (0..90).map(edge).collect();
    edges.sort_by_key(|edge| edge.0);
    edges
}

impl Edge {
    fn json(&self) -> Value {
        json!({"id": self.0, "since": self.1, "weight": self.2, "balance": self.3})
    }

    fn by(&self, other: &Edge, column: &str) -> Ordering {
        match column {
            "since" => self.1.cmp(&other.1),
            "weight" => self.2.total_cmp(&other.2),
            "balance" => self.3.cmp(&other.3),
            _ => Ordering::Equal,
        }
    }
}

/// A cluster that serves the edges as a directed edge type, loaded once more for each of `versions`, with later years.
fn loaded(arguments: &[&str], version: u64) -> Cluster {
    let cluster = Cluster::start(arguments);
    load(&cluster, version);
    cluster
}

fn load(cluster: &Cluster, version: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("follows.csv");
    let mut lines = "src,dst,since,weight,balance\n".to_owned();
    for Edge(id, since, weight, balance) in edges() {
        lines += &format!("{MEMBER},{id},{},{weight},{balance}\n", since + 100 * (version - 1));
    }
    lines += "8,7,1,1,1\n";
    fs::write(&file, lines).expect("written");
    let columns = ["--columns", "since:u64,weight:f64,balance:i64"];
    let file = file.to_str().expect("UTF-8");
    let load = ["load", "graph", file, "--graph", GRAPH, "--directed", columns[0], columns[1]];
    cluster.must(&load);
}

fn one(cluster: &Cluster, fields: Value) -> Value {
    let mut request = json!({"op": "edges", "graph": GRAPH, "id": MEMBER});
    request.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
    cluster.run(&[request], 1).0.remove(0)
}

/// All pages of a question, end to end.
fn pages(cluster: &Cluster, fields: Value, limit: usize) -> Vec<Value> {
    let (mut edges, mut after) = (Vec::new(), Value::Null);
    loop {
        let mut fields = fields.clone();
        fields["limit"] = json!(limit);
        if !after.is_null() {
            fields["after"] = after;
        }
        let answer = one(cluster, fields);
        let page = answer["edges"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        assert!(page.len() <= limit, "{answer}");
        edges.extend(page);
        after = answer["after"].clone();
        if after.is_null() {
            return edges;
        }
    }
}

#[test]
fn edges_come_in_every_order_whole_and_page_by_page() {
    let cluster = loaded(&["--groups", "2", "--nodes", "2"], 1);
    let json_of = |edges: &[Edge]| edges.iter().map(Edge::json).collect::<Vec<_>>();
    assert_eq!(one(&cluster, json!({})), json!({"edges": json_of(&edges()), "after": null}));
    for column in ["since", "weight", "balance"] {
        for descending in [false, true] {
            let mut expected = edges();
            expected.sort_by(|a, b| {
                let order = a.by(b, column);
                if descending { order.reverse() } else { order }.then(a.0.cmp(&b.0))
            });
            let fields = json!({"order_by": column, "descending": descending});
            assert_eq!(one(&cluster, fields.clone())["edges"], json!(json_of(&expected)), "{fields}");
            for limit in [1, 7, 90] {
                assert_eq!(pages(&cluster, fields.clone(), limit), json_of(&expected), "{fields} by {limit}");
            }
        }
    }
    let mut reversed = edges();
    reversed.reverse();
    assert_eq!(pages(&cluster, json!({"descending": true}), 13), json_of(&reversed));

    let since: Vec<Value> = edges().iter().map(|edge| json!({"id": edge.0, "since": edge.1})).collect();
    assert_eq!(one(&cluster, json!({"columns": ["since"]}))["edges"], json!(since));
    let ids: Vec<Value> = edges().iter().map(|edge| json!({"id": edge.0})).collect();
    assert_eq!(one(&cluster, json!({"columns": []}))["edges"], json!(ids));
    assert_eq!(
        one(&cluster, json!({"id": edges()[0].0}))["edges"],
        json!([]),
        "a member without edges in this direction"
    );
    assert_eq!(
        one(&cluster, json!({"id": 7, "direction": "in", "columns": []}))["edges"],
        json!([{"id": 8}])
    );

    let filter = json!({"column": "balance", "low": -2, "high": 0});
    let expected: Vec<Edge> = edges().into_iter().filter(|edge| (-2..=0).contains(&edge.3)).collect();
    assert_eq!(pages(&cluster, json!({"filter": filter}), 5), json_of(&expected));
    let degree = json!({"op": "degree", "graph": GRAPH, "ids": [MEMBER], "filter": filter});
    assert_eq!(cluster.run(&[degree], 1).0[0]["degrees"], json!([expected.len()]));
    let filter = json!({"column": "weight", "low": 0.25});
    let expected: Vec<Edge> = edges().into_iter().filter(|edge| 0.25 <= edge.2).collect();
    assert_eq!(pages(&cluster, json!({"filter": filter}), 8), json_of(&expected));
}

#[test]
fn the_command_line_shows_edges_as_kith_run_answers_them() {
    let cluster = loaded(&[], 1);
    let id = MEMBER.to_string();
    let ask = |more: &[&str]| cluster.must(&[&["graph", "edges", &id, "-g", GRAPH], more].concat());
    let options = ["--columns", "since,weight", "--order-by", "since", "--descending", "--limit", "2"];
    let fields = json!({"columns": ["since", "weight"], "order_by": "since", "descending": true, "limit": 2});
    let answer: Value = serde_json::from_str(&ask(&[&options[..], &["-o", "json"]].concat())).expect("JSON");
    assert_eq!(answer, one(&cluster, fields));

    let cursor = answer["after"].as_str().expect("there are more edges");
    let table = ask(&options);
    assert!(table.contains("since") && table.contains(&format!("--after {cursor}")), "{table}");
    let next: Value =
        serde_json::from_str(&ask(&[&options[..], &["--after", cursor, "-o", "json"]].concat()))
            .expect("JSON");
    assert_ne!(next["edges"], answer["edges"]);
    let few: Value = serde_json::from_str(&ask(&["--filter", "balance=-3..-3", "-o", "json"])).expect("JSON");
    let expected = edges().iter().filter(|edge| edge.3 == -3).count();
    assert_eq!(few["edges"].as_array().map(Vec::len), Some(expected));

    let plan = cluster.must(&["explain", "edges", &id, "-g", GRAPH]);
    assert!(plan.contains("edges") && plan.contains("single-key"), "{plan}");
    let profiled = one(&cluster, json!({"profile": true, "limit": 1}));
    assert_eq!(profiled["profile"]["rounds"][0]["name"], "edges", "{profiled}");
}

#[test]
fn a_cursor_is_good_as_long_as_its_version_is_kept_and_then_says_so() {
    let cluster = loaded(&[], 1);
    let fields = json!({"order_by": "since", "limit": 40});
    let first = one(&cluster, fields.clone());
    let go_on = |limit: usize| {
        let mut fields = fields.clone();
        (fields["limit"], fields["after"]) = (json!(limit), first["after"].clone());
        fields
    };
    let rest = one(&cluster, go_on(100));
    assert_eq!(rest["edges"].as_array().map(Vec::len), Some(50));

    load(&cluster, 2);
    assert_eq!(one(&cluster, json!({"order_by": "since", "limit": 1}))["edges"][0]["since"], 2115);
    assert_eq!(one(&cluster, go_on(100)), rest, "the version before is kept");

    cluster.must(&["store", "alter", GRAPH, "--retain", "0"]);
    let expired = one(&cluster, go_on(100));
    assert_eq!(expired["error"]["code"], "cursor_expired", "{expired}");
    assert!(
        expired["error"]["message"].as_str().is_some_and(|message| message.contains("no longer kept")),
        "{expired}"
    );
}

#[test]
fn questions_that_make_no_sense_are_refused_with_what_to_do() {
    let cluster = loaded(&[], 1);
    let cursor = one(&cluster, json!({"limit": 1}))["after"].clone();
    for (fields, code, part) in [
        (json!({"columns": ["sinse"]}), "unknown_column", "since, weight, balance"),
        (json!({"order_by": "name"}), "unknown_column", "since, weight, balance"),
        (json!({"filter": {"column": "name"}}), "unknown_column", "since, weight, balance"),
        (json!({"filter": {"column": "since", "low": -1}}), "out_of_range", "-1"),
        (json!({"filter": {"column": "since", "high": 1.5}}), "out_of_range", "1.5"),
        (json!({"columns": ["since", "since"]}), "bad_request", "twice"),
        (json!({"direction": "both"}), "bad_request", "\"out\" or \"in\""),
        (json!({"limit": 0}), "out_of_range", "1 to 100000"),
        (json!({"limit": 100_001}), "out_of_range", "1 to 100000"),
        (json!({"after": 5}), "bad_request", "cursor"),
        (json!({"after": "AQ"}), "bad_request", "cursor"),
        (json!({"after": cursor, "descending": true}), "bad_request", "order"),
        (json!({"after": cursor, "id": 8}), "bad_request", "member"),
        (json!({"id": 123_456}), "member_not_found", "123456"),
        (json!({"order": "since"}), "bad_request", "order_by"),
    ] {
        let answer = one(&cluster, fields.clone());
        let error = &answer["error"];
        assert_eq!(error["code"], code, "{fields}: {answer}");
        assert!(error.to_string().contains(&part.replace('"', "\\\"")), "{fields}: {answer}");
    }
    let both = json!({"op": "connections", "graph": GRAPH, "id": MEMBER, "after": cursor});
    assert_eq!(cluster.run(&[both], 1).0[0]["error"]["code"], "bad_request");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("edges.csv");
    fs::write(&file, "src,dst,id\n1,2,3\n").expect("written");
    let load = ["load", "graph", file.to_str().expect("UTF-8"), "--graph", "g", "--columns", "id"];
    let refused = cluster.kith(&load).output().expect("kith runs");
    assert!(!refused.status.success() && text(&refused).contains("another name"), "{}", text(&refused));
}
