//! `profile`.

use super::{ask, check, compiled, toy};
use kith_gremlin::value::{
    ELEMENT_COUNT, Edge, ElementId, Metrics, PERCENT_OF_TIME, TRAVERSER_COUNT, TraversalMetrics, Value,
    Vertex,
};
use kith_traversal::{
    evaluate::{Evaluation, Limits},
    graph::{
        EdgeList, Expansion, Graph, GraphFuture, Mutation, Notes, ScanPlace, ScannedEdges, WantedProperties,
    },
    testing::{MemoryGraph, finished},
};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

fn metrics(value: &Value) -> &Arc<TraversalMetrics> {
    match value {
        Value::TraversalMetrics(metrics) => metrics,
        other => panic!("{other}"),
    }
}

fn counts(metrics: &Metrics) -> (i64, i64) {
    let count =
        |wanted: &str| metrics.counts.iter().find(|(name, _)| name == wanted).map_or(0, |(_, count)| *count);
    (count(TRAVERSER_COUNT), count(ELEMENT_COUNT))
}

#[test]
fn a_profile_counts_what_each_step_returns() {
    let results = ask(&toy(), "g.V().both().filter(out('created')).values('name').profile()").unwrap();
    let [result] = &results[..] else { panic!("{results:?}") };
    let steps = &metrics(result).steps;
    let names: Vec<&str> = steps.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["V()", "both()", "filter(out(created))", "values(name)"]);
    let all: Vec<(i64, i64)> = steps.iter().map(counts).collect();
    assert_eq!(all, [(4, 4), (4, 6), (1, 2), (1, 2)], "traversers and elements");
    assert_eq!(steps[2].nested[0].name, "out(created)");
    assert_eq!(counts(&steps[2].nested[0]), (1, 1));
}

#[test]
fn a_profile_can_be_put_aside() {
    let results = ask(&toy(), "g.V().out('knows').profile('x').cap('x')").unwrap();
    assert_eq!(counts(&metrics(&results[0]).steps[1]), (2, 2));
    check(&[
        (&["g.V().profile().count()"], "! profile() must be the last step"),
        (&["g.V().map(out().profile())"], "! cannot be inside another step"),
    ]);
}

#[test]
fn the_times_are_those_of_the_clock() {
    let now = AtomicU64::new(0);
    let clock = || now.fetch_add(1_000, Ordering::Relaxed);
    let (graph, plan) = (toy(), compiled("g.V().out().profile()").unwrap());
    let evaluation = Evaluation::new(&plan, &graph, Limits::default()).with_clock(&clock);
    let results = finished(evaluation.all()).unwrap();
    let metrics = metrics(&results[0].0);
    assert!(metrics.steps.iter().all(|step| step.nanos >= 1_000), "{metrics}");
    assert_eq!(metrics.nanos, metrics.steps.iter().map(|step| step.nanos).sum::<i64>());
    let percent = |step: &Metrics| match step.annotations.first() {
        Some((name, Value::Double(percent))) if name == PERCENT_OF_TIME => *percent,
        other => panic!("{other:?}"),
    };
    assert!((metrics.steps.iter().map(percent).sum::<f64>() - 100.0).abs() < 1e-6, "{metrics}");
}

/// A graph that counts its expansions of one vertex or more.
struct Counting {
    inner: MemoryGraph,
    expansions: AtomicU64,
}

impl Graph for Counting {
    fn canonical(&self, id: &ElementId) -> Option<ElementId> {
        self.inner.canonical(id)
    }

    fn vertices(
        &self,
        ids: Vec<ElementId>,
        wanted: WantedProperties,
    ) -> GraphFuture<'_, Vec<Option<Arc<Vertex>>>> {
        self.inner.vertices(ids, wanted)
    }

    fn edges(&self, ids: Vec<ElementId>) -> GraphFuture<'_, Vec<Option<Arc<Edge>>>> {
        self.inner.edges(ids)
    }

    fn scan_vertices(&self, after: Option<ElementId>, limit: usize) -> GraphFuture<'_, Vec<Arc<Vertex>>> {
        self.inner.scan_vertices(after, limit)
    }

    fn scan_edges(&self, after: Option<ScanPlace>, limit: usize) -> GraphFuture<'_, ScannedEdges> {
        self.inner.scan_edges(after, limit)
    }

    fn expand(&self, expansion: Expansion) -> GraphFuture<'_, Vec<EdgeList>> {
        self.expansions.fetch_add(u64::from(!expansion.vertices.is_empty()), Ordering::Relaxed);
        self.inner.expand(expansion)
    }

    fn write(&self, mutation: Mutation) -> GraphFuture<'_, Option<Value>> {
        self.inner.write(mutation)
    }

    fn take_notes(&self) -> Notes {
        match self.expansions.swap(0, Ordering::Relaxed) as i64 {
            0 => Notes::default(),
            count => Notes { counts: vec![("requests", count)], members: vec![("groups", 1)] },
        }
    }
}

#[test]
fn what_the_graph_did_is_noted_with_the_step_that_asked() {
    let graph = Counting { inner: toy(), expansions: AtomicU64::new(0) };
    let plan = compiled("g.V(1).repeat(out().identity()).times(2).in().count()").unwrap();
    let evaluation = Evaluation::new(&plan, &graph, Limits::default()).with_metrics();
    let (results, metrics) = finished(evaluation.all_with_metrics()).unwrap();
    assert_eq!(results, [(Value::Long(1), 1)]);
    let steps = metrics.expect("they are wanted").steps;
    let noted = |metrics: &Metrics, wanted: &str| {
        let mut all = metrics.annotations.iter();
        all.find(|(name, _)| name == wanted).map(|(_, count)| count.to_string())
    };
    let requests: Vec<_> = steps.iter().map(|step| noted(step, "requests")).collect();
    assert_eq!(requests, [None, None, Some("1".to_owned()), None]);
    let out = &steps[1].nested[0];
    assert_eq!((noted(out, "requests"), noted(out, "groups")), (Some("2".to_owned()), Some("1".to_owned())));
}
