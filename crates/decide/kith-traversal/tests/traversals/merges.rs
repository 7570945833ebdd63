//! `mergeV` and `mergeE`.

use super::{check, compiled, toy};
use futures::{FutureExt, future::BoxFuture};
use kith_gremlin::value::{Edge, ElementId, Value, Vertex};
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    graph::{EdgeList, Expansion, Graph, GraphFuture, Mutation, ScanPlace, ScannedEdges, WantedProperties},
    testing::{MemoryGraph, finished},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

#[test]
fn vertices_are_found_or_added() {
    check(&[
        (&["g.mergeV([T.label: 'person', 'name': 'marko']).id()"], "1"),
        (&["g.mergeV([T.label: 'person', 'name': 'peter']).valueMap()", "g.V().count()"], "5"),
        (&["g.mergeV([T.id: '1']).values('name')"], "marko"),
        (&["g.mergeV([T.id: 9, T.label: 'dog'])", "g.V(9).label()"], "dog"),
        (
            &["g.mergeV([T.label: 'person']).option(Merge.onMatch, ['seen': true]).values('seen')"],
            "true true true",
        ),
        (&["g.mergeV([T.label: 'dog']).option(Merge.onCreate, ['name': 'rex']).valueMap()"], "{name=[rex]}"),
        (&["g.mergeV([T.label: 'dog']).option(Merge.onMatch, ['a': 1]).valueMap()"], "{}"),
        (&["g.inject([T.label: 'dog'], [T.label: 'dog']).mergeV()", "g.V().hasLabel('dog').count()"], "1"),
        (&["g.mergeV([T.id: 1]).option(Merge.onMatch, ['age': null]).valueMap()"], "{name=[marko]}"),
        (&["g.mergeV([T.id: 1]).option(Merge.onMatch, ['age': Cardinality.single(5)]).values('age')"], "5"),
    ]);
}

