//! Labels that a graph leaves unknown: they are asked for only where they are observed.

use super::{compiled, toy};
use kith_gremlin::value::Value;
use kith_traversal::testing::finished;
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    testing::{MemoryGraph, UnlabelledGraph},
};

/// The results of a traversal, and the vertices that were looked up for it.
fn asked(graph: &UnlabelledGraph<MemoryGraph>, gremlin: &str) -> (Vec<Value>, Vec<String>) {
    let plan = compiled(gremlin).expect("a traversal");
    graph.take_looked_up();
    let results = Evaluation::new(&plan, graph, Limits::default()).all();
    let results = finished(results).expect("it has results");
    (results.into_iter().map(|(value, _)| value).collect(), graph.take_looked_up())
}

#[test]
fn vertices_are_looked_up_only_where_their_labels_are_observed() {
    let graph = UnlabelledGraph::new(toy());
    // Vertex 1 knows 2 and 4, and 4 created 3.
    let cases: [(&str, &[&str]); 10] = [
        ("g.V(1).out().out().dedup().count()", &[]),
        ("g.V(1).out('knows').id().fold()", &[]),
        ("g.V(1).outE().label().fold()", &[]),
        ("g.V(1).out().values('name').fold()", &["2", "4"]),
        ("g.V(1).out('knows').hasLabel('person').count()", &["2", "4"]),
        ("g.V(1).out('knows').hasLabel('person').label().dedup()", &["2", "4"]),
        ("g.V(1).out('knows').groupCount().by(label)", &["2", "4"]),
        ("g.V(1).out('knows').elementMap('name').select('name').fold()", &["2", "4"]),
        ("g.V(4).out('created')", &["3"]),
        ("g.V(4).outE('created').elementMap()", &["3", "4"]),
    ];
    for (gremlin, expected) in cases {
        assert_eq!(asked(&graph, gremlin).1, expected, "{gremlin}");
    }
}

#[test]
fn results_have_all_their_labels() {
    let graph = UnlabelledGraph::new(toy());
    let nested = "g.V(4).out('created').as('a').in('created').path()\
        .union(identity(), select('a'), fold(), group().by(unfold().tail()).by(fold()))";
    for gremlin in
        [nested, "g.V(1).outE()", "g.V(1).outE('knows').properties()", "g.V(1).out().aggregate('x').cap('x')"]
    {
        let (results, _) = asked(&graph, gremlin);
        assert!(!results.is_empty(), "{gremlin}");
        let text = format!("{results:?}");
        assert!(text.contains("label: \"software\"") || text.contains("label: \"person\""), "{text}");
        assert!(!text.contains("label: \"\""), "{gremlin}: {text}");
    }
}
