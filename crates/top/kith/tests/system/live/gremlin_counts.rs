//! Numbers of all vertices and edges, which the database counts, equal those of a scan.

use super::{
    gremlin::{GRAPH, line},
    site::{Site, Talk},
};
use serde_json::{Value, json};

const SHAPE: [&str; 6] = ["--groups", "2", "--nodes", "2", "--partitions", "8"];

/// An association type of each kind of inverse.
const TYPES: &str = r#"
[object.person]
fields = { name = { type = "text", nullable = true } }

[object.place]
fields = { name = { type = "text", nullable = true } }

[association.follows]
inverse = "followed_by"

[association.married]
symmetric = true

[association.visits]
adjacency = false
"#;

fn result(talk: &mut Talk, gremlin: &str) -> Value {
    talk.must(&line(gremlin))["result"].clone()
}

/// Compares all counts with those of scans, and returns them.
fn counts(talk: &mut Talk) -> Vec<Value> {
    let elements = [
        "V()",
        "V().hasLabel('person')",
        "V().hasLabel('person', 'place')",
        "V().hasLabel('place').hasLabel('person')",
        "V().hasLabel('vertex')",
        "E()",
        "E().hasLabel('follows')",
        "E().hasLabel('followed_by')",
        "E().hasLabel('married')",
        "E().hasLabel('visits', 'married')",
        "E().hasLabel('nothing')",
    ];
    let count = |elements: &&str| {
        let counted = result(talk, &format!("g.{elements}.count()"));
        // A labelled step is not replaced, so the elements are read.
        let scanned = result(talk, &format!("g.{elements}.as('e').count()"));
        assert_eq!(counted, scanned, "{elements}");
        counted[0].clone()
    };
    elements.iter().map(count).collect()
}

fn check(site: &Site, has_one_sided: bool) {
    let mut talk = site.talk(1);
    counts(&mut talk);
    for id in 1..=40 {
        let label = if id % 4 == 0 { "place" } else { "person" };
        result(&mut talk, &format!("g.addV('{label}').property(id, {id})"));
    }
    let labels = ["follows", "married", "visits"];
    for label in &labels[..if has_one_sided { 3 } else { 2 }] {
        // Pairs in both directions, and vertices with an edge to themselves.
        for (from, to) in
            (1..=20).flat_map(|id| [(id, 41 - id), (id, (id * 7) % 20 + 1)]).chain([(5, 5), (39, 39)])
        {
            let merged = format!(
                "g.mergeE([(T.label): '{label}', (Direction.OUT): {from}, (Direction.IN): {to}]).count()"
            );
            result(&mut talk, &merged);
        }
    }
    let before = counts(&mut talk);
    assert_eq!(before[..3], [40, 30, 40].map(Value::from));
    assert!(before[5..].iter().any(|count| count.as_u64() > Some(20)), "{before:?}");
    result(&mut talk, "g.V(3, 5, 8).drop()");
    result(&mut talk, "g.E('39>married>39').drop()");
    result(&mut talk, "g.V(1).outE('follows').drop()");
    let after = counts(&mut talk);
    assert_eq!(after[..3], [37, 28, 37].map(Value::from));
    assert!(after[5].as_u64() < before[5].as_u64(), "{before:?} {after:?}");
    // One traversal counts what it has changed.
    let added = "g.addV('place').property(id, 100).as('a').V(2).addE('follows').to('a').count()";
    assert_eq!(result(&mut talk, added), json!([1]));
    assert_eq!(result(&mut talk, "g.V().count()"), json!([38]));
}

#[test]
fn numbers_of_elements_equal_those_of_a_scan() {
    let site = Site::start_empty(&SHAPE);
    let applied = site.apply(GRAPH, TYPES, &[]);
    assert!(applied.status.success(), "{applied:?}");
    check(&site, true);
}

#[test]
fn numbers_of_elements_of_an_open_graph_equal_those_of_a_scan() {
    let site = Site::start_empty(&SHAPE);
    let applied = site.apply(GRAPH, "open = true\n", &[]);
    assert!(applied.status.success(), "{applied:?}");
    check(&site, false);
}
