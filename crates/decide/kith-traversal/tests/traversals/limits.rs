//! Traversals with a limit read little more than what their results need.

use super::{ask, compiled};
use kith_gremlin::value::{ElementId, Value};
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    graph::{Graph, Mutation},
    testing::{MemoryGraph, finished},
};

const VERTICES: i64 = 1_000;
const DEGREE: i64 = 40;

/// A ring: edges lead from each vertex to the next ones, and from one vertex to all others.
fn ring() -> MemoryGraph {
    let graph = MemoryGraph::default();
    let vertex = |id: i64| Mutation::AddVertex {
        id: Some(id.into()),
        label: "v".into(),
        properties: vec![("code".into(), Value::Long(id))],
    };
    let edge = |label: &str, from: i64, by: i64| Mutation::AddEdge {
        id: None,
        label: label.into(),
        out_vertex: ElementId::from(from),
        in_vertex: ElementId::from((from + by) % VERTICES),
        properties: Vec::new(),
        replaces: true,
    };
    let edges = (0..VERTICES).flat_map(|from| (1..=DEGREE).map(move |by| edge("e", from, by)));
    let hub = (1..VERTICES).map(|by| edge("hub", 0, by));
    for mutation in (0..VERTICES).map(vertex).chain(edges).chain(hub) {
        finished(graph.write(mutation)).expect("it is valid");
    }
    graph
}

/// The results of a traversal that may read this many elements.
fn within(graph: &MemoryGraph, elements: i64, gremlin: &str) -> Vec<(Value, i64)> {
    let plan = compiled(gremlin).expect("it is well-formed");
    let limits = Limits { elements: elements.unsigned_abs(), ..Limits::default() };
    let results = finished(Evaluation::new(&plan, graph, limits).all());
    results.unwrap_or_else(|error| panic!("{gremlin}: {error}"))
}

/// Each traversal may read at most four times what an evaluation by hand reads that follows one traverser to its end before the
/// next, and 256 elements more.
#[test]
fn a_limit_ends_the_work_of_all_steps_before_it() {
    let graph = ring();
    for (gremlin, by_hand, count) in [
        ("g.V().repeat(out()).times(2).path().limit(10)", 1 + 2 * DEGREE, 10),
        ("g.V().out().out().out().limit(5)", 1 + 3 * DEGREE, 5),
        ("g.V().out().out().out().path().limit(5)", 1 + 3 * DEGREE, 5),
        ("g.V().repeat(out().simplePath()).times(6).limit(5).path().by('code')", 1 + 6 * DEGREE, 5),
        ("g.V().as('a').out().as('b').out().where(neq('a')).select('a','b').limit(3)", 1 + 2 * DEGREE, 3),
        ("g.V().both().both().both().range(5, 9)", 1 + 6 * DEGREE, 4),
        ("g.V(1).out().union(out().out(), in().in()).limit(7)", 1 + 3 * DEGREE, 7),
        ("g.V().out().filter(out().out()).limit(2)", 1 + 3 * DEGREE, 2),
        ("g.V(7).where(out().out().out().out().has('code', gt(9))).id()", 1 + 4 * DEGREE, 1),
        ("g.V(7).map(out().out().out().values('code'))", 1 + 3 * DEGREE, 1),
        ("g.V().out().order().by(id).limit(1)", VERTICES * (1 + DEGREE), 1),
        // A hub has edges to all vertices, of which few are read.
        ("g.V(0).out('hub').limit(5)", 1 + 5, 5),
        ("g.V(0).outE('hub').limit(5)", 1 + 5, 5),
        ("g.V(5, 0).out('hub').out('e').limit(5)", 2 + 6, 5),
        ("g.V(0).out('hub').has('code', gt(300)).limit(2)", 1 + 2 * 302, 2),
        ("g.V(0).where(out('hub').has('code', 3))", 1 + 2 * 4, 1),
        ("g.V().limit(3).map(both('hub').id())", 3 + 3, 3),
        ("g.V(0).repeat(both('hub').simplePath()).times(2).limit(3).path()", 2 * VERTICES, 0),
        ("g.V(0).repeat(both()).times(9).limit(3).path()", 1 + 8 + 3, 3),
        ("g.V(0).out('hub').range(10, 15)", 1 + 15, 5),
        ("g.V(0, 1, 2).local(both('hub').limit(1))", 3 + 3, 3),
        ("g.V(0).coalesce(out('hub'), out('e')).limit(4)", 1 + 4, 4),
        ("g.V().optional(out('e')).limit(4)", 1 + 4, 4),
        ("g.E().limit(5)", 5, 5),
        ("g.E().hasLabel('e').limit(5)", 5, 5),
    ] {
        let found = within(&graph, 4 * by_hand + 256, gremlin);
        assert_eq!(found.iter().map(|(_, bulk)| bulk).sum::<i64>(), count, "{gremlin}");
    }
    let counted = within(&graph, 4 * (1 + 3 * DEGREE) + 256, "g.V().out().out().out().limit(5).count()");
    assert_eq!(counted, [(Value::Long(5), 1)]);
}

/// A `repeat` that ends at different depths returns its shortest paths first, with a limit as without.
#[test]
fn shorter_paths_come_first_where_a_limit_stops_a_repeat() {
    let graph = ring();
    let lengths = |gremlin: &str| -> Vec<Value> {
        let results = ask(&graph, gremlin).expect("it is answered");
        assert!(!results.is_empty(), "{gremlin}");
        results
    };
    let far =
        "g.V(0).repeat(out('e').simplePath()).until(has('code', within(30, 60, 61))).path().count(local)";
    assert_eq!(lengths(&format!("{far}.limit(3)")), [2, 3, 3].map(Value::Long));
    let emitted = "g.V(0).repeat(out('e')).emit(has('code', 3)).times(3).path().count(local)";
    let whole = lengths(emitted);
    assert!(whole.is_sorted_by_key(|length| length.to_string()), "{whole:?}");
    assert_eq!(lengths(&format!("{emitted}.limit(3)")), whole[..3]);
}
