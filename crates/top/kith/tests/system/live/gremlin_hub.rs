//! Traversals that want a little of a vertex with many edges move about as many bytes as their results have.

use super::{
    gremlin::{GRAPH, line},
    site::Site,
};
use serde_json::Value;
use std::fmt::Write as _;

const EDGES: u64 = 10_000;
/// How many times as many bytes as the results have may be moved.
const TIMES: u64 = 3;
/// The bytes that may be moved beside these: headers, and the parts of lists that are read first.
const BESIDE: u64 = 4 << 10;
/// The bytes of an edge without properties.
const EDGE_BYTES: u64 = 12;

const TYPES: &str = r#"
[object.person]
fields = { city = "text" }

[association.follows]
inverse = "followed_by"
fields = { since = "i32" }
"#;

/// The bytes of all replies of nodes.
fn replies(answer: &Value) -> u64 {
    let of_key = |(key, value): (&String, &Value)| match value.as_u64() {
        Some(bytes) if key == "reply_bytes" => bytes,
        _ => replies(value),
    };
    match answer {
        Value::Object(fields) => fields.iter().map(of_key).sum(),
        Value::Array(members) => members.iter().map(replies).sum(),
        _ => 0,
    }
}

#[test]
fn a_little_of_a_hub_is_read_without_the_rest() {
    let site = Site::start_empty(&["--groups", "1", "--nodes", "2", "--partitions", "4"]);
    let applied = site.apply(GRAPH, TYPES, &[]);
    assert!(applied.status.success(), "{applied:?}");
    let (mut people, mut follows) = (String::new(), String::new());
    for id in 1..=EDGES + 1 {
        let _ = writeln!(people, "{id},\"{{\"\"city\"\":\"\"c{}\"\"}}\"", id % 1_000);
    }
    for id in 2..=EDGES + 1 {
        let _ = writeln!(follows, "1,{id},{id},\"{{\"\"since\"\":{}}}\"", id % 1_000);
    }
    for (flag, kind, lines) in [("--objects", "person", people), ("--assocs", "follows", follows)] {
        let file = site.file(&format!("{kind}.csv"), &lines);
        site.cluster.must(&["import", GRAPH, flag, &file, "--type", kind]);
    }
    let mut talk = site.talk(1);
    for (gremlin, results, beside) in [
        ("g.V(1).both().limit(5)", 5, BESIDE),
        // The ends of all edges are read, but of the vertices only the ids of those that pass.
        ("g.V(1).both().has('city', 'c7')", 10, BESIDE + EDGE_BYTES * EDGES),
        ("g.V(1).bothE().has('since', gt(990))", 90, BESIDE),
        ("g.V(1).bothE().order().by('since', desc).limit(10)", 10, BESIDE),
        ("g.V(1).outE().has('since', 5).count()", 1, BESIDE),
        ("g.V().hasLabel('person').count()", 1, BESIDE),
        ("g.E().count()", 1, BESIDE),
    ] {
        let mut asked = line(gremlin);
        asked["profile"] = Value::Bool(true);
        let answer = talk.must(&asked);
        assert_eq!(answer["result"].as_array().map(Vec::len), Some(results), "{gremlin}: {answer}");
        let bytes = answer["result"].to_string().len() as u64;
        let moved = replies(&answer["profile"]);
        assert!(0 < moved, "{gremlin}: the profile has the bytes of replies: {answer}");
        assert!(moved <= TIMES * bytes + beside, "{gremlin}: {moved} bytes for a result of {bytes}");
    }
}