#[test]
fn an_option_sees_the_element_that_was_found() {
    check(&[
        (
            &["g.V(3).mergeV([T.id: 1]).option(Merge.onMatch, project('was').by('name')).values('was')"],
            "marko",
        ),
        (
            &[
                "g.inject([T.id: 1]).mergeV().option(Merge.onMatch, project('size').by(count(local))).values('size')",
            ],
            "1",
        ),
        (
            &["g.V(1).mergeE([T.label: 'created', Direction.OUT: 4, Direction.IN: 3]).
            option(Merge.onMatch, sideEffect(property('weight', 0)).constant([:])).values('weight')"],
            "0",
        ),
    ]);
}

#[test]
fn maps_are_checked() {
    check(&[
        (&["g.mergeV(['~id': 1])"], "! Property key can not be a hidden key: ~id"),
        (&["g.mergeV([T.label: '~dog'])"], "! Label can not be a hidden key: ~dog"),
        (&["g.mergeV([T.label: null])"], "! mergeV() does not allow null Map values - check: label"),
        (&["g.mergeV([T.label: 1])"], "! expect T.label value to be of String - found: Int"),
        (&["g.mergeV([1: 1])"], "! either String or [id, label] - check: 1"),
        (
            &["g.mergeV([T.id: 1]).option(Merge.onMatch, [T.label: 'dog'])"],
            "! option(onMatch) expects keys in Map to be of String - check: label",
        ),
        (&["g.mergeV([T.id: 1]).option(Merge.onCreate, [T.id: 2])"], "! option(onCreate) cannot override"),
        (&["g.mergeV(['x': 1]).option(Merge.onCreate, select('none'))"], "! has no result"),
        (&["g.mergeV([:]).option(Merge.outV, [:])"], "! option(outV) can only be used following mergeE()"),
        (&["g.mergeV([T.id: null])"], "! mergeV() does not allow null Map values - check: id"),
        (&["g.mergeV(constant(1))"], "! need maps, not a value of type Int"),
        (
            &["g.mergeE([Direction.OUT: Merge.inV])"],
            "! Only Merge.outV token may be used for Direction.OUT, found: inV",
        ),
        (
            &["g.mergeE([T.label: 'x']).option(Merge.onCreate, ['a': Cardinality.single(1)])"],
            "! can only be used following mergeV()",
        ),
    ]);
}

#[test]
fn edges_are_found_or_added() {
    check(&[
        (&["g.mergeE([T.label: 'knows', Direction.OUT: 1, Direction.IN: 2]).values('weight')"], "0.5"),
        (
            &[
                "g.mergeE([T.label: 'knows', Direction.OUT: 2, Direction.IN: 1, 'since': 5])",
                "g.V(2).outE().values('since')",
            ],
            "5",
        ),
        (&["g.mergeE([T.label: 'knows', Direction.OUT: '1']).count()"], "2"),
        (
            &["g.mergeE([T.label: 'likes', Direction.OUT: Merge.outV, Direction.IN: Merge.inV]).
            option(Merge.outV, ['name': 'marko']).option(Merge.inV, V(3)).id()"],
            "1>likes>3",
        ),
        (
            &[
                "g.mergeE([T.label: 'likes', Direction.OUT: 1]).option(Merge.onCreate, [Direction.IN: 3]).id()",
            ],
            "1>likes>3",
        ),
        (&["g.mergeE([T.label: 'likes', Direction.OUT: 1])"], "! In Vertex not specified in onCreate"),
        (
            &["g.mergeE([T.label: 'likes', Direction.OUT: 1, Direction.IN: 99])"],
            "! Vertex id could not be resolved from mergeE: 99",
        ),
        (
            &["g.mergeE([T.label: 'likes', Direction.OUT: Merge.outV, Direction.IN: 1])"],
            "! option(outV) must be specified",
        ),
        (
            &[
                "g.mergeE([T.label: 'likes', Direction.OUT: Merge.outV, Direction.IN: 1]).option(Merge.outV, constant(7))",
            ],
            "! Vertex could not be resolved",
        ),
        (
            &[
                "g.withSideEffect('m', [T.label: 'self', Direction.OUT: 1, Direction.IN: 1]).union(select('m')).mergeE().id()",
            ],
            "1>self>1",
        ),
    ]);
}

/// A graph whose reads show no edges before they are asked to show the latest state, as those of a replica may that lags behind.
struct Lagging(MemoryGraph, AtomicBool);

impl Graph for Lagging {
    fn canonical(&self, id: &ElementId) -> Option<ElementId> {
        self.0.canonical(id)
    }

    fn vertices(
        &self,
        ids: Vec<ElementId>,
        wanted: WantedProperties,
    ) -> GraphFuture<'_, Vec<Option<Arc<Vertex>>>> {
        self.0.vertices(ids, wanted)
    }

    fn edges(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<Arc<Edge>>>> {
        self.0.edges(ids)
    }

    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        self.0.scan_vertices(after, limit)
    }

    fn scan_edges(&self, after: Option<ScanPlace>, limit: usize) -> GraphFuture<'_, ScannedEdges> {
        self.0.scan_edges(after, limit)
    }

    fn expand(&self, expansion: Expansion) -> GraphFuture<'_, Vec<EdgeList>> {
        if self.1.load(Ordering::Relaxed) {
            return self.0.expand(expansion);
        }
        async move { Ok(vec![EdgeList::default(); expansion.vertices.len()]) }.boxed()
    }

    fn read_latest(&self) -> BoxFuture<'_, ()> {
        self.1.store(true, Ordering::Relaxed);
        async {}.boxed()
    }

    fn write(&self, mutation: Mutation) -> GraphFuture<'_, Option<Value>> {
        self.0.write(mutation)
    }
}

/// The result of a traversal over the toy graph whose reads lag behind, and the edges of vertex 1 afterwards.
fn lagging(gremlin: &str, replaces_edges: bool) -> (String, String) {
    let graph = Lagging(toy(), AtomicBool::new(false));
    let ask = |gremlin: &str| {
        let plan = compiled(gremlin).expect("it is compiled");
        let evaluation = Evaluation::new(&plan, &graph, Limits::default()).replacing_edges(replaces_edges);
        match finished(evaluation.all()) {
            Ok(all) => all.iter().map(|(value, _)| value.to_string()).collect::<Vec<_>>().join(" "),
            Err(error) => format!("! {error}"),
        }
    };
    (ask(gremlin), ask("g.V(1).outE().values()"))
}

#[test]
fn an_edge_that_the_search_does_not_show_is_found_when_it_is_written() {
    let merge = "g.mergeE([T.label: 'knows', Direction.OUT: 1, Direction.IN: 2])";
    for replaces_edges in [false, true] {
        let found = lagging(&format!("{merge}.values('weight')"), replaces_edges);
        assert_eq!(found, ("0.5".to_owned(), "0.5 1.0".to_owned()));
        let matched = format!("{merge}.option(Merge.onMatch, ['weight': 9.0]).values('weight')");
        assert_eq!(lagging(&matched, replaces_edges), ("9.0".to_owned(), "9.0 1.0".to_owned()));
        let other = "g.mergeE([T.label: 'knows', Direction.OUT: 1, Direction.IN: 2, 'weight': 0.9])";
        let (refused, after) = lagging(other, replaces_edges);
        assert!(refused.contains("a second edge with the same label"), "{refused}");
        assert_eq!(after, "0.5 1.0");
    }
}
